"""A true-peak limiter: what would go over the ceiling is turned down in time, everything else is untouched.

No thread of its own; each belongs to one sink and is used on the player's thread. Neighbour: `segment` feeds
it after the gain and the resampler, before the ring.

The peak between two samples is estimated at four points for each, as in ITU-R BS.1770-4, annex 2. The gain
falls over `AHEAD_S`, so that it is down when the peak comes, is held for as long, and rises with the time
constant `RELEASE_S`. All of it is whole-array arithmetic: the recursion of the release is a running maximum
of reductions, each weighted by how long it is ago.
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from edged.job import Samples

CEILING_DB = -1.0  # dBTP: a D/A converter or a codec needs so much room
MARGIN_DB = 0.4  # taken off where it is limited anyway: what four points may miss of a peak of speech
AHEAD_S = 0.004
RELEASE_S = 0.07
BLOCK = 4_096  # samples at a time: bounds the memory, and how large the weights of the release become
SILENT = 1e-5  # a reduction below this (0.0001 dB) is none, so that audio becomes untouched again

_PHASES, _TAPS = 4, 12
_HALF = _TAPS // 2  # samples that an interpolated value needs on either side
_ROW = 32  # samples whose interpolated values are one row of a matrix product


def _interpolator() -> Samples:
    """The matrix that makes of `_ROW + _TAPS - 1` samples the values at the three points behind each of
    `_ROW` of them."""
    offsets = np.arange(1, _PHASES)[:, np.newaxis] / _PHASES - (np.arange(_TAPS) - (_HALF - 1))
    taps = np.sinc(offsets) * np.i0(5.0 * np.sqrt(1.0 - (offsets / _HALF) ** 2)) / np.i0(5.0)
    taps /= taps.sum(axis=1, keepdims=True)
    matrix = np.zeros((_ROW + _TAPS - 1, _PHASES - 1, _ROW), np.float32)
    for sample in range(_ROW):
        matrix[sample : sample + _TAPS, :, sample] = taps.T
    return matrix.reshape(len(matrix), -1)


_MATRIX = _interpolator()
_MOST = float(np.abs(_MATRIX).sum(axis=0).max())  # times the highest sample: no value between can be higher


class Limiter:
    """Mono float32 in, in feeds of any size; as many samples out in all, none above the ceiling.

    It holds `delay` samples back until it has seen what follows; `last` lets them go. It delays nothing.
    """

    def __init__(self, rate: int) -> None:
        """rate: in Hz."""
        self._ahead = max(1, round(AHEAD_S * rate))
        self._hold = self._ahead + 2 * _HALF
        self.delay = self._hold - 1
        self._ceiling = 10.0 ** (CEILING_DB / 20.0)
        self._target = 10.0 ** ((CEILING_DB - MARGIN_DB) / 20.0)
        decay = 1.0 / (RELEASE_S * rate)
        self._fall = np.exp(-decay * np.arange(BLOCK + 1))
        self._rise = np.exp(decay * np.arange(BLOCK + 1))
        self._skip = self.delay  # samples of the silence before the audio that are not handed on yet
        self._past: Samples = np.zeros(self.delay, np.float32)
        self._due: NDArray[np.float64] = np.zeros(0)  # set by `_forget`
        self._held: NDArray[np.float64] = np.zeros(0)
        self._forget()

    def _forget(self) -> None:
        self._due = np.zeros(self._hold - 1)  # reductions that the last samples need
        self._held = np.zeros(self._ahead)  # the same with hold and release
        self._resting = True

    def feed(self, samples: Samples, last: bool = False) -> Samples:
        """The next samples that are certain; with `last` all that are left. The limiter is then spent."""
        parts = [self._block(samples[at : at + BLOCK]) for at in range(0, len(samples), BLOCK)]
        if last:
            parts.append(self._block(np.zeros(self.delay, np.float32)))
        out = parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0, np.float32), *parts])
        skipped = min(self._skip, len(out))
        self._skip -= skipped
        return out[skipped:]

    def _block(self, samples: Samples) -> Samples:
        """As many samples as are given, from `delay` samples before."""
        count = len(samples)
        joined = np.concatenate([self._past, samples])
        self._past = joined[count:]
        window = joined[self._ahead - 1 :]
        audio = joined[:count]
        if self._resting and float(np.abs(window).max(initial=0.0)) * _MOST <= self._ceiling:
            return audio
        peaks = _peaks(window, count)
        if self._resting and peaks.max(initial=0.0) <= self._ceiling:
            return audio
        return self._limited(audio, peaks)

    def _limited(self, audio: Samples, peaks: Samples) -> Samples:
        count, ahead = len(audio), self._ahead
        due = np.where(peaks > self._ceiling, 1.0 - self._target / np.maximum(peaks, self._ceiling), 0.0)
        due = np.concatenate([self._due, due])
        self._due = due[count:]
        rise, fall = self._rise[: count + 1], self._fall[: count + 1]
        held = np.concatenate([self._held[-1:], _highest(due, self._hold)])
        held = np.maximum.accumulate(held * rise) * fall
        held[held < SILENT] = 0.0
        held = np.concatenate([self._held, held[1:]])
        self._held = held[count:]
        # The mean over `ahead` values: for all samples that a peak is made of, each of them is at least what
        # the peak needs.
        sums = np.cumsum(held)
        reduction = (sums[ahead:] - sums[:-ahead]) / ahead
        gain = np.where(reduction > 1e-9, 1.0 - reduction, 1.0).astype(np.float32)
        if not (self._held.any() or self._due.any()):
            self._forget()
        else:
            self._resting = False
        limited: Samples = np.clip(audio * gain, -self._ceiling, self._ceiling)
        return limited


def _peaks(window: Samples, count: int) -> Samples:
    """For each of `count` samples the highest value around it that a peak between two samples may be made of:
    window has `2 * _HALF` more, and sample i is `window[i + _HALF]`."""
    rows = -(-(count + _TAPS) // _ROW)
    padded = np.zeros(rows * _ROW + _TAPS, np.float32)
    padded[: len(window)] = window
    step = padded.itemsize
    frames = as_strided(padded, (rows, len(_MATRIX)), (_ROW * step, step), writeable=False)
    points = np.abs(frames @ _MATRIX).reshape(rows, _PHASES - 1, _ROW)
    between = np.maximum(np.maximum(points[:, 0], points[:, 1]), points[:, 2]).reshape(-1)
    # between[i]: the peak between samples i + _HALF - 1 and i + _HALF of the window.
    peaks: Samples = np.maximum(np.abs(window[_HALF : _HALF + count]), _highest(between[: count + 1], 2))
    return peaks


def _highest(values: NDArray[np.floating], width: int) -> NDArray[np.floating]:
    """The highest of each `width` neighbours: `width - 1` values fewer."""
    span = 1
    while 2 * span <= width:
        values = np.maximum(values[:-span], values[span:])
        span *= 2
    rest = width - span
    return np.maximum(values[: len(values) - rest], values[rest:]) if rest else values
