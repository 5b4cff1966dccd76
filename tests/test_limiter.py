"""The limiter: no true peak above the ceiling, nothing else changed, nothing missing."""

from __future__ import annotations

from itertools import accumulate

import numpy as np
import pytest
import soxr
from hypothesis import given, settings
from hypothesis import strategies as st

from edged.audio.limiter import AHEAD_S, CEILING_DB, Limiter
from edged.job import Samples
from tests.sounds import noise

CEILING = 10 ** (CEILING_DB / 20)
SIZES = st.lists(st.integers(0, 6_000), min_size=1, max_size=8)


def limit(sound: Samples, rate: int, sizes: list[int] | None = None) -> Samples:
    """In feeds of these sizes, and then the rest."""
    limiter = Limiter(rate)
    cuts = [cut for cut in accumulate(sizes or [rate // 10] * 100) if cut < len(sound)]
    pieces = np.split(sound, cuts)
    fed = [limiter.feed(piece, last=number == len(pieces)) for number, piece in enumerate(pieces, 1)]
    return np.concatenate(fed)


def true_peak(sound: Samples, rate: int) -> float:
    """At sixteen times the rate."""
    silence = np.zeros(rate // 20)
    around = np.concatenate([silence, sound.astype(np.float64), silence])
    return float(np.abs(soxr.resample(around, rate, 16 * rate, quality="VHQ")).max())


@settings(deadline=None, max_examples=40)
@given(sizes=SIZES, level=st.floats(0.0, 0.85), seed=st.integers(0, 9))
def test_what_stays_below_the_ceiling_is_the_same_to_the_bit(
    sizes: list[int], level: float, seed: int
) -> None:
    sound = noise(0.4, 48_000, seed) * np.float32(2 * level)
    assert np.array_equal(limit(sound, 48_000, sizes), sound)


@settings(deadline=None, max_examples=40)
@given(sizes=SIZES, gain=st.floats(1.0, 30.0), rate=st.sampled_from([8_000, 24_000, 48_000]))
def test_the_sum_of_the_feeds_does_not_depend_on_their_sizes(
    sizes: list[int], gain: float, rate: int
) -> None:
    sound = noise(0.3, rate) * np.float32(gain)
    limited = limit(sound, rate, sizes)
    assert len(limited) == len(sound)
    assert np.allclose(limited, limit(sound, rate, [len(sound)]), atol=1e-6)


@pytest.mark.parametrize(
    ("rate", "top_hz"), [(16_000, 6_500), (24_000, 10_000), (48_000, 300), (48_000, 4_000), (48_000, 12_000)]
)
@pytest.mark.parametrize("peak", [0.95, 2.0, 16.0])
def test_no_true_peak_is_above_the_ceiling(rate: int, top_hz: float, peak: float) -> None:
    sound = noise(2.0, rate, top_hz=top_hz) * np.float32(2 * peak)
    limited = limit(sound, rate)
    assert true_peak(limited, rate) <= CEILING
    assert np.abs(limited).max() > 0.9 * CEILING  # and no more is taken than needed
    assert (np.abs(limited) <= np.abs(sound) + 1e-6).all()


def test_a_peak_between_two_samples_is_limited() -> None:
    time = np.arange(24_000)
    sound = (1.2 * np.sin(np.pi / 2 * time + np.pi / 4) * np.hanning(len(time))).astype(np.float32)
    assert np.abs(sound).max() < CEILING < true_peak(sound, 48_000)
    assert true_peak(limit(sound, 48_000), 48_000) <= CEILING


def test_the_gain_is_down_when_the_peak_comes_and_up_again_soon_after() -> None:
    rate = 48_000
    sound = np.full(rate, 0.5, np.float32)
    sound[20_000:20_100] = 2.0
    limited = limit(sound, rate)
    ahead = round(AHEAD_S * rate)
    untouched = limited == sound
    assert untouched[: 20_000 - ahead - 20].all()
    assert untouched[20_000 + rate // 2 + rate // 4 :].all()
    gain = limited.astype(np.float64) / sound
    assert np.abs(np.diff(gain)).max() < 1.2 / ahead  # it goes down in a line, not in a step
    assert gain[20_100 + round(0.25 * rate)] > 0.97
    assert gain[20_000:20_100].max() < CEILING / 2


def test_silence_and_nothing() -> None:
    assert len(limit(np.zeros(0, np.float32), 48_000)) == 0
    assert not limit(np.zeros(1_000, np.float32), 48_000, [1, 2, 3]).any()
