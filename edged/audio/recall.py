"""Audio on its way back from the ring to its sink: it was cut out, and the reader is leaving it.

Guarded by the player's lock. Neighbours: `segment` has at most one at a time; `ring`.
"""

from __future__ import annotations

from dataclasses import dataclass

from edged.audio.ring import Ring
from edged.job import Samples


@dataclass(frozen=True, slots=True)
class Recall:
    """[start, end): what was cut out. audio: mono, from the position `at` on, which was not read then."""

    ring: Ring
    start: int
    end: int
    at: int
    audio: Samples

    @classmethod
    def of(cls, ring: Ring, start: int, end: int) -> Recall:
        """Cuts it out; the writer must be excluded."""
        at = min(max(start, ring.read), end)
        recall = cls(ring, start, end, at, ring.copy(at, end))
        ring.cut(start, end)
        return recall

    def left(self, read: Ring | None) -> int | None:
        """Where the reader left the audio, a position; None while it may still be there.

        read: the ring that has a reader. He is the only one who knows, a callback later.
        """
        left = self.ring.left(self.start, self.end)
        if left is None and self.ring is not read:
            left = self.ring.read
        return None if left is None else min(max(left, self.at), self.end)
