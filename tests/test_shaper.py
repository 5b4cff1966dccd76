"""What a job's samples go through on their way into the ring, in feeds of any size."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edged.audio.shaper import Shaper
from tests.sounds import noise

RING = 48_000


@settings(max_examples=30, deadline=None)
@given(st.sampled_from([16_000, 22_050, 24_000, 48_000]), st.lists(st.integers(0, 3_000), max_size=12))
def test_any_feeds_give_the_same_audio_and_what_is_held_back_is_known(rate: int, sizes: list[int]) -> None:
    sound = noise(0.5, rate) * np.float32(2.0)  # some of it is limited
    whole = Shaper(rate, RING).feed(sound, last=True)
    shaper, parts, fed = Shaper(rate, RING), [], 0
    for size in sizes:
        piece = sound[fed : fed + size]
        parts.append(shaper.feed(piece, last=False))
        fed += len(piece)
        made = sum(map(len, parts))
        assert shaper.held == round(fed * RING / rate) - made
    parts.append(shaper.feed(sound[fed:], last=True))
    together = np.concatenate(parts)
    assert len(together) == len(whole)
    assert np.allclose(together, whole, atol=1e-6)
    assert shaper.held == pytest.approx(0, abs=1)
    assert np.abs(together).max() <= 10 ** (-1 / 20)
