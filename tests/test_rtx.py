"""Every network for TensorRT through TensorRT-RTX ahead of time: parsed and compiled by our builder."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from edged.compiler.chattts.checkpoint import Checkpoint
from edged.compiler.chattts.options import PRECISIONS, check
from edged.compiler.chattts.plans import networks
from edged.compiler.graph import Graph
from edged.compiler.parts import silent
from edged.compiler.trt import Limits, PlanBuilder
from edged.errors import PlanFailed
from tests import rtx


def gate(*arguments: str, limit_s: float) -> list[dict[str, object]]:
    rtx.library()
    command = [sys.executable, str(rtx.ROOT / "tools" / "rtx_gate"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=limit_s, check=False)
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, f"{told}\n{done.stderr[-2000:]}"
    return told


@pytest.mark.timeout(300)
def test_all_networks_at_tiny_size(tiny_checkpoint: Path) -> None:
    told = gate("--checkpoint", str(tiny_checkpoint), limit_s=290)
    assert len(told) == 2 * 2 * len(PRECISIONS["tensorrt"])
    assert all(line["ok"] for line in told)


@pytest.mark.timeout(600)
def test_the_default_at_full_size() -> None:
    """The checkpoint is random, and 1.1 GB."""
    told = gate("--precision", "fp16", limit_s=580)
    assert [line["network"] for line in told if line["ok"]] == ["gpt", "gpt", "vocoder", "vocoder"]


@pytest.mark.parametrize("precision", PRECISIONS["tensorrt"])
def test_no_input_decides_a_shape(tiny_checkpoint: Path, tmp_path: Path, precision: str) -> None:
    """TensorRT would read such an input on the host, before it can start."""
    trt = rtx.library()
    chosen = check(precision, (), 256, 2, "", (), False, "tensorrt")
    with Checkpoint.open(tiny_checkpoint) as source:
        made = networks(source, tmp_path, chosen, silent)
    logger = trt.Logger(trt.Logger.ERROR)
    for network in made:
        definition = trt.Builder(logger).create_network(0)
        assert trt.OnnxParser(definition, logger).parse_from_file(str(network.path))
        inputs = [definition.get_input(n) for n in range(definition.num_inputs)]
        assert {tensor.name for tensor in inputs} == {spec.name for spec in network.interface.inputs}
        assert not [tensor.name for tensor in inputs if tensor.is_shape_tensor]


@pytest.fixture
def doubling(tmp_path: Path) -> Path:
    graph = Graph("doubling", 21)
    x = graph.input("x", "float32", ("B", 4), (8, 4))
    graph.output(graph.node("Add", [x, x]), "y", "float32", ("B", 4), (8, 4))
    graph.save(tmp_path / "doubling.onnx")
    return tmp_path / "doubling.onnx"


def test_phases_are_told_and_grow(doubling: Path) -> None:
    told: list[tuple[str, float]] = []
    builder = PlanBuilder(rtx.library(), Limits(workspace_mb=64), rtx.generation(86))
    builder.build(
        doubling, doubling.with_suffix(".plan"), [{"B": (1, 1, 8)}], lambda *told_: told.append(told_)
    )
    fractions = [fraction for _, fraction in told]
    assert fractions == sorted(fractions)
    assert fractions[-1] == pytest.approx(1.0)
    assert all(phase.startswith("doubling: ") for phase, _ in told)
    assert doubling.with_suffix(".plan").stat().st_size > 1000


@pytest.mark.filterwarnings("ignore:.*Timing cache:DeprecationWarning")  # there it keeps nothing
def test_the_timing_cache_is_a_file_that_is_read_again(doubling: Path) -> None:
    kept = doubling.with_name("timings")
    for _ in range(2):
        builder = PlanBuilder(rtx.library(), Limits(timing_cache=kept), rtx.generation(86))
        builder.build(doubling, doubling.with_suffix(".plan"), [{"B": (1, 1, 8)}], silent)
        assert kept.is_file()
    assert [path.name for path in doubling.parent.glob(".timings*")] == []


def test_a_failing_progress_stops_the_build(doubling: Path) -> None:
    def interrupted(phase: str, fraction: float) -> None:
        raise KeyboardInterrupt

    builder = PlanBuilder(rtx.library(), Limits(), rtx.generation(86))
    with pytest.raises(KeyboardInterrupt):
        builder.build(doubling, doubling.with_suffix(".plan"), [{"B": (1, 1, 8)}], interrupted)
    assert not doubling.with_suffix(".plan").exists()


def test_a_refused_operator_is_named(tmp_path: Path) -> None:
    graph = Graph("odd", 21)
    x = graph.input("x", "float32", ("B", 4), (8, 4))
    y = graph.node("Multinomial", [x], dtype=7, sample_size=1)
    graph.output(y, "y", "int64", ("B", 1), (8, 1))
    graph.save(tmp_path / "odd.onnx")
    builder = PlanBuilder(rtx.library(), Limits(), rtx.generation(86))
    with pytest.raises(PlanFailed, match=r"odd\.onnx.*node 0 \(operator Multinomial\): UNSUPPORTED_NODE"):
        builder.build(tmp_path / "odd.onnx", tmp_path / "odd.plan", [{"B": (1, 1, 8)}], silent)


def test_a_refused_profile_is_an_error(doubling: Path) -> None:
    builder = PlanBuilder(rtx.library(), Limits(), rtx.generation(86))
    with pytest.raises(PlanFailed, match="shapes"):
        builder.build(doubling, doubling.with_suffix(".plan"), [{"B": (8, 4, 1)}], silent)
