"""The GPT network at tiny size: both dialects, rows, prompts in pieces, cache in place, branches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

pytest.importorskip("onnx", reason="the extra build is not installed")
from edged.compiler.chattts.checkpoint import Checkpoint
from edged.compiler.chattts.gpt import build_gpt
from tests.gpt_runner import Runner, padded, prompt_of

STEPS = 200
Make = Callable[..., Runner]


@pytest.fixture(scope="module")
def checkpoint(tiny_checkpoint: Path) -> Iterator[Checkpoint]:
    with Checkpoint.open(tiny_checkpoint) as opened:
        yield opened


@pytest.fixture(scope="module")
def make(checkpoint: Checkpoint, tmp_path_factory: pytest.TempPathFactory) -> Make:
    built: dict[Any, Any] = {}
    folder = tmp_path_factory.mktemp("gpt")

    def runner(dialect: str, rows: int = 1, **options: Any) -> Runner:
        key = (dialect, *sorted(options.items()))
        if key not in built:
            path = folder / f"{len(built)}.onnx"
            built[key] = (
                path,
                build_gpt(checkpoint, path, dialect=dialect, positions=256, debug=True, **options),
            )
        return Runner(*built[key], rows=rows)

    return runner


@pytest.fixture(params=["ort", "standard"])
def dialect(request: pytest.FixtureRequest) -> str:
    return str(request.param)


ROWS = [prompt_of(1, 12, 0), prompt_of(2, 5, 3), prompt_of(3, 20, 6)]


def test_dialects_agree(make: Make) -> None:
    ids, text, lengths = padded(ROWS)
    (codes, logits), (others, their) = (
        make(name, rows=3).speak(ids, text, lengths, STEPS) for name in ("ort", "standard")
    )
    assert np.abs(logits - their).max() <= 1e-3
    np.testing.assert_array_equal(codes, others)
    assert len(np.unique(codes)) > 50  # not one token for ever


def test_rows_of_a_batch_equal_the_same_rows_alone(make: Make, dialect: str) -> None:
    codes, logits = make(dialect, rows=3).speak(*padded(ROWS), STEPS)
    alone = make(dialect)
    for n, row in enumerate(ROWS):
        own, theirs = alone.speak(*padded([row]), STEPS)
        np.testing.assert_array_equal(codes[:, n], own[:, 0])
        assert np.abs(logits[:, n] - theirs[:, 0]).max() <= 1e-3


def test_prompt_in_pieces_equals_prompt_at_once(make: Make, dialect: str) -> None:
    ids, text, (count,) = padded([prompt_of(4, 30, 10)])
    whole, pieces = make(dialect), make(dialect)
    expected = whole(ids, text, [count - 1])
    for start, stop in ((0, 16), (16, 17), (17, 33), (33, 40)):
        found = pieces(ids[:, start:stop], text[:, start:stop], [stop - 1])
    for name in ("logits", "hidden"):
        np.testing.assert_allclose(found[name], expected[name], atol=1e-4)
    for name, cache in whole.cache.items():
        np.testing.assert_allclose(pieces.cache[name], cache, atol=1e-4)


def test_padding_beyond_the_longest_row_changes_nothing(make: Make, dialect: str) -> None:
    tight = make(dialect, rows=3).speak(*padded(ROWS), 20)
    loose = make(dialect, rows=3).speak(*padded(ROWS, to=48), 20)
    np.testing.assert_array_equal(tight[0], loose[0])
    np.testing.assert_allclose(tight[1], loose[1], atol=1e-4)


def test_cache_written_in_place_equals_a_cache_copied(make: Make, dialect: str) -> None:
    shared, copied = make(dialect, rows=3), make(dialect, rows=3)
    for share, runner in ((True, shared), (False, copied)):
        runner.speak(*padded(ROWS), 20, share=share)
    for name, cache in shared.cache.items():
        for n, row in enumerate(ROWS):
            used = slice(0, len(row[1]) + 19)
            np.testing.assert_array_equal(cache[n, :, used], copied.cache[name][n, :, used])
        assert not cache[:, :, 100:].any()  # nothing beyond what the rows have reached


def test_a_row_can_start_while_others_go_on(make: Make, dialect: str) -> None:
    """The cache of one row is bound alone for its prompt; then all rows step together."""
    runner = make(dialect, rows=2)
    first, _ = make(dialect).speak(*padded([ROWS[0]]), 20)
    second, _ = make(dialect).speak(*padded([ROWS[1]]), 10)
    early, _ = runner.speak(*padded([ROWS[0]]), 10)
    ids, text, (count,) = padded([ROWS[1]])
    late = [runner(ids, text, [count - 1], at=1)["codes"]]
    current, lengths = np.concatenate([early[-1], late[0]]), np.array([len(ROWS[0][1]) + 9, count])
    together = []
    for _ in range(9):
        current = runner(current[:, None], np.zeros((2, 1)), lengths)["codes"]
        together.append(current)
        lengths = lengths + 1
    np.testing.assert_array_equal(first[10:19, 0], [step[0] for step in together])
    np.testing.assert_array_equal(second[1:, 0], [step[1] for step in together])


def test_speaker_replaces_its_token_only(make: Make, dialect: str, checkpoint: Checkpoint) -> None:
    runner, token = make(dialect, rows=2), checkpoint.token_id("[spk_emb]")
    ids, text, lengths = padded([prompt_of(5, 10, 2)] * 2)
    last = np.array(lengths) - 1
    hidden = checkpoint.sizes.hidden
    speakers = np.random.default_rng(0).normal(0, 1, (2, hidden)).astype(np.float32)
    plain = runner(ids, text, last)["logits"]
    np.testing.assert_array_equal(runner(ids, text, last, speaker=speakers)["logits"], plain)
    ids[1, 3] = token
    found = runner(ids, text, last, speaker=speakers)["logits"]
    np.testing.assert_allclose(found[0], plain[0], atol=1e-5)
    assert np.abs(found[1] - plain[1]).max() > 0.01
    # the same as a text embedding of that value
    table = checkpoint.tensor("embed", "emb_text.weight")
    ids[1, 3] = 77
    embedded = runner(ids, text, last)["logits"]
    ids[1, 3] = token
    speakers[1] = table[77]
    injected = runner(ids, text, last, speaker=speakers)["logits"]
    np.testing.assert_allclose(injected[1], embedded[1], atol=1e-5)


def test_refine_uses_the_text_head(make: Make, dialect: str, checkpoint: Checkpoint) -> None:
    runner = make(dialect)
    ids, text, (count,) = padded([ROWS[0]])
    refine = np.ones(1, np.bool_)
    found = runner(ids, text, [count - 1], refine=refine)
    scores = found["hidden"] @ checkpoint.tensor("embed", "head_text.weight").T
    np.testing.assert_allclose(found["logits"][:, 0], scores, atol=1e-4)
    end = checkpoint.token_id("[Ebreak]")
    scores[:, end] = -np.inf
    assert (found["codes"] == scores.argmax()).all()
    assert found["end"].tolist() == [0]
    history = np.full((1, 16, 4), -1)
    history[0, -1] = scores.argmax()
    again = runner(ids, text, [count - 1], refine=refine, penalty=[50.0], history=history)
    assert (again["codes"] == np.argsort(scores[0])[-2]).all()


def test_hidden_state_and_heads_belong_to_the_last_token(
    make: Make, dialect: str, checkpoint: Checkpoint
) -> None:
    runner = make(dialect, rows=3)
    ids, text, lengths = padded(ROWS)
    last = np.array(lengths) - 1
    found = runner(ids, text, last, last=last)
    for n in range(4):
        weight = checkpoint.tensor("embed", f"head_code.{n}.weight")
        np.testing.assert_allclose(found["logits"][:, n], found["hidden"] @ weight.T, atol=1e-4)


def test_half_precision_cache(make: Make, dialect: str) -> None:
    ids, text, lengths = padded(ROWS)
    full = make(dialect, rows=3).speak(ids, text, lengths, 1)[1]
    half = make(dialect, rows=3, kv="float16")
    assert {cache.dtype for cache in half.cache.values()} == {np.dtype(np.float16)}
    codes, logits = half.speak(ids, text, lengths, 30)
    np.testing.assert_allclose(logits[:1], full, atol=0.02)
    assert np.isfinite(logits).all()
    assert len(np.unique(codes)) > 20


@pytest.mark.parametrize("precision", ["int8", "int4"])
def test_quantised_dialects_agree(make: Make, precision: str) -> None:
    """Up to the rounding of activations, which only the fused product does."""
    runners = [make(name, precision=precision) for name in ("ort", "standard")]
    full, (ids, text, (count,)) = make("ort"), padded([ROWS[2]])
    expected = full(ids, text, [count - 1])["logits"]
    logits = [runner(ids, text, [count - 1])["logits"] for runner in runners]
    loss = max(np.abs(found - expected).mean() for found in logits)
    assert np.abs(logits[0] - logits[1]).mean() < 0.5 * loss + 0.02
    assert loss < (0.05 if precision == "int8" else 0.5)


def test_builds_are_reproducible(checkpoint: Checkpoint, tmp_path: Path) -> None:
    seen = []
    for name in "ab":
        (tmp_path / name).mkdir()
        path = tmp_path / name / "gpt.onnx"
        build_gpt(checkpoint, path, precision="int4")
        seen.append((path.read_bytes(), path.with_name("gpt.onnx.data").read_bytes()))
    assert seen[0] == seen[1]


def test_standard_dialect_has_only_standard_operators(checkpoint: Checkpoint, tmp_path: Path) -> None:
    path = tmp_path / "gpt.onnx"
    build_gpt(checkpoint, path, dialect="standard", precision="int4")
    onnx.checker.check_model(str(path))
    model = onnx.load(str(path), load_external_data=False)
    assert {(one.domain, one.version) for one in model.opset_import} == {("", 21)}
    inner = [a.g for node in model.graph.node for a in node.attribute if a.HasField("g")]
    used = {node.op_type for graph in (model.graph, *inner) for node in graph.node}
    assert not used & {"Attention", "NonZero", "Multinomial", "RMSNormalization", "RotaryEmbedding", "Loop"}
