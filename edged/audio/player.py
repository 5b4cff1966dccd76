"""The loudspeaker: speak jobs one after the other, each heard whole or cut at once.

Thread `edged-player` owns PortAudio (through `device`) and is the ring's writer. The engine thread puts
chunks into a `PlayerSink` (`segment`) and asks whether it may go on; any thread may abort a job.

    engine --put--> PlayerSink --pump, resampled--> Ring --callback--> device

One job writes at a time: the first that puts a chunk claims the loudspeaker, and its claim ends when its
last sample is in the ring, so that the next job is synthesized while this one is still heard. The queue
of a job is bounded by `buffer_s` (`ready` turns False), the ring by `RING_S`.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from time import monotonic

from edged.audio import device
from edged.audio.ring import Ring
from edged.audio.segment import PlayerSink
from edged.errors import AudioDeviceLost, EdgedError, InternalError, NoAudioDevice, ShuttingDown
from edged.job import AudioChunk, Job
from edged.settings import Audio

log = logging.getLogger("edged.audio")

RING_S = 2.0  # how long the engine may pause between two jobs, or stumble, without being heard
RETRY_S = 1.0  # how often a missing device is looked for, at most; a look takes up to 0.2 s
PROBE_WAIT_S = 1.0  # how long a new job waits for that look
LOOK_S = 0.1  # how often the player looks at a playing stream, at least; the stall timer counts on it
IDLE_LOOK_S = 0.25  # the same when the stream is open and nothing plays


class Player:
    """`start` it once; then `sink` for every speak job. `wake` is called when a sink may be ready again."""

    def __init__(self, settings: Audio, wake: Callable[[], None], sample_rate: int = 24_000) -> None:
        """sample_rate: the voice's, tried when the device does not take 48 kHz."""
        self.error: EdgedError | None = None
        self.device = ""
        self._settings = settings
        self._wake = wake
        self._voice_rate = sample_rate
        self._changed = threading.Condition()  # its lock guards all that follows and every sink
        self._writer: PlayerSink | None = None  # the claim; None only when nobody waits for it
        self._waiting: deque[PlayerSink] = deque()
        self._playing: list[PlayerSink] = []  # with audio in the ring, in its order
        self._poked = self._want_open = self._want_probe = False
        self._stop_at: float | None = None
        self._idle_since = 0.0
        self._checked_at = 0.0
        # Stored by the player thread only:
        self._speaker: device.Speaker | None = None
        self._output: device.Output | None = None
        self._ring = Ring(1, 1)
        self._underruns = 0
        self._thread = threading.Thread(target=self._run, name="edged-player", daemon=True)
        if not settings.enabled:
            self.error = NoAudioDevice("the loudspeaker is switched off", "set audio.enabled to true")

    def start(self) -> None:
        """Looks for the device on the player's thread; `error` and `device` tell how it went."""
        if self._settings.enabled:
            self._thread.start()

    @property
    def underruns(self) -> int:
        """Gaps that were heard: the ring or the device ran dry within a job."""
        output = self._output
        return self._underruns + self._ring.underruns + (output.xruns if output else 0)

    def sink(self, job: Job, sample_rate: int) -> PlayerSink:
        """The sink of a speak job. Raises `NoAudioDevice`, after another look for one if it is time.

        Also opens the device in advance, so that it wakes up while the job is being synthesized.
        """
        with self._changed:
            if self._stop_at is not None:
                raise ShuttingDown("the loudspeaker is being closed")
            looking = self._settings.enabled and self._thread.is_alive()
            if self.error is not None and looking and monotonic() >= self._checked_at + RETRY_S:
                self._want_probe = True
                self._poke()
                self._changed.wait_for(lambda: not self._want_probe, PROBE_WAIT_S)
            if self.error is not None:
                # A new one each time: an exception that is raised twice collects tracebacks.
                raise NoAudioDevice(self.error.message, self.error.hint)
            self._want_open = True
            self._poke()
        return PlayerSink(self, job, sample_rate, job.params.volume * self._settings.volume)

    def close(self, drain_s: float = 0.0) -> None:
        """Lets jobs that are being played finish for `drain_s`, fails the rest, closes the device."""
        with self._changed:
            self._stop_at = monotonic() + drain_s
            self._poke()
        if self._thread.is_alive():
            # The tail after the last word and the closing of the device come on top.
            self._thread.join(drain_s + self._tail_s() + 2.0 * device.CLOSE_WAIT_S)
        self._fail(self._sinks(), lambda: ShuttingDown("the daemon stopped while the job was played"))

    # -- called by sinks ------------------------------------------------------------------------

    def may_write(self, sink: PlayerSink) -> bool:
        return self._writer in (None, sink) and sink.queued_s < self._settings.buffer_s

    def put(self, sink: PlayerSink, chunk: AudioChunk) -> None:
        with self._changed:
            if sink.dropped or sink.job.ended:
                return
            sink.queue(chunk)
            if self._writer is None:
                self._writer = sink
            elif sink is not self._writer and sink not in self._waiting:
                self._waiting.append(sink)
            self._poke()

    def drop(self, sink: PlayerSink) -> None:
        with self._changed:
            if sink.dropped:
                return
            sink.clear()
            if sink in self._playing and sink.start is not None:
                self._playing.remove(sink)
                if sink.end is None:
                    self._ring.promised = False
                self._ring.cut(sink.start, self._ring.written if sink.end is None else sink.end)
                self._idle_since = monotonic()
            if sink in self._waiting:
                self._waiting.remove(sink)
            self._release(sink)
            self._poke()
        self._wake()

    def _release(self, sink: PlayerSink) -> None:
        if self._writer is sink:
            self._writer = self._waiting.popleft() if self._waiting else None

    def _poke(self) -> None:
        self._poked = True
        self._changed.notify_all()

    # -- the thread -----------------------------------------------------------------------------

    def _run(self) -> None:
        self._probe()
        while True:
            with self._changed:
                if not self._poked:
                    self._changed.wait(self._pause_s(monotonic()))
                self._poked = False
                probe, self._want_open, want_open = self._want_probe, False, self._want_open
            try:
                if probe and self._output is None:
                    self._probe()
                writer = self._writer
                if self._output is None and (want_open or (writer is not None and writer.has_audio)):
                    self._open()
                self._feed()
                self._settle(monotonic())
            except Exception as exc:  # a fault here must not leave the box silent until a restart
                log.exception("the player failed")
                message = f"the player failed: {type(exc).__name__}"
                self._lose(self._sinks(), lambda: InternalError(message))
            with self._changed:
                self._want_probe = self._want_probe and not probe
                self._changed.notify_all()
                if self._may_stop(monotonic()):
                    break
        self._close_output()

    def _pause_s(self, now: float) -> float | None:
        """How long nothing will have to be done, None until the next poke."""
        output, writer = self._output, self._writer
        if output is None:
            return None if self._stop_at is None else 0.0
        if self._cold(output):
            return 0.01
        wait = LOOK_S if self._playing or writer else IDLE_LOOK_S
        if writer is not None and writer.has_audio:
            wait = 0.05  # the ring is full: it has time
        head = self._playing[0] if self._playing else None
        if head is not None and head.left_at:
            wait = min(wait, head.left_at + output.latency_s - now)
        elif head is not None and head.end is not None:
            wait = min(wait, (head.end - self._ring.read) / output.speaker.rate)
        return max(wait, 0.005)

    def _cold(self, output: device.Output) -> bool:
        """The device has not had its lead-in yet: silence it may swallow while it wakes up."""
        return output.frames * 1000 < self._settings.lead_in_ms * output.speaker.rate

    def _tail_s(self) -> float:
        """How long the stream must stay open after the last sample, or the last word is clipped."""
        output = self._output
        latency = output.latency_s if output else self._settings.latency_ms / 1000
        return 2.0 * latency + self._settings.trail_ms / 1000

    def _feed(self) -> None:
        """Moves the writing job's audio until the ring is full or there is no more."""
        while True:
            with self._changed:
                sink, output = self._writer, self._output
                if sink is None or output is None or self._cold(output):
                    return
                if sink.job.ended:  # ended before it knew its sink
                    moved = True
                else:
                    ready = self.may_write(sink)
                    moved = sink.pump(self._ring, output.speaker.rate)
                    if sink.start is not None and sink not in self._playing:
                        self._playing.append(sink)
                    if sink.end is not None:
                        self._release(sink)
                    ready = sink.end is not None or self.may_write(sink) > ready
            if sink.job.ended:
                self.drop(sink)
            elif ready:
                self._wake()
            if not moved:
                return

    def _settle(self, now: float) -> None:
        """Ends jobs that were heard, notices a lost device, closes an idle one."""
        output = self._output
        if output is None:
            return
        if output.stalled(now):
            with self._changed:
                lost = self._playing + ([self._writer] if self._writer else [])
            self._lose(lost, lambda: AudioDeviceLost(f"the audio device {self.device!r} stopped"))
            return
        heard: list[PlayerSink] = []
        with self._changed:
            for sink in self._playing:
                if sink.end is None or self._ring.read < sink.end:
                    break
                sink.left_at = sink.left_at or now
                if now >= sink.left_at + output.latency_s:
                    heard.append(sink)
            self._playing = self._playing[len(heard) :]
            if self._playing or self._writer or heard:
                self._idle_since = now
            idle = now - self._idle_since > max(self._settings.keep_open_s, self._tail_s())
        for sink in heard:
            sink.job.done()
        if idle:
            self._close_output()

    def _may_stop(self, now: float) -> bool:
        if self._stop_at is None:
            return False
        if now >= self._stop_at and (self._playing or self._writer):
            return True
        return self._output is None or now - self._idle_since > self._tail_s()

    # -- the device -----------------------------------------------------------------------------

    def _probe(self) -> bool:
        """Looks for the device and makes the ring for it, without opening a stream."""
        error: NoAudioDevice | None = None
        try:
            if self.error is not None:
                device.refresh()
            self._speaker = device.find(self._settings, self._voice_rate)
        except NoAudioDevice as exc:
            self._speaker, error = None, exc
        speaker = self._speaker
        if speaker is not None and self._ring.channels != speaker.channels * (self._ring.frames > 1):
            self._underruns += self._ring.underruns
            self._ring = Ring(int(RING_S * speaker.rate), speaker.channels)
        if error is not None and str(error) != str(self.error or ""):
            log.warning("no loudspeaker: %s", error)
        elif speaker is not None and speaker.name != self.device:
            log.info("loudspeaker %r, %d Hz, %d channels", speaker.name, speaker.rate, speaker.channels)
        self.device = speaker.name if speaker else ""
        self.error, self._checked_at = error, monotonic()
        return error is None

    def _open(self) -> None:
        """Opens the stream. When it cannot, the jobs that have audio waiting fail."""
        for _ in range(2):
            if self._speaker is None and not self._probe():
                break
            self._ring.reset()
            try:
                assert self._speaker is not None
                output = device.Output(self._speaker, self._ring, self._settings.latency_ms / 1000)
            except NoAudioDevice as exc:  # perhaps only its number changed: look again, once
                self.error, self._speaker = exc, None
                continue
            with self._changed:
                self._output, self._idle_since = output, monotonic()
            log.debug("audio stream opened, latency %.0f ms", output.latency_s * 1000)
            return
        error = self.error or NoAudioDevice("the audio device cannot be opened")
        self._fail(self._sinks(), lambda: NoAudioDevice(error.message, error.hint))

    def _close_output(self) -> None:
        with self._changed:
            output, self._output = self._output, None
        if output is not None:
            output.close()
            self._underruns += output.xruns
            log.debug("audio stream closed")

    def _lose(self, sinks: list[PlayerSink], error: Callable[[], EdgedError]) -> None:
        self._close_output()
        self._speaker = None
        self._fail(sinks, error)

    def _sinks(self) -> list[PlayerSink]:
        with self._changed:
            return [*self._playing, *([self._writer] if self._writer else []), *self._waiting]

    def _fail(self, sinks: list[PlayerSink], error: Callable[[], EdgedError]) -> None:
        for sink in sinks:
            sink.job.fail(error())
            self.drop(sink)  # a job that did not know its sink yet
