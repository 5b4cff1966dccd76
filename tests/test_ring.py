"""The ring: every frame arrives once and in order, whatever the sizes, cuts and threads."""

from __future__ import annotations

import threading
import time
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edged.audio.ring import FADE_FRAMES, Ring


def ramp(start: int, count: int) -> np.ndarray:
    return np.arange(start + 1, start + count + 1, dtype=np.float32)


def read(ring: Ring, frames: int) -> np.ndarray:
    out = np.full((frames, ring.channels), np.nan, dtype=np.float32)
    ring.read_into(out)
    assert not np.isnan(out).any()
    return out


@given(
    frames=st.integers(1, 50),
    steps=st.lists(st.tuples(st.booleans(), st.integers(0, 60)), max_size=80),
)
def test_what_is_read_is_what_was_written(frames: int, steps: list[tuple[bool, int]]) -> None:
    ring = Ring(frames, 2)
    heard: list[np.ndarray] = []
    for is_write, count in steps:
        if is_write:
            room = ring.room
            assert ring.write(ramp(ring.written, count)) == min(count, room)
        else:
            available = ring.written - ring.read
            out = read(ring, count)
            assert (out[available:] == 0).all()
            heard.append(out[:available])
        assert 0 <= ring.written - ring.read <= frames
        assert ring.room == frames - (ring.written - ring.read)
    got = np.concatenate(heard) if heard else np.zeros((0, 2))
    assert np.array_equal(got[:, 0], ramp(0, ring.read))
    assert np.array_equal(got[:, 0], got[:, 1])


@pytest.mark.parametrize("channels", [1, 2, 6])
def test_mono_goes_to_the_first_two_channels(channels: int) -> None:
    ring = Ring(10, channels)
    ring.write(ramp(0, 7))
    read(ring, 7)
    ring.write(ramp(7, 7))  # across the end of the buffer
    out = read(ring, 7)
    for channel in range(channels):
        assert np.array_equal(out[:, channel], ramp(7, 7) if channel < 2 else np.zeros(7))


def test_an_underrun_counts_only_while_audio_is_promised() -> None:
    ring = Ring(100, 1)
    read(ring, 10)
    assert ring.underruns == 0
    ring.write(ramp(0, 5))
    ring.promised = True
    assert np.count_nonzero(read(ring, 8)) == 5
    read(ring, 8)
    assert (ring.underruns, ring.starved_frames) == (1, 11)  # one gap, however many callbacks long
    ring.write(ramp(5, 8))
    assert np.array_equal(read(ring, 8)[:, 0], ramp(5, 8))
    assert ring.underruns == 1
    read(ring, 1)
    assert ring.underruns == 2
    ring.promised = False
    read(ring, 8)
    assert ring.underruns == 2


def test_a_cut_while_it_is_heard_fades_and_goes_on_with_what_follows() -> None:
    ring = Ring(4000, 1)
    ring.write(np.ones(2000, dtype=np.float32))
    ring.write(np.full(500, 0.25, dtype=np.float32))
    read(ring, 100)
    ring.cut(0, 2000)
    out = read(ring, FADE_FRAMES + 500)[:, 0]
    fade = out[:FADE_FRAMES]
    assert fade[0] == 1.0
    assert fade[-1] == 0.0
    assert (np.diff(fade) < 0).all()
    assert (out[FADE_FRAMES:] == 0.25).all()
    assert ring.read == ring.written == 2500


def test_a_cut_behind_other_audio_leaves_that_whole() -> None:
    ring = Ring(1000, 1)
    ring.write(ramp(0, 900))
    ring.cut(300, 600)
    ring.cut(700, 800)
    heard = np.concatenate([read(ring, 70)[:, 0] for _ in range(10)])
    expected = np.concatenate([ramp(0, 300), ramp(600, 100), ramp(800, 100)])
    assert np.array_equal(heard[:500], expected)
    assert (heard[500:] == 0).all()
    assert ring.read == 900


def test_cuts_in_any_order_and_within_each_other_are_one() -> None:
    ring = Ring(1000, 1)
    ring.write(ramp(0, 900))
    ring.cut(600, 700)
    ring.cut(200, 300)
    ring.cut(550, 900)
    heard = np.concatenate([read(ring, 70)[:, 0] for _ in range(10)])
    expected = np.concatenate([ramp(0, 200), ramp(300, 250)])
    assert np.array_equal(heard[: len(expected)], expected)
    assert (heard[len(expected) :] == 0).all()
    assert (ring.jump, ring.backlog) == ((900, 550), 0)


