"""The streaming vocoder: its chunks against the whole utterance, its seams, its tracks beside each other."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from edged import settings
from edged.compiler.chattts.checkpoint import Checkpoint
from edged.compiler.chattts.layout import Stack, VocosSizes
from edged.compiler.chattts.past import in_place
from edged.compiler.chattts.random_checkpoint import TINY, make_checkpoint
from edged.compiler.chattts.vocoder import build_vocoder
from edged.engine import select
from edged.engine.api import Engine
from edged.engine.buffers import Arena
from edged.errors import BrokenSound, EngineError
from edged.voices.chattts import windows
from edged.voices.chattts.sound import FADE, STEP, WAITING, Sound, Track, samples_of, whole
from tests.chattts_numpy import snr
from tests.half_arithmetic import rewritten

HIDDEN = TINY.hidden
# As many layers as the real ones, narrow: they see as far. Layer scales are 0.3.
DEEP = dataclasses.replace(TINY, decoder=Stack(32, 32, 16, 64, 128, 12), vocos=VocosSizes(64, 128, 8))
LONG = 300  # steps
Samples = NDArray[np.float32]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checkpoint]:
    with Checkpoint.open(make_checkpoint(tmp_path_factory.mktemp("checkpoint") / "deep", DEEP)) as opened:
        yield opened


@pytest.fixture(scope="module")
def engines(checkpoint: Checkpoint, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A function (precision, tracks) -> engine; each is built once."""
    folder = tmp_path_factory.mktemp("engines")
    made: dict[Any, Engine] = {}

    def engine(precision: str, tracks: int, **options: Any) -> Engine:
        key = (precision, tracks, *options)
        if key not in made:
            path: Path = folder / f"{len(made)}.onnx"
            interface = build_vocoder(
                checkpoint, path, precision=precision, steps=LONG, tracks=tracks, **options
            )
            path = rewritten(path) if "half" in options else path
            outputs = [in_place(spec) for spec in interface.outputs]
            made[key] = select.load(
                path, "onnxruntime", interface.inputs, outputs, Arena(), settings.Engine(threads=1)
            )
        return made[key]

    return engine


def sound_of(engine: Engine, tracks: int = 2) -> Sound:
    sound = Sound(engine, Arena(), "test", tracks)
    sound.warm_up()
    return sound


def hidden_states(steps: int, seed: int = 0) -> Samples:
    return np.random.default_rng(seed).standard_normal((steps, HIDDEN)).astype(np.float32)


class Given:
    """In the place of the decoder network: the hidden states of a row, as a test wants them."""

    def __init__(self, hidden: Samples) -> None:
        self._hidden = hidden

    def row(self, name: str, row: int) -> Samples:
        return self._hidden


def feed(sound: Sound, track: Track, hidden: Samples, out: list[Samples], late: int = 0) -> None:
    """One step at a time; a chunk is made `late` steps after it could be."""
    waited = 0
    for row in hidden:
        sound.take(track, Given(row), 0)  # type: ignore[arg-type]
        window = track.window()
        waited = waited + 1 if window is not None else 0
        if window is not None and waited > late:
            out.append(sound.make(track, window).copy())
            waited = 0


def spoken(sound: Sound, hidden: Samples, late: int = 0) -> list[Samples]:
    track, out = sound.open(), []  # type: ignore[var-annotated]
    feed(sound, track, hidden, out, late)
    track.ended = True
    while (window := track.window()) is not None:
        out.append(sound.make(track, window).copy())
    sound.close(track)
    assert track.done
    return out


@pytest.mark.parametrize("precision", ["fp32", "int8"])
@pytest.mark.parametrize("tracks", [2, 0], ids=["resuming", "plain"])
def test_chunks_are_the_whole_utterance(engines: Any, precision: str, tracks: int) -> None:
    sound = sound_of(engines(precision, tracks))
    for seed in range(3):
        hidden = hidden_states(LONG, seed)
        expected = whole(engines(precision, 0), hidden).copy()
        chunks = spoken(sound, hidden)
        found = np.concatenate(chunks)
        assert len(found) == samples_of(LONG)
        first = chunks[0].size + FADE  # the first chunk's own end is faded out in the second
        assert snr(expected[:first], found[:first]) >= 30
        assert snr(expected[first:], found[first:]) >= 55
        assert snr(expected, found) >= 50


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_in_one_window_it_is_the_plain_network(engines: Any, precision: str) -> None:
    for steps in (1, 2, 7, 100):
        hidden = hidden_states(steps)
        one = whole(engines(precision, 2), hidden).copy()
        np.testing.assert_array_equal(one, whole(engines(precision, 0), hidden))


def test_an_utterance_shorter_than_a_chunk_is_exact(engines: Any) -> None:
    sound = sound_of(engines("fp32", 2))
    for steps in (1, 2, windows.CHUNKS[0], windows.CHUNKS[0] + windows.FIRST_AHEAD - 1):
        hidden = hidden_states(steps)
        chunks = spoken(sound, hidden)
        assert len(chunks) == 1
        np.testing.assert_array_equal(chunks[0], whole(engines("fp32", 0), hidden))


