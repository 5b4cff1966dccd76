"""Whose turn it is where several synthesizers have work: each gets its share of the engine thread's time.

Engine thread only; a part of the scheduler, pure Python. Calls differ in length by far (a decoder step
of 10 ms, a whole sentence of 200 ms), so it is their seconds that are shared and not their number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

FAVOUR = 4.0  # an urgent pool gets that many times the time of one that is not


@dataclass(slots=True)
class Turns:
    """used: engine seconds of each pool, discounted while it was urgent."""

    used: dict[str, float] = field(default_factory=dict)
    _ready: frozenset[str] = frozenset()

    def pick(self, ready: Sequence[str]) -> str:
        """The pool that had the least time, the first of those that had as little. `ready` is not empty."""
        used = self.used
        going_on = [used.get(pool, 0.0) for pool in ready if pool in self._ready]
        # One that had nothing to do has saved up no time: it begins level with the others.
        floor = min(going_on, default=max(used.values(), default=0.0))
        for pool in ready:
            if pool not in self._ready:
                used[pool] = max(used.get(pool, 0.0), floor)
        self._ready = frozenset(ready)
        return min(ready, key=lambda pool: used[pool])

    def charge(self, pool: str, seconds: float, urgent: bool) -> None:
        """Notes what a call of the pool took."""
        self.used[pool] = self.used.get(pool, 0.0) + (seconds / FAVOUR if urgent else seconds)