@given(read_first=st.integers(0, 700), start=st.integers(0, 600), size=st.integers(1, 400))
def test_the_reader_tells_where_it_left_the_audio_and_a_copy_has_the_rest(
    read_first: int, start: int, size: int
) -> None:
    ring = Ring(800, 2, keep=50)
    ring.write(ramp(0, 500))
    read(ring, 500)
    ring.write(ramp(500, 700))  # around the end of the buffer
    read(ring, read_first)
    at = max(start + 500, ring.read)
    rest = ring.copy(at, ring.written)
    assert np.array_equal(rest, ramp(at, ring.written - at))
    ring.cut(start + 500, ring.written)
    before = ring.read
    while ring.read < ring.written:
        read(ring, size)
    assert before == 1200 or ring.jump == (1200, max(start + 500, before))


@given(
    cuts=st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 400)), max_size=4),
    sizes=st.lists(st.integers(1, 300), min_size=1, max_size=10),
)
def test_cuts_of_unheard_segments_remove_exactly_those(cuts: list[tuple[int, int]], sizes: list[int]) -> None:
    ring = Ring(1000, 1)
    ring.write(ramp(0, 1000))
    keep = np.ones(1000, dtype=bool)
    end = 0
    for gap, length in cuts:  # in order and apart, as segments are
        start = end + gap
        end = start + length
        ring.cut(start, end)
        keep[start:end] = False
    heard: list[np.ndarray] = []
    while ring.read < 1000:
        for size in sizes:
            heard.append(read(ring, size)[:, 0])
    sound = np.concatenate(heard)
    assert np.array_equal(sound[sound > 0], ramp(0, 1000)[keep])
    assert ring.underruns == 0


def test_skip_to_and_reset_drop_everything_before() -> None:
    ring = Ring(1000, 1)
    ring.write(ramp(0, 800))
    ring.skip_to(10_000)  # never beyond what was written
    ring.write(ramp(800, 100))
    assert np.array_equal(read(ring, 100)[:, 0], ramp(800, 100))
    ring.write(ramp(900, 50))
    ring.reset()
    assert ring.room == 1000
    assert (read(ring, 50) == 0).all()


def test_reading_allocates_no_arrays() -> None:
    ring = Ring(4800, 2)
    out = np.zeros((480, 2), dtype=np.float32)
    piece = np.ones(480, dtype=np.float32)
    ring.write(piece)
    ring.read_into(out)
    tracemalloc.start()
    for _ in range(200):
        ring.write(piece)
        ring.cut(ring.written - 100, ring.written)
        ring.read_into(out)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < out.nbytes  # views and ints only


def test_the_last_frames_can_be_played_again() -> None:
    ring = Ring(100, 1, keep=20)
    assert ring.write(ramp(0, 100)) == 80  # the reader has read nothing, but it may have to repeat that
    read(ring, 50)
    assert ring.write(ramp(80, 100)) == 50
    ring.rewind(20)
    assert ring.read == 30
    assert ring.room == 0
    assert np.array_equal(read(ring, 100)[:, 0], ramp(30, 100))
    ring.rewind(1000)  # no more than the ring still holds
    assert ring.read == 30
    assert np.array_equal(read(ring, 100)[:, 0], ramp(30, 100))


def test_what_was_cut_or_forgotten_is_not_played_again() -> None:
    ring = Ring(1000, 1)
    ring.write(ramp(0, 300))
    read(ring, 100)
    ring.cut(0, 200)
    read(ring, 50 + min(FADE_FRAMES, 100))
    assert ring.read == 250
    ring.rewind(100)
    assert ring.read == 200
    ring.cut(150, 300)  # what is being repeated is cut: no way back into it
    ring.rewind(100)
    assert ring.read == 200
    ring.reset()
    ring.rewind(100)
    assert ring.read == ring.written == 300


def test_the_backlog_leaves_out_what_is_cut() -> None:
    ring = Ring(1000, 1)
    ring.write(ramp(0, 500))
    read(ring, 100)
    assert ring.backlog == 400
    ring.cut(200, 300)
    assert ring.backlog == 300
    ring.cut(450, 600)
    assert ring.backlog == 250
    read(ring, 250)
    assert ring.backlog == 0


def test_two_threads() -> None:
    ring = Ring(1000, 1)
    total = 300_000
    heard: list[np.ndarray] = []

    def writer() -> None:
        rng = np.random.default_rng(0)
        while ring.written < total:
            count = min(int(rng.integers(1, 400)), total - ring.written)
            if not ring.write(ramp(ring.written, count)):
                time.sleep(0)

    thread = threading.Thread(target=writer)
    thread.start()
    while ring.read < total:
        out = read(ring, 128)[:, 0]
        heard.append(out[out > 0])
    thread.join()
    assert np.array_equal(np.concatenate(heard), ramp(0, total))
