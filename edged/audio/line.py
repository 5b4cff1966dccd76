"""The jobs at the loudspeaker: which one writes, which are heard, and what the speech queue wants of them.

No thread of its own: all of it is guarded by the lock of its one owner, `player`, but for `allowed`, which
the engine thread reads. Neighbours: `edged.speech.queue` says whose turn it is; `segment` is a job's audio.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from edged.audio.ring import Ring
from edged.audio.segment import PlayerSink
from edged.job import Job, News, Paused, Priority
from edged.settings import Speech
from edged.speech.actions import Actions, Drop, How, Pause, Reason
from edged.speech.options import Wish
from edged.speech.queue import SpeechQueue

# Has a job spoken anew from an utterance on, in chunks of that take (`edged.engines.Engines.send_back`).
SendBack = Callable[[Job, int, int], None]


class Line:
    """writer: has the loudspeaker. playing: with audio in the ring, in its order; the writer is among them
    once its first sample is there. allowed: those whose audio is wanted now.

    Methods with a ring may cut from it. After each of them `news` is to be asked for.
    """

    def __init__(self, settings: Speech, send_back: SendBack, unheard: Callable[[], int] = lambda: 0) -> None:
        """unheard: frames that the device has taken and not played yet."""
        self.writer: PlayerSink | None = None
        self.playing: list[PlayerSink] = []
        self.allowed: frozenset[PlayerSink] = frozenset()
        self.latency_frames = 0  # of the open device
        self.held = False  # people want silence: jobs that come wait, but for important ones
        self._queue: SpeechQueue[PlayerSink] = SpeechQueue(settings)
        self._send_back = send_back
        self._unheard = unheard
        self._dropped: list[tuple[PlayerSink, Reason]] = []
        self._paused: list[tuple[PlayerSink, News]] = []
        self._turned = False
        self._turn: tuple[PlayerSink | None, frozenset[PlayerSink]] = (None, self.allowed)

    def use(self, settings: Speech) -> None:
        self._queue.settings = settings

    @property
    def busy(self) -> bool:
        return bool(self.playing or self.writer)

    @property
    def current(self) -> list[PlayerSink]:
        """Those that a device which goes away takes with it."""
        return list(dict.fromkeys([*self.playing, *([self.writer] if self.writer else [])]))

    @property
    def everybody(self) -> list[PlayerSink]:
        return list(dict.fromkeys([*self.current, *self._queue.paused, *self._queue.waiting]))

    def news(self) -> tuple[list[tuple[PlayerSink, Reason]], list[tuple[PlayerSink, News]], bool]:
        """Since the last time: those that the queue gave up, whose jobs are yet to be told; those that were
        paused; and whether others are allowed, which the engine does not know yet."""
        news = self._dropped, self._paused, self._turned
        self._dropped, self._paused, self._turned = [], [], False
        return news

    # -- what happens ---------------------------------------------------------------------------

    def add(self, sink: PlayerSink, wish: Wish, now: float, ring: Ring) -> None:
        """A job came. Raises `Busy`."""
        self._act(self._queue.add(sink, wish, now), ring)
        if self.held and wish.priority is not Priority.IMPORTANT:  # an alarm is heard all the same
            sink.job.paused = True
            self.hold([sink], ring)

    def ready(self, sink: PlayerSink, ring: Ring) -> None:
        """It has audio: it may begin when it is its turn."""
        self._act(self._queue.ready(sink), ring)

    def release(self, sink: PlayerSink, ring: Ring) -> None:
        """Its last sample is in the ring: the next one writes."""
        if self.writer is sink:
            self.writer = None
        self._act(self._queue.written(sink), ring)

    def leave(self, sink: PlayerSink, ring: Ring) -> bool:
        """Takes a job's audio out, wherever it is; True when a part of it was in the ring."""
        self._note_heard(sink, ring)
        inside = self._take_out(sink, ring)
        self._act(self._queue.ended(sink), ring)
        return inside

    def hold(self, sinks: list[PlayerSink], ring: Ring) -> None:
        """People want these paused."""
        self._act(self._queue.hold(sinks), ring)

    def go_on(self, sinks: list[PlayerSink], ring: Ring) -> None:
        """Ends `hold`."""
        self._act(self._queue.release(sinks), ring)

    def stop(self, sinks: list[PlayerSink], ring: Ring) -> None:
        """These are about to be cancelled."""
        self._act(self._queue.stop(sinks), ring)

    def skip(self, sink: PlayerSink, ring: Ring) -> bool:
        """Ends the sentence of it that is being heard, or would be next; False where none is."""
        first = self.playing[0] if self.playing else None
        return (sink is first or sink in self._queue.paused) and sink.skip(ring, self._position(ring))

    def respeak(self, sink: PlayerSink, ring: Ring) -> None:
        """From the next sentence on it is to be spoken otherwise."""
        utterance = sink.respeak(ring)
        if utterance is not None:
            self._send_back(sink.job, utterance, sink.take)

    def settle(self, read: Ring | None) -> None:
        """Brings back what was taken out of the ring, as far as its reader has left it.

        read: the ring that has a reader."""
        for sink in self._queue.paused:
            sink.settle(read)

    # -- what is told ---------------------------------------------------------------------------

    def told(self, ring: Ring) -> list[tuple[PlayerSink, list[News]]]:
        """The jobs that are heard, with what is to be told of them now."""
        position = self._position(ring)
        heard = [s for s in self.playing if s.start is not None and s.start < position]
        return [(sink, sink.told(position)) for sink in heard]

    def next_news(self, ring: Ring) -> int | None:
        """Frames until there is something to tell."""
        position = self._position(ring)
        frames = [sink.next_news(position) for sink in self.playing]
        return min((n for n in frames if n is not None), default=None)

    def _position(self, ring: Ring) -> int:
        """The one that is heard."""
        return ring.read - self._unheard()

    def _note_heard(self, sink: PlayerSink, ring: Ring) -> None:
        line = sink.job.timeline
        line.heard_s = max(line.heard_s, sink.heard_s(self._position(ring)))

    def pump(self, ring: Ring, rate: int) -> bool:
        """Moves a piece of the writer's audio into the ring; False when nothing moved."""
        sink = self.writer
        if sink is None:
            return False
        moved = sink.pump(ring, rate)
        if sink.start is not None and sink not in self.playing:
            self.playing.append(sink)
        if sink.end is not None:
            self.release(sink, ring)
        self.publish(ring)
        return moved

    def publish(self, ring: Ring) -> None:
        """Tells the ring's reader whose level differs."""
        begun = [(s.start, sys.maxsize if s.end is None else s.end, s.level) for s in self.playing]
        ring.levels = tuple(
            (start, end, level) for start, end, level in begun if start is not None and level != 1
        )

    def heard(self, ring: Ring, frames: int) -> list[tuple[PlayerSink, list[News]]]:
        """Takes out the jobs whose last sample left the device's buffer, too, with what is left to tell.

        frames: what the device asked for so far. Frames, not seconds: a device that has stopped has not
        played its buffer.
        """
        ended: list[PlayerSink] = []
        for sink in self.playing:
            if sink.end is None or ring.read < sink.end:
                break
            sink.left_at = sink.left_at or frames
            if frames >= sink.left_at + self.latency_frames:
                ended.append(sink)
        self.playing = self.playing[len(ended) :]
        for sink in ended:
            self._act(self._queue.ended(sink), ring)
        return [(sink, sink.told(sys.maxsize)) for sink in ended]

    def rewound(self) -> None:
        """What had left the ring may be in it again."""
        for sink in self.playing:
            sink.left_at = 0

    # -- time -----------------------------------------------------------------------------------

    def next_look(self, now: float) -> float | None:
        """Seconds until `look` has something to do."""
        return self._queue.next_look(now)

    def look(self, now: float, ring: Ring) -> None:
        self._act(self._queue.look(now), ring)

    def late(self, now: float, ahead_s: float, latency_s: float) -> list[tuple[PlayerSink, str]]:
        """Jobs that would begin to be heard after their deadline, and how to say so.

        ahead_s: until a sample that is written now is heard. It holds for the writer only: those that
        wait may get their turn sooner, when the audio before them is cancelled.
        """
        waits = [(sink, latency_s) for sink in self._queue.waiting]
        if self.writer is not None and self.writer.start is None and self.writer.take == 0:
            waits.insert(0, (self.writer, ahead_s))
        late = []
        for sink, wait_s in waits:
            excess_s = now + wait_s - sink.job.deadline if sink.job.deadline is not None else 0.0
            if excess_s > 0:
                text = f"its first word would be heard {max(1, round(excess_s * 1e3))} ms after the deadline"
                late.append((sink, text))
        return late

    # -- what the queue wants -------------------------------------------------------------------

    def _act(self, actions: Actions[PlayerSink], ring: Ring) -> None:
        for action in actions:
            sink = action.key
            if isinstance(action, Drop):
                self._note_heard(sink, ring)
                self._take_out(sink, ring)
                sink.clear()
                self._dropped.append((sink, action.reason))
            elif isinstance(action, Pause):
                self._note_heard(sink, ring)
                if sink.silenced():
                    reason = "asked" if action.asked else "interrupted"
                    self._paused.append((sink, Paused(sink.heard_s(ring.read), reason)))
                self._pause(sink, action.how, ring)
            else:
                self.writer = sink
        self.allowed = frozenset(self._wanted())
        turn = self.writer, self.allowed  # the writer is allowed more than the others
        self._turned = self._turned or turn != self._turn
        self._turn = turn

    def _wanted(self) -> list[PlayerSink]:
        """Whose audio is needed next: that of the writer and the first in turn, and of those behind one that
        has no text yet. Nobody's behind the writer: what is in the ring lasts for whoever comes then."""
        wanted = [self.writer] if self.writer is not None else []
        for sink in self._queue.upcoming():
            wanted.append(sink)
            if sink is self.writer or sink.has_audio or sink.job.prepared:
                break
        return wanted

    def _back_to(self, sink: PlayerSink, utterance: int, ring: Ring) -> None:
        self._take_out(sink, ring)
        sink.rewind(utterance)
        self._send_back(sink.job, utterance, sink.take)

    def _pause(self, sink: PlayerSink, how: How, ring: Ring) -> None:
        if how == "exact":
            self._set_aside(sink, ring)
        else:
            self._back_to(sink, 0 if how == "restart" else sink.heard(self._position(ring)), ring)

    def _set_aside(self, sink: PlayerSink, ring: Ring) -> None:
        """Out of the ring, to go on there later."""
        if self.writer is sink:
            self.writer = None
            ring.promised = False
        if sink in self.playing:
            self.playing.remove(sink)
        sink.keep(ring)

    def _take_out(self, sink: PlayerSink, ring: Ring) -> bool:
        """Out of the ring, with a short fade where it is being heard."""
        if self.writer is sink:
            self.writer = None
        if sink not in self.playing or sink.start is None:
            return False
        self.playing.remove(sink)
        if sink.end is None:
            ring.promised = False
        ring.cut(sink.start, ring.written if sink.end is None else sink.end)
        return True
