"""How near a recording of the loudspeaker is to what it should be; for tests and `tools/soundcheck`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import soxr
from numpy.typing import NDArray

from edged.audio.limiter import Limiter
from edged.compiler.loudness import meter
from edged.job import Samples
from tests.pulse import find, snr_db

FLOOR = 1e-3  # of the highest sample: what is below is not missed, and not heard beside the sound
RUN = 16  # audible samples that must be right one after the other: a single one may be so by chance
ROUNDS = 8  # of the search for the part of a sample by which the recording is late
Float64 = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Judgement:
    """at: where the sound begins in the recording, in samples, with a fraction.
    snr_db: of the sound against all that differs from it, its gain included.
    missing_begin, missing_end: samples at its ends that should be heard and are not there, or not half right.
    stray: the highest sample beside it.
    true_peak_db: of the whole recording, in dBTP at four times its rate.
    loudness_lufs: of the sound in the recording; loudness_lu: how much louder that is than what was expected.
    Both are None where it is silent, shorter than 0.4 s, or pyloudnorm is not installed."""

    at: float
    snr_db: float
    missing_begin: int
    missing_end: int
    stray: float
    true_peak_db: float
    loudness_lufs: float | None
    loudness_lu: float | None


def loudspeakers(sound: Samples, rate: int, gain: float, ring_rate: int = 48_000) -> Samples:
    """What the loudspeaker makes of a voice's sound, at once: its gain, another rate, the limiter."""
    # As good as the loudspeaker's: how steep a resampler is near its highest frequency is a choice.
    louder = soxr.resample(sound * np.float32(gain), rate, ring_rate, "HQ")
    return Limiter(ring_rate).feed(np.asarray(louder, dtype=np.float32), last=True)


def at_rate(sound: Samples, rate: int, other: int) -> Samples:
    return np.asarray(soxr.resample(sound, rate, other, "VHQ"), dtype=np.float32)


def judge(expected: Samples, recording: Samples, rate: int) -> Judgement:
    """Both mono, at `rate` in Hz. The recording may begin or end within the sound."""
    beside = np.zeros(expected.size, np.float32)
    heard = np.concatenate((beside, recording, beside))
    start = find(expected, heard)
    taken = heard[start : start + expected.size]
    part = _late(expected.astype(np.float64), taken.astype(np.float64))
    aligned = _delayed(expected.astype(np.float64), part).astype(np.float32)
    audible = np.flatnonzero(np.abs(aligned) > FLOOR * np.abs(aligned).max())
    right = np.abs(taken - aligned)[audible] <= 0.5 * np.abs(aligned)[audible]
    measure = meter()
    lufs, wanted = measure(taken, rate), measure(expected, rate)
    # A resampler rings before and behind what it makes.
    around = np.concatenate((heard[: max(0, start - RUN)], heard[start + expected.size + RUN :]))
    return Judgement(
        at=start - beside.size + part,
        snr_db=float(snr_db(aligned, taken)),
        missing_begin=_missing(audible, right),
        missing_end=_missing(audible[-1] - audible[::-1], right[::-1]),
        stray=float(np.abs(around).max(initial=0.0)),
        true_peak_db=true_peak_db(recording, rate),
        loudness_lufs=lufs,
        loudness_lu=None if lufs is None or wanted is None else round(lufs - wanted, 1),
    )


def true_peak_db(sound: Samples, rate: int) -> float:
    """The highest value of the curve through the samples, in dBTP, by one sample in four."""
    return float(20 * np.log10(np.abs(at_rate(sound, rate, 4 * rate)).max(initial=1e-10)))


def _missing(places: NDArray[np.intp], right: NDArray[np.bool_]) -> int:
    """Samples from the first place to the first one from which on `RUN` are right; all when there is none."""
    runs = np.convolve(right, np.ones(RUN), "valid") > RUN - 0.5 if right.size >= RUN else np.zeros(0, bool)
    first = int(np.argmax(runs)) if runs.any() else -1
    return int(places[first] - places[0]) + (first < 0)


def _late(expected: Float64, heard: Float64) -> float:
    """By how much of a sample: least squares, by Newton's method."""
    late = 0.0
    for _ in range(ROUNDS):
        slope = _delayed(expected, late, derivative=True)
        step = float(slope @ (heard - _delayed(expected, late)) / max(float(slope @ slope), 1e-20))
        late = float(np.clip(late + step, -1.0, 1.0))
        if abs(step) < 1e-7:
            break
    return late if abs(late) > 1e-5 else 0.0  # float32 knows no less


def _delayed(sound: Float64, samples: float, derivative: bool = False) -> Float64:
    """The sound later by so much of a sample, or how it changes when that grows."""
    size = 1 << (sound.size + 64).bit_length()
    if not (samples or derivative):
        return sound
    turn = -2j * np.pi * np.fft.rfftfreq(size)
    spectrum = np.fft.rfft(sound, size) * np.exp(turn * samples)
    return np.fft.irfft(spectrum * turn if derivative else spectrum, size)[: sound.size]
