"""The fader: every change is a ramp, at once; without one nothing is touched."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edged.audio.fader import RAMP_FRAMES, Fader
from edged.audio.ring import Ring
from edged.errors import BadValue

RATE = 48_000


def apply(fader: Fader, frames: int, channels: int = 2) -> np.ndarray:
    """What becomes of frames of 1."""
    out = np.ones((frames, channels), np.float32)
    fader.apply(out, frames)
    assert (out == out[:, :1]).all()
    return out[:, 0]


@given(
    start=st.floats(0.0, 4.0),
    steps=st.lists(st.tuples(st.floats(0.0, 4.0), st.booleans(), st.integers(1, 1_500)), max_size=12),
)
def test_a_change_takes_small_steps_and_arrives(start: float, steps: list[tuple[float, bool, int]]) -> None:
    fader = Fader(start)
    heard = [apply(fader, 1)]
    assert heard[0][0] == np.float32(min(1.0, start))
    for volume, muted, frames in steps:
        fader.set_volume(volume)
        fader.muted = muted
        heard.append(apply(fader, frames))
    heard.append(apply(fader, RAMP_FRAMES))
    heard.append(apply(fader, 10))
    gain = np.concatenate(heard)
    assert np.abs(np.diff(gain)).max() <= 1 / RAMP_FRAMES + 1e-6
    assert ((gain >= -1e-6) & (gain <= 1 + 1e-6)).all()
    _, muted, _ = steps[-1] if steps else (0, False, 0)
    assert (heard[-1] == np.float32(0.0 if muted else min(1.0, fader.volume))).all()


def test_a_ramp_is_heard_over_many_calls_as_over_one() -> None:
    faders = [Fader(1.0), Fader(1.0)]
    for fader in faders:
        apply(fader, 1)
        fader.set_volume(0.2)
    parts = np.concatenate([apply(faders[0], size) for size in (1, 7, 256, 480, 480)])
    assert np.array_equal(parts, apply(faders[1], len(parts)))
    assert RAMP_FRAMES / RATE >= 0.01


def test_a_steady_gain_of_one_touches_nothing() -> None:
    out = np.full((64, 2), np.nan, np.float32)
    out.flags.writeable = False  # a write would raise
    Fader().apply(out, 64)


def test_a_change_in_silence_needs_no_ramp() -> None:
    fader = Fader(1.0)
    apply(fader, 10)
    fader.muted = True
    fader.apply(np.zeros((10, 2), np.float32), 0)
    assert (apply(fader, 10) == 0.0).all()


def test_muting_acts_on_what_is_in_the_ring() -> None:
    fader = Fader()
    ring = Ring(2 * RATE, 2, fader=fader)
    ring.write(np.ones(RATE, np.float32))
    heard = np.zeros((RATE, 2), np.float32)
    ring.read_into(heard[:480])
    fader.muted = True
    for at in range(480, RATE, 480):
        ring.read_into(heard[at : at + 480])
    assert (heard[:480] == 1.0).all()
    assert (heard[480 + RATE // 20 :] == 0.0).all()  # 50 ms
    assert ring.read == RATE  # what was muted is not heard later


def test_what_is_above_one_is_for_the_limiter() -> None:
    fader = Fader(2.5)
    assert (fader.boost, fader.volume) == (2.5, 2.5)
    assert (apply(fader, 10) == 1.0).all()
    fader.set_volume(0.5)
    assert fader.boost == 1.0


@pytest.mark.parametrize("volume", [-0.1, 4.1, float("nan"), float("inf")])
def test_other_volumes_are_refused(volume: float) -> None:
    fader = Fader(0.5)
    with pytest.raises(BadValue, match="volume"):
        fader.set_volume(volume)
    assert fader.volume == 0.5


def test_applying_allocates_no_arrays() -> None:
    fader = Fader()
    out = np.ones((4_800, 2), np.float32)
    fader.apply(out, 4_800)
    tracemalloc.start()
    for number in range(200):
        fader.muted = bool(number % 3)
        fader.apply(out, 4_800)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < out.nbytes  # views and numbers only
