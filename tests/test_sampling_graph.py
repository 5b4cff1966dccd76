"""The sampling part of the network against the rules in numpy."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.reference import live
from tests.sampling_rules import Row, drawn, probabilities, processed, softmax

pytest.importorskip("onnx", reason="the extra build is not installed")
from edged.compiler.chattts.sampling import WINDOW, sampler

CODES = 626
END = CODES - 1
TEXT, BREAK = 1000, 990


@cache
def session(groups: int = 4, tokens: int = CODES, width: int = CODES, adaptive: bool = True) -> Any:
    end = END if groups == 4 else BREAK
    model = sampler(groups, tokens, width=width, end=end, adaptive=adaptive).build()
    return ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


def run(
    scores: NDArray[Any],
    rows: list[Row],
    history: NDArray[np.int64] | None = None,
    uniform: Any = 0.5,
    greedy: bool = False,
    **which: Any,
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    batch, groups, tokens = scores.shape
    if history is None:
        history = np.full((batch, WINDOW, groups), -1)
    feeds = {
        "scores": scores.astype(np.float32),
        "temperature": np.array([r.temperature for r in rows], np.float32),
        "top_p": np.array([r.top_p for r in rows], np.float32),
        "top_k": np.array([r.top_k for r in rows], np.int64),
        "penalty": np.array([r.penalty for r in rows], np.float32),
        "ban_end": np.array([r.ban_end for r in rows], np.int64),
        "uniform": np.broadcast_to(np.asarray(uniform, np.float32), (batch, groups)),
        "greedy": np.full(batch, greedy, np.int64),
        "history": history.astype(np.int64),
    }
    codes, end, probs = session(groups, tokens, **which).run(["codes", "end", "probs"], feeds)
    return codes, end, probs


def scores_of(seed: int, batch: int = 1, groups: int = 4, tokens: int = CODES, spread: float = 3.0) -> Any:
    return np.random.default_rng(seed).normal(0, spread, (batch, groups, tokens)).astype(np.float32)


rows_strategy = st.builds(
    Row,
    temperature=st.floats(0.0625, 2.0, width=32),
    top_p=st.one_of(st.just(1.0), st.floats(0.0, 1.0, width=32)),
    top_k=st.integers(1, 700),
    penalty=st.one_of(st.just(1.0), st.floats(0.75, 1.5, width=32)),
    ban_end=st.booleans(),
)


@pytest.mark.parametrize("adaptive", [False, True])
@settings(max_examples=50, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    spread=st.floats(0.1, 8.0),
    rows=st.lists(rows_strategy, min_size=1, max_size=3),
    fill=st.integers(0, WINDOW),
    narrow=st.booleans(),
)
def test_distribution_equals_the_rules(
    adaptive: bool, seed: int, spread: float, rows: list[Row], fill: int, narrow: bool
) -> None:
    rng = np.random.default_rng(seed)
    scores = scores_of(seed, len(rows), spread=spread)
    history = np.full((len(rows), WINDOW, 4), -1)
    if fill:
        history[:, -fill:] = rng.integers(0, 5 if narrow else CODES, (len(rows), fill, 4))
    uniform = rng.random((len(rows), 4), dtype=np.float32)
    codes, end, probs = run(scores, rows, history, uniform, adaptive=adaptive)
    for b, row in enumerate(rows):
        for g in range(4):
            z = processed(scores[b, g], history[b, :, g], row, END)
            expected = softmax(z)
            if _on_a_border(scores[b, g], history[b, :, g], row):
                continue  # a score so near the nucleus' border that rounding decides
            assert np.abs(probs[b, g] - expected).max() <= _tolerance(z)
            token, margin = drawn(expected, float(uniform[b, g]))
            if margin > 1e-5:
                assert codes[b, g] == token
        assert end[b] == int((codes[b] == END).any())


def _tolerance(kept: NDArray[np.float32]) -> float:
    """1e-6, or float32's rounding of scores that a low temperature or a penalty has made large."""
    return max(1e-6, 2.0**-22 * float(np.abs(kept[np.isfinite(kept)]).max()))


def _on_a_border(scores: NDArray[np.float32], history: NDArray[np.int64], row: Row) -> bool:
    """Is the mass below some candidate within rounding of 1 - top_p, so that either answer is right?"""
    if row.top_p == 1.0:
        return False  # only tokens of no weight are in doubt
    z = processed(scores, history, Row(row.temperature, 1.0, len(scores), row.penalty), END)
    below = np.cumsum(np.sort(softmax(z)).astype(np.float64))
    return bool((np.abs(below - (1.0 - row.top_p)) < 1e-6).any())


@pytest.mark.parametrize("adaptive", [False, True])
def test_text_head_with_bounded_candidates(adaptive: bool) -> None:
    rows = [Row(0.7, 0.7, 20, 1.0), Row(1.0, 0.95, 64, 1.3), Row(0.7, 0.7, 20, 1.0, ban_end=True)]
    scores = scores_of(5, 3, 1, TEXT)
    scores[:, 0, BREAK] = scores.max() + 2
    history = np.random.default_rng(2).integers(-1, TEXT, (3, WINDOW, 1))
    codes, end, probs = run(scores, rows, history, 0.0, width=64, adaptive=adaptive)
    for b, row in enumerate(rows):
        expected = probabilities(scores[b, 0], history[b, :, 0], row, BREAK)
        np.testing.assert_allclose(probs[b, 0], expected, atol=1e-6)
    assert end.tolist() == [1, 1, 0]
    assert codes[0, 0] == BREAK
    assert codes[2, 0] != BREAK


