"""The resampler: streamed in any pieces it gives what one piece gives."""

from __future__ import annotations

import numpy as np
import pytest
import soxr

from edged.audio.resample import Resampler
from tests.sounds import noise

PAIRS = [(24_000, 48_000), (24_000, 22_050), (22_050, 48_000), (48_000, 8_000), (16_000, 192_000)]


@pytest.mark.parametrize(("source", "target"), PAIRS)
@pytest.mark.parametrize("size", [37, 480, 24_000])
def test_pieces_give_the_same_as_the_whole(source: int, target: int, size: int) -> None:
    sound = noise(1.0, source)
    resampler = Resampler(source, target)
    parts = [resampler.feed(sound[i : i + size]) for i in range(0, len(sound), size)]
    parts.append(resampler.feed(sound[:0], last=True))
    got = np.concatenate(parts)
    whole = soxr.resample(sound, source, target)
    assert got.dtype == np.float32
    assert len(got) == len(whole) == pytest.approx(target, abs=1)
    assert np.abs(got - whole).max() < 1e-5


def test_a_tone_keeps_its_frequency_and_level() -> None:
    tone = np.sin(2 * np.pi * 1_000 * np.arange(24_000) / 24_000).astype(np.float32)
    resampler = Resampler(24_000, 44_100)
    got = np.concatenate([resampler.feed(tone), resampler.feed(tone[:0], last=True)])
    expected = np.sin(2 * np.pi * 1_000 * np.arange(44_100) / 44_100)
    middle = slice(4_000, 40_000)
    assert np.abs(got[middle] - expected[middle]).max() < 1e-3


def test_equal_rates_are_the_identity() -> None:
    sound = noise(0.1, 24_000)
    assert Resampler(24_000, 24_000).feed(sound, last=True) is sound


@pytest.mark.parametrize("last", [True, False])
def test_no_samples_give_no_samples(last: bool) -> None:
    assert len(Resampler(24_000, 48_000).feed(np.zeros(0, dtype=np.float32), last)) == 0
