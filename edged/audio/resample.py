"""A streaming mono resampler: libsoxr behind one call. Each is used by one thread.

Neighbours: `encode` (a client's sample rate) and `segment` (the loudspeaker's).
"""

from __future__ import annotations

import numpy as np
import soxr

from edged.job import Samples

_NOTHING: Samples = np.zeros(0, dtype=np.float32)


class Resampler:
    """Feeds of any size in, the same audio at another rate out; the sum is as if done in one piece.

    soxr holds back about 20 ms until it has seen what follows; `last` lets it go. It delays nothing.
    """

    def __init__(self, source_rate: int, target_rate: int) -> None:
        self.source_rate = source_rate
        self.target_rate = target_rate
        self._stream: soxr.ResampleStream | None = None
        if source_rate != target_rate:
            self._stream = soxr.ResampleStream(source_rate, target_rate, 1, dtype="float32")
        self._fed = False

    def feed(self, samples: Samples, last: bool = False) -> Samples:
        if self._stream is None:
            return samples
        if not (self._fed or len(samples)):
            return _NOTHING  # soxr has nothing to flush
        self._fed = True
        return np.asarray(self._stream.resample_chunk(samples, last=last), dtype=np.float32)