def test_standard_dialect_is_the_other_one(engines: Any) -> None:
    """Window by window, with a whole utterance in the first window and with many."""
    fused, standard = (sound_of(engines("fp32", 2, **options)) for options in ({}, {"dialect": "standard"}))
    for steps in (1, 2, 7, windows.CHUNKS[0] + windows.FIRST_AHEAD, LONG):
        hidden = hidden_states(steps)
        chunks = [spoken(sound, hidden) for sound in (fused, standard)]
        assert [piece.size for piece in chunks[0]] == [piece.size for piece in chunks[1]]
        assert snr(*(np.concatenate(pieces) for pieces in chunks)) > 100


def test_products_in_float16_stay_near(engines: Any) -> None:
    hidden = hidden_states(LONG)
    half = sound_of(engines("fp16", 2, dialect="standard", half=True))
    found = np.concatenate(spoken(half, hidden))
    expected = np.concatenate(spoken(sound_of(engines("fp32", 2)), hidden))
    assert 45 < snr(expected, found) < 90  # near, and not the same network


def test_no_seam_clicks(engines: Any) -> None:
    """The change of the spectrum from frame to frame is no larger at a seam than elsewhere in the whole."""
    hidden = hidden_states(LONG)
    chunks = spoken(sound_of(engines("fp32", 2)), hidden)
    seams = np.cumsum([chunk.size for chunk in chunks[:-1]])
    found, plain = np.concatenate(chunks), whole(engines("fp32", 0), hidden).copy()
    usual = np.array([flux(plain, at) for at in range(1024, len(plain) - 1024, 97)])
    at_seams = np.array([flux(found, at) for at in seams])
    assert at_seams.max() <= np.quantile(usual, 0.999)
    assert at_seams.mean() <= usual.mean() + 3 * usual.std() / np.sqrt(len(seams))
    click = found.copy()
    click[seams[2] :] += 0.5 * np.abs(plain).max()  # what the test must hear
    assert flux(click, seams[2]) > np.quantile(usual, 0.999)


def flux(samples: Samples, at: int, size: int = 128) -> float:
    """Distance between the log spectra of what surrounds a place and of what is just before it."""
    frames = [samples[start : start + size] * np.hanning(size) for start in (at - size, at - size // 2)]
    before, across = (np.log(np.abs(np.fft.rfft(frame)) + 1e-3) for frame in frames)
    return float(np.maximum(across - before, 0).sum())


def test_tracks_do_not_hear_each_other(engines: Any) -> None:
    sound = sound_of(engines("fp32", 2))
    inputs = [hidden_states(150, seed) for seed in (1, 2)]
    alone = [np.concatenate(spoken(sound, hidden)) for hidden in inputs]
    tracks = [sound.open(), sound.open()]
    with pytest.raises(EngineError, match="slots"):
        sound.open()
    out: list[list[Samples]] = [[], []]
    for at in range(0, 150, 10):
        for track, hidden, pieces in zip(tracks, inputs, out, strict=True):
            feed(sound, track, hidden[at : at + 10], pieces)
    for track, pieces, expected in zip(tracks, out, alone, strict=True):
        track.ended = True
        while (window := track.window()) is not None:
            pieces.append(sound.make(track, window).copy())
        sound.close(track)
        np.testing.assert_array_equal(np.concatenate(pieces), expected)


@pytest.mark.parametrize("tracks", [2, 0], ids=["resuming", "plain"])
def test_a_chunk_that_comes_late_is_the_same(engines: Any, tracks: int) -> None:
    sound = sound_of(engines("fp32", tracks))
    hidden = hidden_states(250)
    expected = np.concatenate(spoken(sound, hidden))
    for late in (1, 5, WAITING):
        np.testing.assert_array_equal(np.concatenate(spoken(sound, hidden, late)), expected)


def test_who_is_not_heard_must_wait(engines: Any) -> None:
    """A lane holds what the next window needs and some more; then no further step may be drawn."""
    sound = sound_of(engines("fp32", 2))
    hidden = hidden_states(LONG)
    track, taken = sound.open(), 0
    while sound.room(track):
        sound.take(track, Given(hidden[taken]), 0)  # type: ignore[arg-type]
        taken += 1
    assert windows.LONGEST + WAITING <= taken < LONG
    chunks = []
    while (window := track.window()) is not None:
        chunks.append(sound.make(track, window).copy())
    assert sound.room(track)
    expected = np.concatenate(spoken(sound, hidden))
    found = np.concatenate(chunks)
    np.testing.assert_array_equal(found, expected[: len(found)])
    assert len(found) % STEP == 0
    sound.close(track)


def test_samples_that_are_no_numbers_are_an_error(engines: Any) -> None:
    sound = sound_of(engines("fp32", 2), tracks=1)
    good = hidden_states(80)
    expected = np.concatenate(spoken(sound, good))
    for bad, limit in ((np.nan, 80), (np.inf, 60)):
        hidden = good.copy()
        hidden[limit - 20] = bad
        track = sound.open()
        with pytest.raises(BrokenSound):
            feed(sound, track, hidden, [])
        sound.close(track)
        np.testing.assert_array_equal(np.concatenate(spoken(sound, good)), expected)
