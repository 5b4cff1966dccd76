"""What people do to speech while it is heard: pause it, go on with it, skip a sentence of it.

Called on any thread; it takes the player's lock. What comes back from the ring is given to its jobs on
`edged-player` (`settle`). Neighbours: `player` owns it; it works on the `line`, with a `recall`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from edged.audio.device import Loudspeaker
from edged.audio.line import Line
from edged.audio.recall import Recall
from edged.audio.segment import PlayerSink
from edged.job import Job
from edged.protocol import How

# Has a job spoken anew from an utterance on, in chunks of that take (`edged.engines.Engines.send_back`).
SendBack = Callable[[Job, int, int], None]


class Remote:
    """changed: the player's lock. poke: wakes its thread, with the lock held. wake: wakes the engine."""

    def __init__(
        self,
        line: Line,
        speaker: Loudspeaker,
        changed: threading.Condition,
        poke: Callable[[], None],
        wake: Callable[[], None],
        send_back: SendBack,
    ) -> None:
        self._line = line
        self._speaker = speaker
        self._changed = changed
        self._poke = poke
        self._wake = wake
        self._send_back = send_back

    def pause(self, job: Job) -> bool:
        """Silences a job within a callback and the latency, until it is resumed; others go on. What of it was
        not heard waits. False for one that is paused already, has ended or is none of the loudspeaker's."""
        return self._do(job, self._pause)

    def resume(self, job: Job, how: How = "exact") -> bool:
        """Lets a job be heard again when it is its turn: from where it was, from the beginning of that
        utterance ("sentence"), or from its own ("restart"). False for one that is not paused."""
        return self._do(job, lambda sink: self._resume(sink, how))

    def skip(self, job: Job) -> bool:
        """Goes on with the next utterance; the job ends where there is none. False while none is heard."""
        return self._do(job, self._skip)

    @property
    def held(self) -> bool:
        return self._line.held

    def hold(self, held: bool) -> None:
        """Whether those must wait that do not write yet and were not resumed."""
        with self._changed:
            self._line.held = held
            self._line.choose()
            self._poke()
        self._wake()

    def is_paused(self, job: Job) -> bool:
        """It will not be heard before somebody resumes it."""
        with self._changed:
            line, sink = self._line, job.sink
            if not isinstance(sink, PlayerSink):
                return False
            return sink.paused or (line.held and not sink.sounding and sink not in line.current)

    def position_s(self, job: Job) -> float | None:
        """How far into a job's audio the listener is, in seconds; None before it had its turn."""
        with self._changed:
            sink, output = job.sink, self._speaker.output
            if not isinstance(sink, PlayerSink) or not (sink.begun or sink.start is not None):
                return None
            return sink.heard_s(self._speaker.ring.read - (output.latency_frames if output else 0))

    # -- on the player's thread -----------------------------------------------------------------

    def settle(self) -> None:
        """Gives the sinks what comes back from the ring, once the reader has left it; tells the turns."""
        with self._changed:
            output = self._speaker.output
            if output is not None:
                # A device asks for less than its latency at once.
                self._take_back(True, output.frames, 2 * output.latency_frames)
            else:
                self._take_back(False, 0, 0)
        self.tell()

    def tell(self) -> None:
        """Tells of the jobs that fell silent or are heard again."""
        with self._changed:
            turns, self._line.turns = self._line.turns, []
        for turn in turns:
            turn.job.tell_turn(turn.paused, turn.position_s)

    # -- with the lock held ---------------------------------------------------------------------

    def _do(self, job: Job, what: Callable[[PlayerSink], bool]) -> bool:
        with self._changed:
            sink = job.sink
            if not isinstance(sink, PlayerSink) or sink.dropped or job.ended or not what(sink):
                return False
            self._poke()
        self.tell()
        self._wake()
        return True

    def _pause(self, sink: PlayerSink) -> bool:
        if sink.paused:
            return False
        sink.paused = sink.silent = True
        sink.sounding = False
        if sink in self._line.playing:
            self._call_back(sink)
        elif not self._on_its_way(sink):
            if sink in self._line.everybody:
                self._line.take_out(sink)
                self._line.place(sink)
            self._line.tell_paused(sink)
        return True

    def _resume(self, sink: PlayerSink, how: How) -> bool:
        if not sink.paused:
            return False
        sink.paused, sink.sounding, sink.how = False, True, how
        if not self._on_its_way(sink):
            if sink.silent:
                self._line.tell_paused(sink)
            inside = sink in self._line.paused
            self._line.take_out(sink)
            self._go_on(sink, inside)
        return True

    def _skip(self, sink: PlayerSink) -> bool:
        if sink in self._line.playing and sink.heard(self._speaker.ring.read):
            sink.skipping = True
            self._call_back(sink)
        elif self._on_its_way(sink):
            sink.skipping = True
        elif sink.paused and sink.begun:
            self._sent(sink, sink.skip())
        else:
            return False
        return True

    def _take_back(self, reading: bool, frames: int, margin: int) -> None:
        """reading, frames: a device is open, and asked for so many so far. margin: of `Recall.left`."""
        line, recall = self._line, self._line.recall
        for sink in line.paused if not reading else ():
            if sink.silent:
                line.tell_paused(sink)
        left = recall.left(reading, margin) if recall is not None else None
        if recall is None or left is None:
            return
        line.recall = None
        for part in recall.parts:
            sink = part.sink
            if sink.dropped:
                continue
            sink.take_back(part.at, part.audio, left)
            if sink.skipping:
                sink.skipping = False
                self._sent(sink, sink.skip())
            if sink.paused:
                sink.left_at = frames  # it falls silent when the device has played what it has
                line.place(sink)
                continue
            if sink.silent:  # it was resumed meanwhile
                line.tell_paused(sink)
            self._go_on(sink, True)
        line.choose()

    def _on_its_way(self, sink: PlayerSink) -> bool:
        recall = self._line.recall
        return recall is not None and any(part.sink is sink for part in recall.parts)

    def _call_back(self, sink: PlayerSink) -> None:
        """All audio in the ring from that of a job on goes back to its sinks."""
        line = self._line
        at = line.playing.index(sink)
        sinks, line.playing = line.playing[at:], line.playing[:at]
        if line.recall is None:
            line.recall = Recall(self._speaker.ring)
        line.recall.add(sinks)
        writer, line.writer = line.writer, None
        if writer is not None and writer not in sinks:
            line.place(writer)
        line.choose()

    def _go_on(self, sink: PlayerSink, joined: bool) -> None:
        """joined: it has audio, or its end."""
        how, sink.how = sink.how, "exact"
        sink.left_at = sink.came_at = 0
        again = sink.go_on(how)
        self._sent(sink, again)
        if joined and again is None:
            self._line.place(sink)

    def _sent(self, sink: PlayerSink, utterance: int | None) -> None:
        if utterance is not None:
            self._send_back(sink.job, utterance, sink.take)
