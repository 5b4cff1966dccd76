"""Rounding of weights: error bounds, packing as the runtime reads it, and better than nearest."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

pytest.importorskip("onnx", reason="the extra build is not installed")
from edged.compiler.chattts.calibrate import calibrate
from edged.compiler.chattts.checkpoint import Checkpoint
from edged.compiler.chattts.dialect import OPSET, Shape
from edged.compiler.chattts.gpt import DIALECTS, build_gpt
from edged.compiler.chattts.quantize import Blocks, Plan, nearest, quantised
from edged.compiler.graph import Graph
from edged.errors import BadValue
from tests.checkpoints import Tensors, copied, rewrite
from tests.gpt_runner import Runner, padded, prompt_of


def weight(rows: int = 96, columns: int = 256, seed: int = 0) -> NDArray[np.float32]:
    rng = np.random.default_rng(seed)
    return rng.standard_t(5, (rows, columns)).astype(np.float32) * np.float32(0.03)  # heavier than normal


def snr(wanted: NDArray[np.float32], found: NDArray[np.float32]) -> float:
    noise = np.square(wanted - found, dtype=np.float64).sum()
    return float(10 * np.log10(np.square(wanted, dtype=np.float64).sum() / noise))


@settings(max_examples=40, deadline=None)
@given(
    bits=st.sampled_from([4, 8]),
    block=st.sampled_from([16, 32, 64, 128]),
    seed=st.integers(0, 2**32 - 1),
    scale=st.sampled_from([1e-6, 1.0, 1e4]),
)
def test_nearest_is_off_by_half_a_step_at_most(bits: int, block: int, seed: int, scale: float) -> None:
    values = weight(8, 256, seed) * np.float32(scale)
    blocks = nearest(values, bits, block)
    error = np.abs(values - blocks.dense()).reshape(*blocks.scales.shape, block)
    assert (error <= 0.5001 * blocks.scales[..., None]).all()
    assert (blocks.scales > 0).all()


@pytest.mark.parametrize("bits", [4, 8])
def test_zeros_stay_zeros(bits: int) -> None:
    blocks = quantised(np.zeros((4, 64), np.float32), bits, 32)
    assert not blocks.dense().any()
    assert np.isfinite(blocks.scales).all()


def test_chosen_scales_are_better_than_the_largest_number() -> None:
    values = weight()
    for block in (32, 64, 128):
        assert (
            snr(values, quantised(values, 4, block).dense())
            > snr(values, nearest(values, 4, block).dense()) + 0.5
        )
    assert snr(values, quantised(values, 4, 64).dense()) > 17
    assert snr(values, quantised(values, 8, 128).dense()) > 40


def test_compensated_rounding_is_better_where_inputs_are_correlated() -> None:
    """Measured on the product, which is what counts."""
    rng = np.random.default_rng(1)
    values = weight()
    inputs = (rng.normal(0, 1, (512, 32)) @ rng.normal(0, 1, (32, 256))).astype(np.float32)
    inputs += rng.normal(0, 1, inputs.shape).astype(np.float32)
    train, test = inputs[:384], inputs[384:]
    plain = quantised(values, 4, 64)
    better = quantised(values, 4, 64, train.T @ train / np.float32(len(train)))
    wanted = test @ values.T
    assert snr(wanted, test @ better.dense().T) > snr(wanted, test @ plain.dense().T) + 2


def product(dialect: str, blocks: Blocks, x: NDArray[np.float32]) -> NDArray[np.float32]:
    """x @ matrix.T by the runtime."""
    graph = Graph("product", OPSET)
    graph.input("x", "float32", ("B", x.shape[1]), x.shape)
    shape = Shape(heads=1, width=16, positions=1, theta=1e4, epsilon=1e-6)
    y = DIALECTS[dialect](graph, shape).linear("x", "matrix", blocks)
    graph.output(y, "y", "float32", ("B", len(blocks.codes)), (len(x), len(blocks.codes)))
    options = ort.SessionOptions()
    options.log_severity_level = 3
    # so that the standard operators run as they are written
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(
        graph.build().SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    (found,) = session.run(["y"], {"x": x})
    return np.asarray(found)


@pytest.mark.parametrize("dialect", ["ort", "standard"])
@pytest.mark.parametrize(
    ("bits", "block"), [(4, 16), (4, 32), (4, 64), (4, 128), (8, 32), (8, 128), (8, 256)]
)
def test_the_runtime_reads_the_packing(dialect: str, bits: int, block: int) -> None:
    values = weight(48, 256, 3)
    blocks = quantised(values, bits, block)
    x = np.random.default_rng(4).normal(0, 1, (3, 256)).astype(np.float32)
    found, wanted = product(dialect, blocks, x), x @ blocks.dense().T
    # the fused product rounds its activations to 8 bits as well
    assert snr(wanted, found) > (35 if dialect == "ort" else 90)


def test_block_follows_the_columns() -> None:
    assert quantised(weight(4, 96), 4, 128).block == 32  # the largest power of two in 96
    whole = quantised(weight(4, 96), 8, 96, whole=True)
    assert whole.scales.shape == (4, 1)


def test_plan_takes_the_last_pattern_that_matches() -> None:
    plan = Plan("int4", (("layers.*", "int8"), ("layers.0.down", "fp32")))
    assert [plan.of(n) for n in ("layers.3.qkv", "layers.0.down", "head_text")] == ["int8", "fp32", "int4"]
    assert isinstance(plan.matrix("layers.0.down", weight()), np.ndarray)
    table = plan.table("emb_text", weight())
    assert table.values.dtype == np.int8
    assert table.scales is not None
    assert snr(weight(), table.values * table.scales) > 35


@pytest.mark.parametrize("overrides", [(("layers.*", "int3"),), (("layers.0.qkv", "fp16"),)])
def test_impossible_precisions_are_refused(overrides: tuple[tuple[str, str], ...]) -> None:
    with pytest.raises(BadValue):
        Plan("int4", overrides).matrix("layers.0.qkv", weight())


def test_calibrated_network_is_nearer_to_fp32(tiny_checkpoint: Path, tmp_path: Path) -> None:
    """Logits of sequences that were not used for calibration. As in trained models, and not in random
    ones, the embeddings lie near a subspace, so that the columns of a matrix can stand in for each other."""
    folder = copied(tiny_checkpoint, tmp_path / "checkpoint")

    def flatten(tensors: Tensors) -> None:
        basis = np.random.default_rng(7).normal(0, 1, (8, 64)).astype(np.float32)
        for name, table in tensors.items():
            if name.startswith("emb_"):
                table[:] = 0.3 * table + table[:, :8] @ basis

    rewrite(folder / "asset/Embed.safetensors", flatten)
    with Checkpoint.open(folder) as checkpoint:
        prompts = np.random.default_rng(0).integers(0, 400, (8, 24))
        sums = calibrate(checkpoint, prompts, tmp_path / "sums", steps=40)
        assert "layers.0.qkv" in sums
        assert not list((tmp_path / "sums").glob("*.onnx*"))
        overrides = (("emb_*", "fp32"), ("head_*", "fp32"))
        logits = {}
        for name, options in {
            "fp32": {"precision": "fp32"},
            "plain": {"precision": "int4", "overrides": overrides},
            "better": {"precision": "int4", "overrides": overrides, "sensitivity": sums},
        }.items():
            path = tmp_path / f"{name}.onnx"
            interface = build_gpt(checkpoint, path, dialect="standard", positions=64, debug=True, **options)  # type: ignore[arg-type]
            runner = Runner(path, interface, rows=6, positions=64)
            ids, text, _ = padded([prompt_of(100 + n, 24, 12) for n in range(6)])
            found = []
            for count in range(25, 37):  # teacher-forced
                found.append(runner(ids[:, :count], text[:, :count], [count - 1] * 6)["logits"])
            logits[name] = np.array(found)
    plain, better = (snr(logits["fp32"], logits[name]) for name in ("plain", "better"))
    assert better > plain + 0.5, (plain, better)
