"""The jobs in line for the loudspeaker: which one writes, which wait, which are being heard.

No thread of its own: all of it is guarded by the lock of its one owner, `player`. Neighbour: `segment`.
"""

from __future__ import annotations

from collections import deque

from edged.audio.ring import Ring
from edged.audio.segment import PlayerSink


class Line:
    """writer: has claimed the loudspeaker; None only when nobody waits for it. playing: with audio in
    the ring, in its order; the writer is among them once its first sample is there."""

    def __init__(self) -> None:
        self.writer: PlayerSink | None = None
        self.playing: list[PlayerSink] = []
        self._waiting: deque[PlayerSink] = deque()

    @property
    def busy(self) -> bool:
        return bool(self.playing or self.writer)

    @property
    def current(self) -> list[PlayerSink]:
        """Those that a device which goes away takes with it."""
        return list(dict.fromkeys([*self.playing, *([self.writer] if self.writer else [])]))

    @property
    def everybody(self) -> list[PlayerSink]:
        return [*self.current, *self._waiting]

    def join(self, sink: PlayerSink) -> None:
        """A sink has audio: it writes, or waits for its turn."""
        if self.writer is None:
            self.writer = sink
        elif sink is not self.writer and sink not in self._waiting:
            self._waiting.append(sink)

    def release(self, sink: PlayerSink) -> None:
        """Its last sample is in the ring, or will never come: the next one writes."""
        if self.writer is sink:
            self.writer = self._waiting.popleft() if self._waiting else None

    def leave(self, sink: PlayerSink, ring: Ring) -> bool:
        """Takes a job's audio out, wherever it is; True when a part of it was in the ring."""
        inside = sink in self.playing and sink.start is not None
        if inside and sink.start is not None:
            self.playing.remove(sink)
            if sink.end is None:
                ring.promised = False
            ring.cut(sink.start, ring.written if sink.end is None else sink.end)
        if sink in self._waiting:
            self._waiting.remove(sink)
        self.release(sink)
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
            self.release(sink)
        return moved

    def heard(self, read: int, frames: int, latency_frames: int) -> list[PlayerSink]:
        """Takes out the jobs whose last sample left the device's buffer, too.

        read: the ring's position, frames: what the device asked for so far. Frames, not seconds: a device
        that has stopped has not played its buffer.
        """
        ended: list[PlayerSink] = []
        for sink in self.playing:
            if sink.end is None or read < sink.end:
                break
            sink.left_at = sink.left_at or frames
            if frames >= sink.left_at + latency_frames:
                ended.append(sink)
        self.playing = self.playing[len(ended) :]
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
        waits = [(sink, latency_s) for sink in self._waiting]
        if self.writer is not None and self.writer.start is None:
            waits.insert(0, (self.writer, ahead_s))
        late = []
        for sink, wait_s in waits:
            excess_s = now + wait_s - sink.job.deadline if sink.job.deadline is not None else 0.0
            if excess_s > 0:
                text = f"its first word would be heard {max(1, round(excess_s * 1e3))} ms after the deadline"
                late.append((sink, text))
        return late
