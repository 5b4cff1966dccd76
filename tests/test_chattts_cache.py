"""The 8-bit key/value cache at tiny size: as good as float32's, in every way it is written."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("onnx", reason="the extra build is not installed")

from edged.compiler.chattts import cache, options
from edged.compiler.chattts.checkpoint import Checkpoint
from edged.compiler.chattts.gpt import build_gpt
from edged.compiler.chattts.stored import StoredWeights
from edged.errors import BadValue
from tests.gpt_runner import Runner, padded, prompt_of

ROWS = [prompt_of(1, 12, 0), prompt_of(2, 5, 3), prompt_of(3, 20, 6)]
ABLE = tuple(map(int, version("onnxruntime").split(".")[:2])) >= options.CACHE_8_BITS
pytestmark = pytest.mark.skipif(not ABLE, reason="this ONNX Runtime has no 8-bit cache")


@pytest.fixture(scope="module")
def checkpoint(tiny_checkpoint: Path) -> Iterator[Checkpoint]:
    with Checkpoint.open(tiny_checkpoint) as opened:
        yield opened


@pytest.fixture(scope="module")
def pair(checkpoint: Checkpoint, tmp_path_factory: pytest.TempPathFactory) -> tuple[Runner, Runner]:
    """The same network with a cache of 32 and of 8 bits."""
    folder = tmp_path_factory.mktemp("cache")
    runners = []
    for kv in ("float32", "int8"):
        path = folder / f"{kv}.onnx"
        made = build_gpt(checkpoint, path, positions=256, slots=3, prompt=64, kv=kv, debug=True)  # type: ignore[arg-type]
        if kv == "int8":
            cache.fit(path, made, [prompt_of(seed, 24, 0)[0][:, 0] for seed in range(10, 14)], threads=1)
        runners.append(Runner(path, made, rows=3))
    assert sorted(file.name for file in folder.iterdir()) == sorted(
        f"{kv}.onnx{end}" for kv in ("float32", "int8") for end in ("", ".data")
    )
    return runners[0], runners[1]


def scales(runner: Runner) -> dict[str, NDArray[Any]]:
    stored = StoredWeights(Path(runner.session._model_path))
    return {name: stored.value(cache.scale_name(name)) for name in runner.cache}


def test_what_is_stored_is_what_a_float32_cache_holds(pair: tuple[Runner, Runner]) -> None:
    full, small = pair
    assert {array.dtype for array in small.cache.values()} == {np.dtype(np.int8)}
    assert sum(a.nbytes for a in small.cache.values()) * 4 == sum(a.nbytes for a in full.cache.values())
    ids, text, lengths = padded(ROWS)
    last = np.array(lengths) - 1
    for runner in pair:
        runner(ids, text, last, last=last)
    for name, scale in scales(small).items():
        for row, length in enumerate(lengths):
            expected = full.cache[name][row, :, :length]
            found = small.cache[name][row, :, :length] * scale[0]
            noise = np.square(found - expected).sum() / np.square(expected).sum()
            assert noise < 1e-3, f"{name}: {noise}"
            clipped = np.abs(small.cache[name][row, :, :length].astype(int)) >= 127
            assert clipped.mean() < 5e-3, "in spite of the headroom"


def test_codes_follow_the_same_distribution(pair: tuple[Runner, Runner]) -> None:
    full, small = pair
    ids, text, lengths = padded(ROWS)
    expected = full.speak(ids, text, lengths, 1)[1]
    codes, logits = small.speak(ids, text, lengths, 40)
    spread = expected.std()
    assert np.abs(logits[:1] - expected).max() < 0.1 * spread
    assert np.isfinite(logits).all()
    assert len(np.unique(codes)) > 20


def test_a_prompt_in_pieces_beside_other_rows_equals_it_alone(pair: tuple[Runner, Runner]) -> None:
    small = pair[1]
    ids, text, (count,) = padded([ROWS[2]])
    whole = small(ids, text, [count - 1], at=0)
    for start, stop in ((0, 16), (16, 17), (17, count)):
        found = small(ids[:, start:stop], text[:, start:stop], [stop - 1], at=1)
    assert np.abs(found["logits"] - whole["logits"]).max() < 0.1 * whole["logits"].std()
    for array in small.cache.values():  # a key exactly between two levels may go to either
        assert np.abs(array[0, :, :count].astype(int) - array[1, :, :count]).max() <= 2


def test_both_channels_of_a_rotated_pair_share_a_scale(pair: tuple[Runner, Runner]) -> None:
    for name, scale in scales(pair[1]).items():
        first, second = np.split(scale, 2, axis=3)
        assert np.array_equal(first, second) == name.startswith("past_k")
        assert (scale > 0).all()


def test_which_cache_a_build_gets() -> None:
    def chosen(precision: str, kv: str) -> str:
        return options.check(precision, (), 256, 2, kv, (), False).kv

    assert [chosen(p, "") for p in ("fp32", "int8", "int4")] == ["float32", "int8", "int8"]
    assert chosen("fp32", "float16") == "float16"
    with pytest.raises(BadValue, match="int9"):
        chosen("int4", "int9")


def test_the_standard_dialect_has_none(checkpoint: Checkpoint, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="8-bit"):
        build_gpt(checkpoint, tmp_path / "gpt.onnx", dialect="standard", kv="int8")
