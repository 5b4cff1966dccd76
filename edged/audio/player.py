"""The loudspeaker: speak jobs one after the other, each heard whole or cut at once.

Thread `edged-player` owns PortAudio (through `device`) and is the ring's writer. The engine thread puts
chunks into a `PlayerSink` (`segment`) and asks whether it may go on; any thread may abort a job.

    engine --put--> PlayerSink --pump, resampled, limited--> Ring --callback, fader--> device

One job writes at a time, until its last sample is in the ring, so that the next job is synthesized while this
one is still heard; which one is the speech queue's matter (`line`).
The queue of a job is bounded by `buffer_s` (`ready` turns False), the ring by `device.RING_S`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from time import monotonic

from edged import errors
from edged.audio.chime import Chime
from edged.audio.device import Loudspeaker, ring_frames
from edged.audio.duck import Ducker, keeping_place
from edged.audio.fader import Fader
from edged.audio.line import Line, SendBack
from edged.audio.outage import FIRST_S, Outage
from edged.audio.output import CLOSE_WAIT_S
from edged.audio.pace import pause_s
from edged.audio.remote import obey
from edged.audio.segment import PlayerSink
from edged.engine.buffers import Arena
from edged.engine.plan import bound_row
from edged.job import AudioChunk, Job
from edged.log import event as log_event
from edged.settings import Audio, Speech
from edged.speech.options import Wish
from edged.speech.orders import Order
from edged.threads import name_thread

log = logging.getLogger("edged.audio")

RING_RATE, RING_CHANNELS = 48_000, 2  # what is opened on nearly every device
RETRY_S = 1.0  # how often a missing device is looked for, at most; a look takes up to 0.2 s


class Player:
    """`start` it once; then `sink` for every speak job. `wake` is called when a sink may be ready again."""

    def __init__(
        self,
        settings: Audio,
        wake: Callable[[], None],
        sample_rate: int = 24_000,
        arena: Arena | None = None,
        speech: Speech | None = None,
        send_back: SendBack = lambda job, utterance, take: None,
    ) -> None:
        """sample_rate: the voice's, tried when the device does not take 48 kHz. arena: has the ring.
        send_back: has an interrupted job spoken anew from an utterance on."""
        memory = None
        if arena is not None and settings.enabled:
            frames, _ = ring_frames(settings, RING_RATE)
            memory = arena.array("ring", (frames, RING_CHANNELS), owner="player")
            arena.note(bound_row("audio.buffer_s", int(settings.buffer_s * sample_rate) * 4))
        self._settings = settings
        self._wake = wake
        self.fader = Fader(settings.volume)
        self._speaker = Loudspeaker(settings, sample_rate, memory, self.fader)
        self._changed = threading.Condition()  # its lock guards all that follows and every sink
        self._ducker = Ducker(settings.duck_db, keeping_place())
        self._chime: Chime | None = None
        self._chime_for: frozenset[str] = frozenset()
        self._line = Line(speech or Speech(), send_back, lambda: self._speaker.unheard)
        self._outage = Outage(settings)
        self._poked = self._want_open = self._want_probe = False
        self._stop_at: float | None = None
        self._idle_since = 0.0
        self._thread = threading.Thread(target=self._run, name="edged-player", daemon=True)

    @property
    def error(self) -> errors.EdgedError | None:
        """Why there is no loudspeaker, None when there is one or nobody has looked yet."""
        return self._speaker.error

    @property
    def device(self) -> str:
        """The loudspeaker's name, "" without one."""
        return self._speaker.name

    @property
    def underruns(self) -> int:
        """Gaps that were heard: the ring or the device ran dry within a job."""
        return self._speaker.underruns

    @property
    def volume(self) -> float:
        """The loudspeaker's, a factor from 0 to 4."""
        return self.fader.volume

    @property
    def muted(self) -> bool:
        return self.fader.muted

    def set_volume(self, volume: float) -> None:
        """Any thread: for all jobs, at once; what is above 1, see `Fader`. Raises `BadValue`."""
        self.fader.set_volume(volume)

    def start(self) -> None:
        """Looks for the device on the player's thread; `error` and `device` tell how it went."""
        if self._settings.enabled:
            self._ducker.start()
            self._thread.start()

    def use(self, speech: Speech, chime: Chime | None = None) -> None:
        """Any thread: other rules, and another chime, from here on."""
        with self._changed:
            self._chime, self._chime_for = chime, frozenset(speech.chime_for)
            self._line.use(speech)
            self._poke()

    def sink(self, job: Job, sample_rate: int, wish: Wish) -> PlayerSink:
        """The sink of a speak job, which may end at once, when it or another one is not to be heard.

        wish: when it is to be heard. Never waits; raises `NoAudioDevice` when a recent look found none, and
        `Busy` when its client has too many jobs that wait.

        A device that was missing for longer is looked for again while the job is synthesized; the job
        fails when there still is none. One that is there is opened in advance, so that it is awake.
        """
        with self._changed:
            if self._stop_at is not None:
                raise errors.ShuttingDown("the loudspeaker is being closed")
            due = monotonic() >= self._speaker.checked_at + RETRY_S
            if self.error is not None:
                if not ((due or self._outage.waits) and self._thread.is_alive()):
                    # A new one each time: an exception that is raised twice collects tracebacks.
                    raise errors.NoAudioDevice(self.error.message, self.error.hint)
                self._want_probe |= due
            chime = self._chime if wish.priority.name.lower() in self._chime_for else None
            sink = PlayerSink(self, job, sample_rate, self._settings.loudness_lufs, chime)
            job.aloud = True
            self._line.add(sink, wish, monotonic(), self._speaker.ring)
            self._want_open = True
            self._poke()
        self._tell()
        return sink

    def control(self, jobs: Iterable[Job], order: Order) -> list[Job]:
        """Any thread: those of the jobs that it changed something for (see `remote`)."""
        sinks = [job.sink for job in jobs if isinstance(job.sink, PlayerSink) and not job.ended]
        with self._changed:
            hit = obey(order, sinks, self._line, self._speaker.ring, self.fader)
            self._poke()
        self._tell()
        return [sink.job for sink in hit]

    @property
    def held(self) -> bool:
        """People want it silent: jobs that come wait, but for important ones."""
        return self._line.held

    def close(self, drain_s: float = 0.0) -> None:
        """Lets jobs that are being played finish for `drain_s`, fails the rest, closes the device."""
        with self._changed:
            self._stop_at = monotonic() + drain_s
            self._poke()
        if self._thread.is_alive():
            # The tail after the last word and the closing of the device come on top.
            self._thread.join(drain_s + self._speaker.tail_s + 2.0 * CLOSE_WAIT_S)
        self._ducker.close(CLOSE_WAIT_S)
        self._fail(self._everybody(), errors.ShuttingDown, "the daemon stopped while the job was played")

    # -- called by sinks ------------------------------------------------------------------------

    def may_write(self, sink: PlayerSink) -> bool:
        if sink not in self._line.allowed:
            return False
        return sink.queued_s < self._settings.buffer_s if sink is self._line.writer else not sink.has_audio

    def put(self, sink: PlayerSink, chunk: AudioChunk) -> None:
        with self._changed:
            if sink.dropped or sink.job.ended or chunk.take != sink.take:
                return
            sink.queue(chunk)
            self._line.ready(sink, self._speaker.ring)
            self._poke()
        self._tell()

    def drop(self, sink: PlayerSink) -> None:
        """Takes a job's audio out, wherever it is. The other jobs' audio is not touched."""
        with self._changed:
            if sink.dropped:
                return
            sink.clear()
            if self._line.leave(sink, self._speaker.ring):
                self._idle_since = monotonic()
            self._poke()
        self._tell()
        self._wake()

    def _tell(self) -> None:
        """Ends the jobs that the queue gave up, and wakes the engine for those whose turn it is."""
        with self._changed:
            dropped, paused, turned = self._line.news()
        for sink, news in paused:
            sink.job.tell(news)
        for sink, why in dropped:
            sink.job.cancel(why)
        if dropped or turned:
            self._wake()

    def _poke(self) -> None:
        self._poked = True
        self._changed.notify_all()

    # -- the thread -----------------------------------------------------------------------------

    def _run(self) -> None:
        name_thread("edged-player")
        self._speaker.probe()
        while not self._may_stop(monotonic()):
            with self._changed:
                if not self._poked:
                    self._changed.wait(self._pause_s(monotonic()))
                self._poked = False
                self._line.settle(self._speaker.ring if self._speaker.output is not None else None)
                self._line.look(monotonic(), self._speaker.ring)
            try:
                self._tell()
                self._serve_device()
                self._feed()
                self._settle(monotonic())
                self._ducker.want(bool(self._line.playing))
            except Exception as exc:  # a fault here must not leave the box silent until a restart
                log_event(log, logging.ERROR, "the player failed", exc_info=True, code="player_failed")
                self._speaker.close(lost=True)
                self._outage.end()
                text = f"the player failed: {type(exc).__name__}"
                self._fail(self._everybody(), errors.InternalError, text)
        self._speaker.close()

    def _pause_s(self, now: float) -> float | None:
        """How long the thread may sleep."""
        if self._outage.active:
            return FIRST_S
        pauses = (pause_s(self._speaker, self._line, self._stop_at is not None), self._line.next_look(now))
        return min((pause for pause in pauses if pause is not None), default=None)

    def _may_stop(self, now: float) -> bool:
        with self._changed:
            if self._stop_at is None:
                return False
            if self._line.busy:
                return now >= self._stop_at
            return self._speaker.output is None or now - self._idle_since > self._speaker.tail_s

    def _serve_device(self) -> None:
        """Looks for the device or opens it, when somebody wants it."""
        with self._changed:
            probe, want_open, self._want_open = self._want_probe, self._want_open, False
            writer = self._line.writer
            if want_open:
                self._idle_since = monotonic()
        if self._outage.active:
            self._look_again(monotonic())
            return
        if probe:
            if self._speaker.output is None:
                self._speaker.probe()
            with self._changed:
                self._want_probe = False
                self._changed.notify_all()
        if self._speaker.output is None and (want_open or writer is not None) and not self._speaker.open():
            if self._outage.waits:
                self._outage.begin(monotonic(), self._speaker.played_s)
            else:
                self._give_up()

    def _look_again(self, now: float) -> None:
        """Jobs wait for the device: looks for it when that is due, and plays on."""
        with self._changed:
            busy, begun = self._line.busy, self._line.playing[:]
            ring = self._speaker.ring
        if not busy:
            self._outage.end()
        elif self._outage.over(now):
            self._fail(
                begun, errors.AudioDeviceLost, f"the audio device stopped, and is not back: {self.error}"
            )
            self._give_up()
        elif self._outage.due(now) and self._speaker.resume():
            self._outage.end()
            if self._speaker.ring is not ring:
                text = "the audio device stopped, and what came back takes another rate or other channels"
                self._fail(begun, errors.AudioDeviceLost, text)

    def _give_up(self) -> None:
        error = self._speaker.error or errors.NoAudioDevice("the audio device cannot be opened")
        self._fail(self._everybody(), errors.NoAudioDevice, error.message, error.hint)

    def _feed(self) -> None:
        """Moves the writing job's audio until the ring is full or there is no more."""
        moved = True
        while moved:
            with self._changed:
                late = self._line.late(monotonic(), self._speaker.ahead_s, self._speaker.latency_s)
                sink, output = self._line.writer, self._speaker.output
                if not late and (sink is None or output is None or self._speaker.cold):
                    return
                changed = False
                if not late and sink and output and not sink.job.ended:
                    was_ready = self.may_write(sink)
                    moved = self._line.pump(self._speaker.ring, output.speaker.rate)
                    changed = sink.end is not None or (self.may_write(sink) and not was_ready)
            for missed, text in late:
                self._fail([missed], errors.DeadlineMissed, text)
            if sink and sink.job.ended:
                self.drop(sink)  # it may have ended before it knew its sink
            elif changed:
                self._wake()
            self._tell()

    def _settle(self, now: float) -> None:
        """Ends jobs that were heard, notices a lost device, closes an idle one."""
        output = self._speaker.output
        if output is None:
            return
        if output.stalled(now):
            self._recover(now)
            return
        self._speaker.tell_underruns(now)
        with self._changed:
            self._line.latency_frames = output.latency_frames
            told = self._line.told(self._speaker.ring)
            heard = self._line.heard(self._speaker.ring, output.frames)
            if self._line.busy or heard:
                self._idle_since = now
            idle = now - self._idle_since > max(self._speaker.keep_open_s, self._speaker.tail_s)
        for sink, news in [*told, *heard]:
            sink.job.announce(heard=True)
            for one in news:
                sink.job.tell(one)
        for sink, _ in heard:
            sink.job.done()
        self._tell()
        if idle:
            self._speaker.close()
            self._speaker.look_back()

    def _recover(self, now: float) -> None:
        """The device takes no more audio: it ran dry, and a new stream goes on, or it is gone."""
        with self._changed:
            busy = self._line.busy
        unplayed = 0
        if busy:
            unplayed = self._speaker.stop_stalled()
            with self._changed:
                self._speaker.ring.rewind(unplayed)
                self._line.rewound()
            if self._speaker.reopen(now):
                self._speaker.tell_underruns(now)
                return
        self._speaker.tell_lost()
        self._speaker.close(lost=True)
        if busy and self._outage.waits:
            with self._changed:
                self._speaker.ring.rewind(self._speaker.handed - unplayed)
            self._outage.begin(now, self._speaker.played_s)
            return
        with self._changed:
            sinks = self._line.current
        self._fail(sinks, errors.AudioDeviceLost, f"the audio device {self.device!r} stopped")

    # -- endings --------------------------------------------------------------------------------

    def _everybody(self) -> list[PlayerSink]:
        with self._changed:
            return self._line.everybody

    def _fail(
        self, sinks: list[PlayerSink], error: type[errors.EdgedError], message: str, hint: str | None = None
    ) -> None:
        for sink in sinks:
            sink.job.fail(error(message, hint))
            self.drop(sink)  # it may have ended before it knew its sink
