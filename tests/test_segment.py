"""A job's audio on its way into the ring: gains, and no step when one changes."""

from __future__ import annotations

import numpy as np
import pytest

from edged.audio.fader import RAMP_FRAMES
from edged.audio.level import OFF
from edged.audio.player import Player
from edged.audio.ring import Ring
from edged.audio.segment import PIECE_S, PlayerSink
from edged.job import AudioChunk, Samples
from edged.settings import Audio
from tests.sounds import make_job

RATE = 48_000
LEVEL = 0.15  # four times that is still not limited


def pump(sink: PlayerSink, ring: Ring, pieces: int) -> None:
    for _ in range(pieces):
        assert sink.pump(ring, RATE)


def heard(ring: Ring) -> Samples:
    out = np.zeros((ring.written - ring.read, 1), np.float32)
    for at in range(0, len(out), 480):
        ring.read_into(out[at : at + 480])
    return out[:, 0]


@pytest.mark.parametrize(("before", "after"), [(1.0, 2.0), (4.0, 1.0), (0.5, 2.0), (2.0, 0.5)])
def test_a_volume_above_one_reaches_what_is_not_in_the_ring_without_a_step(
    before: float, after: float
) -> None:
    player = Player(Audio(enabled=False, volume=before), lambda: None)
    sink = PlayerSink(player, make_job(), RATE, OFF)
    ring = Ring(4 * RATE, 1, fader=player.fader)
    sink.queue(AudioChunk(np.full(RATE, LEVEL, np.float32), last=True))
    pump(sink, ring, 5)
    first = heard(ring)
    player.set_volume(after)
    pump(sink, ring, 5)
    sound = np.concatenate([first, heard(ring)])
    assert len(sound) == RATE
    assert sound[:1_000] == pytest.approx(LEVEL * before)
    assert sound[-1_000:] == pytest.approx(LEVEL * after)
    # The fader's ramp and that of a piece, at worst both at once.
    most = abs(after - before) / (PIECE_S * RATE) + max(before, after) / RAMP_FRAMES
    assert np.abs(np.diff(sound)).max() < 1.05 * LEVEL * most


def test_what_is_no_number_is_silent_and_what_is_beyond_full_scale_is_limited() -> None:
    player = Player(Audio(enabled=False), lambda: None)
    sink = PlayerSink(player, make_job(), RATE, OFF)
    ring = Ring(RATE, 1, fader=player.fader)
    broken = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30] * 200, np.float32)
    sink.queue(AudioChunk(broken, last=True))
    pump(sink, ring, 1)
    sound = heard(ring)
    assert len(sound) == len(broken)
    assert np.abs(sound).max() <= 10 ** (-1 / 20)


def test_each_voice_of_a_job_has_its_own_gain() -> None:
    player = Player(Audio(enabled=False), lambda: None)
    sink = PlayerSink(player, make_job(volume=0.5), RATE, -20.0)
    ring = Ring(4 * RATE, 1, fader=player.fader)
    levels = {-26.0: 10 ** (6 / 20), -17.0: 10 ** (-3 / 20), None: 1.0}
    size = RATE // 10
    for number, lufs in enumerate(levels):
        sink.queue(AudioChunk(np.full(size, 0.2, np.float32), last=number == 2, loudness_lufs=lufs))
    pump(sink, ring, 3)
    sound = heard(ring).reshape(3, size)
    for part, gain in zip(sound, levels.values(), strict=True):
        assert part == pytest.approx(0.1 * gain, rel=1e-5)
