"""How much encoded audio is kept for clients, over all jobs, and who may add to it.

No thread and no lock of its own: `reply` asks under its lock. Audio counts from its encoding until the
socket took it. A whole reply cannot be delivered in part, so many of them could fill the memory and wait
for each other for ever; most of it is therefore reserved for the oldest, which can always be completed.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True, eq=False)
class Holding:
    """The bytes that one job holds. whole: they are delivered together, when the last was made."""

    whole: bool
    nbytes: int = 0


class Account:
    """`total` exceeds `limit` by one piece at most, whatever the jobs do.

    Five eighths are for the oldest whole reply (`share`, and none may be larger): of the default 64 MB
    that is the longest text that is accepted by default, at half speed, as wav at 24 kHz. A quarter is
    for all others. The last eighth is for replies that are still `small`: a short message does not wait
    until the long ones before it are delivered.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.share = limit * 5 // 8
        self.small = limit // 256
        self.total = 0
        self._whole: dict[Holding, None] = {}  # those that hold something, the oldest first

    def room(self, holding: Holding) -> bool:
        """True when this job may add a piece."""
        oldest = next(iter(self._whole), None)
        if holding.whole and oldest in (None, holding):
            return True
        # Nothing else is given away of the oldest one's share, also before there is an oldest one: it
        # may come at any time, and the next one takes over the share when it is gone.
        reserved = self.share - (0 if oldest is None else oldest.nbytes)
        top = self.limit if holding.nbytes <= self.small else self.limit - self.limit // 8
        return self.total + reserved < top

    def add(self, holding: Holding, nbytes: int) -> None:
        self.total += nbytes
        holding.nbytes += nbytes
        if holding.whole and holding.nbytes:
            self._whole[holding] = None

    def release(self, holding: Holding, nbytes: int) -> None:
        self.total -= nbytes
        holding.nbytes -= nbytes
        if not holding.nbytes:
            self._whole.pop(holding, None)
