"""The gain that makes voices equally loud."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edged.audio.level import MOST_DB, OFF, gain_to

LUFS = st.floats(-70.0, 10.0)


@given(target=st.floats(-40.0, -1.0), lufs=LUFS)
def test_it_brings_a_voice_to_the_target_within_its_bounds(target: float, lufs: float) -> None:
    gain_db = 20 * math.log10(gain_to(target, lufs))
    assert abs(gain_db) <= MOST_DB + 1e-9
    if abs(target - lufs) <= MOST_DB:
        assert lufs + gain_db == pytest.approx(target)
    else:
        assert abs(gain_db) == pytest.approx(MOST_DB)
        assert (gain_db > 0) == (target > lufs)


@given(lufs=LUFS)
def test_switched_off_or_not_measured_is_as_it_is(lufs: float) -> None:
    assert gain_to(OFF, lufs) == 1.0
    assert gain_to(lufs, None) == 1.0
