"""Audio on its way back from the ring to its sinks: a cut, and what it cuts off, until the reader came to it.

Only the reader knows where it left the audio, a callback later. Meanwhile nobody writes. Guarded by the
player's lock. Neighbours: `line` owns the one recall; `ring`, `segment`.
"""

from __future__ import annotations

from dataclasses import dataclass

from edged.audio.ring import Ring
from edged.audio.segment import PlayerSink
from edged.job import Samples


@dataclass(frozen=True, slots=True)
class Part:
    """One job's audio from the position `at` on."""

    sink: PlayerSink
    at: int
    audio: Samples


class Recall:
    """Everything from `start` to the end of what was written. Made, or made longer, by `add`."""

    def __init__(self, ring: Ring) -> None:
        self.parts: list[Part] = []
        self._ring = ring
        self._start = self._end = ring.written

    def add(self, sinks: list[PlayerSink]) -> None:
        """sinks: in the ring's order, each of them before those that are here."""
        ring, read = self._ring, self._ring.read
        parts = []
        for sink in sinks:
            assert sink.start is not None
            end = self._end if sink.end is None else sink.end
            at = min(max(sink.start, read), end)
            parts.append(Part(sink, at, ring.copy(at, end)))
            self._start = min(self._start, sink.start)
        self.parts = parts + self.parts
        ring.promised = False
        ring.cut(self._start, self._end)

    def left(self, reading: bool, margin: int) -> int | None:
        """Where the reader left the audio; None while it may still be there.

        reading: a device is open. margin: more than a device asks for at once.
        """
        ring = self._ring
        read, (end, position) = ring.read, ring.jump
        if read >= self._end:
            return position if end == self._end else self._end
        if not reading:
            return read
        return self._start if read + margin < self._start else None