def test_a_larger_top_k_than_the_width_counts_as_the_width() -> None:
    scores = scores_of(6, 1, 1, TEXT)
    *_, probs = run(scores, [Row(top_k=500)], width=64)
    np.testing.assert_allclose(
        probs[0, 0], probabilities(scores[0, 0], np.array([-1]), Row(top_k=64), BREAK), atol=1e-6
    )


def test_three_candidates_survive_the_narrowest_settings() -> None:
    *_, probs = run(scores_of(1), [Row(temperature=0.05, top_p=0.0, top_k=1)])
    scores = scores_of(1)
    kept = np.argsort(scores[0], axis=1)[:, -3:]
    for g in range(4):
        expected = np.zeros(CODES, np.float32)
        expected[kept[g]] = softmax(scores[0, g][kept[g]] / np.float32(0.05))
        np.testing.assert_allclose(probs[0, g], expected, atol=1e-6)


def test_banned_end_leaves_the_rest_even_when_it_had_all_the_mass() -> None:
    scores = scores_of(2)
    scores[..., END] = 500.0
    codes, end, probs = run(scores, [Row(temperature=0.1, top_p=0.7, ban_end=True)], uniform=0.999)
    assert end[0] == 0
    assert (probs[0, :, END] == 0).all()
    np.testing.assert_allclose(probs[0].sum(-1), 1.0, atol=1e-5)
    runner_up = np.argsort(scores[0], axis=1)[:, -3:-1]  # the nucleus keeps three, the end was one
    assert all(codes[0, g] in runner_up[g] for g in range(4))
    _, end, _ = run(scores, [Row(temperature=0.1, top_p=0.7)])
    assert end[0] == 1


def test_one_codebook_at_the_end_ends_the_row() -> None:
    scores = scores_of(3, batch=2)
    scores[1, 2, END] = 100.0
    _, end, _ = run(scores, [Row(), Row()], greedy=True)
    assert end.tolist() == [0, 1]


def test_window_counts_repeats_of_its_own_codebook_only() -> None:
    scores = np.full((1, 4, CODES), -1.0, np.float32)
    scores[..., 7], scores[..., 0] = 2.0, 1.5
    history = np.full((1, WINDOW, 4), -1)
    history[0, -3:, 1] = 7
    *_, probs = run(scores, [Row(penalty=1.5, top_k=CODES)], history)
    for g in range(4):
        expected = scores[0, g].copy()
        if g == 1:
            expected[7] = np.float32(2.0) / np.float32(1.5) ** 3
        np.testing.assert_allclose(probs[0, g], softmax(expected), atol=1e-6)


def test_empty_window_changes_nothing_even_with_a_penalty() -> None:
    scores = scores_of(4)
    *_, plain = run(scores, [Row(penalty=1.0)])
    *_, penalised = run(scores, [Row(penalty=1.9)])
    np.testing.assert_array_equal(plain, penalised)


@pytest.mark.parametrize("uniform", [0.0, 0.25, 0.999, float(np.nextafter(np.float32(1), np.float32(0)))])
def test_draw_inverts_the_distribution(uniform: float) -> None:
    scores = scores_of(8)
    codes, _, probs = run(scores, [Row(top_p=0.9, top_k=50)], uniform=uniform)
    for g in range(4):
        assert probs[0, g, codes[0, g]] > 0
        token, margin = drawn(probs[0, g], uniform)
        assert codes[0, g] == token or margin < 1e-6


def test_greedy_takes_the_best_that_is_allowed() -> None:
    scores = scores_of(9)
    scores[..., END] = 50.0
    codes, *_ = run(scores, [Row()], uniform=0.9, greedy=True)
    assert (codes == END).all()
    codes, *_ = run(scores, [Row(ban_end=True)], uniform=0.9, greedy=True)
    assert (codes[0] == np.argmax(scores[0, :, :END], axis=1)).all()


def test_rows_do_not_touch_each_other() -> None:
    scores, rng = scores_of(10, batch=3), np.random.default_rng(0)
    rows = [Row(0.3, 0.7, 20, 1.05), Row(1.2, 1.0, 400, 0.8), Row(0.7, 0.1, 5, 1.0, True)]
    history, uniform = rng.integers(-1, CODES, (3, WINDOW, 4)), rng.random((3, 4), dtype=np.float32)
    together = run(scores, rows, history, uniform)
    for b, row in enumerate(rows):
        alone = run(scores[b : b + 1], [row], history[b : b + 1], uniform[b : b + 1])
        for one, all_ in zip(alone, together, strict=True):
            np.testing.assert_allclose(one[0], all_[b], atol=1e-7)


@pytest.mark.reference
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), row=rows_strategy, fill=st.integers(0, 30))
def test_rules_equal_the_reference(seed: int, row: Row, fill: int) -> None:
    if reason := live.available():
        pytest.skip(reason)
    live.stand_in()
    import torch
    from ChatTTS.model.processors import gen_logits

    rng = np.random.default_rng(seed)
    scores = scores_of(seed)[0]
    tokens = rng.integers(0, CODES, (4, fill))
    z = torch.from_numpy(scores) / row.temperature
    warpers, processors = gen_logits(END, row.top_p, row.top_k, row.penalty)
    for rule in (*processors, *warpers):
        z = rule(torch.from_numpy(tokens), z)
    if row.ban_end:
        z[:, END] = -torch.inf
    expected = torch.softmax(z, -1).numpy()
    for g in range(4):
        window = tokens[g][-WINDOW:]
        if not _on_a_border(scores[g], window, row):
            np.testing.assert_allclose(probabilities(scores[g], window, row, END), expected[g], atol=1e-6)
