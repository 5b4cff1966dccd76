"""A job's samples made fit for the ring: its rate, and no peak above the ceiling.

Each belongs to one sink and is guarded by the player's lock. Neighbours: `segment` feeds it after the gain;
`resample`, `limiter`.
"""

from __future__ import annotations

from edged.audio.limiter import Limiter
from edged.audio.resample import Resampler
from edged.job import Samples


class Shaper:
    """Feeds of any size in; `last` ends it, and it is spent then."""

    def __init__(self, source_rate: int, ring_rate: int) -> None:
        """Rates in Hz."""
        self._resampler = Resampler(source_rate, ring_rate)
        self._limiter = Limiter(ring_rate)
        self._ratio = ring_rate / source_rate
        self._fed = self._made = 0  # samples in, frames out

    @property
    def held(self) -> int:
        """Frames of what was fed that are yet to come out."""
        return round(self._fed * self._ratio) - self._made

    def feed(self, samples: Samples, last: bool) -> Samples:
        """What is certain of it, in frames at the ring's rate."""
        out = self._limiter.feed(self._resampler.feed(samples, last), last)
        self._fed += len(samples)
        self._made += len(out)
        return out
