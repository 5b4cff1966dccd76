"""The jobs in line for the loudspeaker: which one writes, which wait, which are heard or paused.

No thread of its own: all of it is guarded by the lock of its one owner, `player`, but for `front`, which
the engine thread reads. Neighbours: `segment` is a job's audio; `remote` pauses jobs and resumes them.
"""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass

from edged.audio.recall import Recall
from edged.audio.ring import Ring
from edged.audio.segment import PlayerSink
from edged.job import Job


@dataclass(frozen=True, slots=True)
class Turn:
    """A job fell silent, or is heard again, this far into its audio."""

    job: Job
    paused: bool
    position_s: float


class Line:
    """writer: has claimed the loudspeaker; None only when nobody waits for it, or nobody may have it.
    playing: with audio in the ring, in its order; the writer is among them once its first sample is there.
    front: whose audio is needed next. waiting: in the order of their arrival. held: those that wait and were
    not resumed go on waiting. recall: what is on its way back from the ring. turns: yet to be told.
    """

    def __init__(self) -> None:
        self.writer: PlayerSink | None = None
        self.front: PlayerSink | None = None
        self.playing: list[PlayerSink] = []
        self.turns: list[Turn] = []
        self.held = False
        self.waiting: list[PlayerSink] = []
        self.paused: list[PlayerSink] = []
        self.recall: Recall | None = None
        self._arrivals = 0

    @property
    def busy(self) -> bool:
        return bool(self.playing or self.writer or self.recall)

    @property
    def current(self) -> list[PlayerSink]:
        """Those that a device which goes away takes with it."""
        back = [part.sink for part in self.recall.parts] if self.recall else []
        return list(dict.fromkeys([*self.playing, *back, *([self.writer] if self.writer else [])]))

    @property
    def everybody(self) -> list[PlayerSink]:
        return [*self.current, *self.waiting, *self.paused]

    @property
    def unsettled(self) -> bool:
        """Something is to be told as soon as it is heard."""
        return bool(
            self.recall or any(s.sounding for s in self.playing) or any(s.silent for s in self.paused)
        )

    def join(self, sink: PlayerSink) -> None:
        """A sink has audio: it writes, or waits for its turn."""
        if not sink.arrival:
            self._arrivals += 1
            sink.arrival = self._arrivals
        if sink not in self.everybody:
            self.place(sink)

    def leave(self, sink: PlayerSink, ring: Ring) -> bool:
        """Takes a job's audio out, wherever it is; True when a part of it was in the ring."""
        inside = sink in self.playing
        if inside and sink.start is not None:
            if sink.end is None:
                ring.promised = False
            ring.cut(sink.start, ring.written if sink.end is None else sink.end)
        self.take_out(sink)
        return inside

    def pump(self, ring: Ring, rate: int) -> bool:
        """Moves a piece of the writer's audio into the ring; False when nothing moved."""
        sink = self.writer
        if sink is None:
            return False
        moved = sink.pump(ring, rate)
        if sink.start is not None and sink not in self.playing:
            self.playing.append(sink)
        if sink.end is not None:
            self.writer = None
            self.choose()
        return moved

    def heard(self, read: int, frames: int, latency_frames: int) -> list[PlayerSink]:
        """Takes out the jobs whose last sample left the device's buffer, too; notes the turns of others.

        read: the ring's position, frames: what the device asked for so far. Frames, not seconds: a device
        that has stopped has not played its buffer.
        """
        ended: list[PlayerSink] = []
        for sink in self.playing:
            if sink.sounding and sink.start is not None and read > sink.start:
                sink.came_at = sink.came_at or frames
                if frames >= sink.came_at + latency_frames:
                    self._tell_resumed(sink)
            sink.release(read - latency_frames)
        for sink in self.playing:
            if sink.end is None or read < sink.end:
                break
            sink.left_at = sink.left_at or frames
            if frames >= sink.left_at + latency_frames:
                self._tell_resumed(sink)
                ended.append(sink)
        self.playing = self.playing[len(ended) :]
        for sink in self.paused:
            if sink.silent and frames >= sink.left_at + latency_frames:
                self.tell_paused(sink)
        return ended

    def rewound(self) -> None:
        """What had left the ring may be in it again."""
        for sink in self.playing:
            sink.left_at = 0

    def late(self, now: float, ahead_s: float, latency_s: float) -> list[tuple[PlayerSink, str]]:
        """Jobs that would begin to be heard after their deadline, and how to say so.

        ahead_s: until a sample that is written now is heard. It holds for the writer only: those that
        wait may get their turn sooner, when the audio before them is cancelled.
        """
        waits = [(sink, latency_s) for sink in self.waiting if not sink.begun]
        if self.writer is not None and self.writer.start is None and not self.writer.begun:
            waits.insert(0, (self.writer, ahead_s))
        late = []
        for sink, wait_s in waits:
            excess_s = now + wait_s - sink.job.deadline if sink.job.deadline is not None else 0.0
            if excess_s > 0:
                text = f"its first word would be heard {max(1, round(excess_s * 1e3))} ms after the deadline"
                late.append((sink, text))
        return late

    def _tell_resumed(self, sink: PlayerSink) -> None:
        if sink.sounding and sink.start is not None:
            sink.sounding = False
            self.turns.append(Turn(sink.job, False, sink.heard_s(sink.start)))

    def tell_paused(self, sink: PlayerSink) -> None:
        sink.left_at, sink.silent = 0, False
        self.turns.append(Turn(sink.job, True, sink.heard_s(0)))

    # -- turns ----------------------------------------------------------------------------------

    def place(self, sink: PlayerSink) -> None:
        if sink.paused:
            self.paused.append(sink)
        else:
            insort(self.waiting, sink, key=lambda one: one.arrival)
        self.choose()

    def take_out(self, sink: PlayerSink) -> None:
        for sinks in (self.playing, self.waiting, self.paused):
            if sink in sinks:
                sinks.remove(sink)
        if self.writer is sink:
            self.writer = None
        self.choose()

    def choose(self) -> None:
        """The next one writes, if it may."""
        may = [sink for sink in self.waiting if sink.sounding or not self.held]
        if self.writer is None and may and self.recall is None:
            self.writer = may[0]
            self.waiting.remove(may[0])
        self.front = self.writer or (self.waiting[0] if self.waiting else None)
