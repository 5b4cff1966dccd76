"""Networks for TensorRT: strongly typed, of standard operators, and near fp32 in numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto

from edged.compiler.chattts import agreement, plans, reading
from edged.compiler.chattts.checkpoint import Checkpoint
from edged.compiler.chattts.options import PRECISIONS, PROMPT_PIECE, check
from edged.compiler.chattts.thresholds import TENSORRT
from edged.compiler.graph import Graph
from edged.compiler.parts import silent
from edged.errors import BadValue, BundleInaccurate
from edged.precision import judge
from tests.half_arithmetic import rewritten

FLOATS = {TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE}
KINDS = PRECISIONS["tensorrt"]
Made = dict[str, plans.Network]


@pytest.fixture(scope="module")
def checkpoint(tiny_checkpoint: Path) -> Iterator[Checkpoint]:
    with Checkpoint.open(tiny_checkpoint) as opened:
        yield opened


@pytest.fixture(scope="module")
def made(checkpoint: Checkpoint, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Made]:
    """The networks of every precision."""
    found = {}
    for precision in KINDS:
        chosen = check(precision, (), 256, 2, "", (), False, "tensorrt")
        folder = tmp_path_factory.mktemp(precision)
        found[precision] = {n.name: n for n in plans.networks(checkpoint, folder, chosen, silent)}
    return found


def typed(path: Path) -> tuple[onnx.ModelProto, dict[str, int]]:
    """A model and the element type of every value in it."""
    onnx.checker.check_model(str(path), full_check=True)
    model = onnx.load_model(str(path), load_external_data=False)
    graph = onnx.shape_inference.infer_shapes(model, strict_mode=True).graph
    types = {v.name: v.type.tensor_type.elem_type for v in (*graph.input, *graph.output, *graph.value_info)}
    return model, types | {tensor.name: tensor.data_type for tensor in graph.initializer}


@pytest.mark.parametrize("name", ["gpt", "vocoder"])
@pytest.mark.parametrize("precision", KINDS)
def test_every_node_has_one_type_of_floats(made: dict[str, Made], precision: str, name: str) -> None:
    model, types = typed(made[precision][name].path)
    assert [(entry.domain, entry.version) for entry in model.opset_import] in ([("", 18)], [("", 21)])
    operators = Counter(node.op_type for node in model.graph.node)
    assert not operators.keys() & {"If", "Loop", "Scan", "NonZero"}  # an engine with them waits for the host
    for node in model.graph.node:
        if node.op_type == "Cast":
            continue
        found = {types[value] for value in (*node.input, *node.output) if value} & FLOATS
        assert len(found) <= 1, f"{node.op_type} {node.output[0]} mixes {found}"


@pytest.mark.parametrize("precision", ["fp16", "int8", "int4"])
def test_what_is_float16_and_what_is_not(made: dict[str, Made], precision: str) -> None:
    for name, exact in (("gpt", 1), ("vocoder", 3)):  # the code head; the last layer and the transform's two
        model, types = typed(made[precision][name].path)
        kinds: dict[str, Counter[int]] = {}
        for node in model.graph.node:
            kinds.setdefault(node.op_type, Counter())[types[node.output[0]]] += 1
        assert kinds["MatMul"][TensorProto.FLOAT] == exact
        assert kinds["MatMul"][TensorProto.FLOAT16] >= 4
        for operator in ("Softmax", "ReduceMean", "LayerNormalization", "Exp", "Cos", "Sin", "Sqrt", "TopK"):
            assert TensorProto.FLOAT16 not in kinds.get(operator, {}), operator
        if name == "vocoder":
            assert kinds["Conv"].keys() == {TensorProto.FLOAT16}
    gpt = made[precision]["gpt"].interface
    assert {s.dtype for s in gpt.inputs if s.name.startswith("past_")} == {"float16"}
    assert {s.dtype for s in gpt.outputs if s.name == "hidden"} == {"float32"}


@pytest.mark.parametrize("precision", ["int8", "int4"])
def test_small_weights_are_as_tensorrt_takes_them(made: dict[str, Made], precision: str) -> None:
    """Eight bits: one scale a column. Four: one for a block of rows. Float16 scales, no zero points."""
    model, types = typed(made[precision]["gpt"].path)
    sizes = {tensor.name: tuple(tensor.dims) for tensor in model.graph.initializer}
    nodes = [node for node in model.graph.node if node.op_type == "DequantizeLinear"]
    assert len(nodes) >= 8
    for node in nodes:
        attributes = {a.name: a.i for a in node.attribute}
        weight, scales = sizes[node.input[0]], sizes[node.input[1]]
        assert (len(node.input), types[node.input[1]]) == (2, TensorProto.FLOAT16)
        if types[node.input[0]] == TensorProto.INT4:
            assert scales == (weight[0] // attributes["block_size"], weight[1])
            assert attributes["axis"] == 0
        else:
            assert (scales, attributes) == ((weight[1],), {"axis": 1})


def builds(networks: Sequence[Made]) -> list[agreement.Build]:
    def built(one: Made) -> agreement.Build:
        both = [plans.request(one[name], rewritten(one[name].path)) for name in ("gpt", "vocoder")]
        return plans.opened(both, "onnxruntime")

    return [built(one) for one in networks]


def figures(checkpoint: Checkpoint, reference: agreement.Build, built: agreement.Build) -> dict[str, float]:
    prompts = reading.golden(checkpoint)[:2]
    return agreement.compare(reference, built, prompts, plans.code_head(checkpoint), PROMPT_PIECE)


def test_float16_is_near_float32(checkpoint: Checkpoint, made: dict[str, Made]) -> None:
    reference, half = builds([made["fp32"], made["fp16"]])
    found = figures(checkpoint, reference, half)
    judge("fp16", found, TENSORRT["fp16"])
    assert found["min_hidden_snr_db"] < 90  # and not the same network
    same = figures(checkpoint, reference, reference)
    assert same["min_token_agreement"] == 1.0
    assert same["max_kl"] == same["max_logit_error"] == 0.0


def test_the_rounding_is_that_of_float16(tmp_path: Path) -> None:
    """So that the test above measures what it says."""
    graph = Graph("round", 21)
    x = graph.input("x", "float32", ("N",), (1000,))
    graph.output(graph.node("Cast", [graph.node("Cast", [x], to=10)], to=1), "y", "float32", ("N",), (1000,))
    graph.save(tmp_path / "round.onnx")
    values = np.random.default_rng(0).standard_normal(1000).astype(np.float32) * np.float32(30)
    (found,) = ort.InferenceSession(str(rewritten(tmp_path / "round.onnx"))).run(None, {"x": values})
    np.testing.assert_array_equal(found, values.astype(np.float16).astype(np.float32))


def test_a_spoilt_network_is_refused(checkpoint: Checkpoint, made: dict[str, Made]) -> None:
    (reference,) = builds([made["fp32"]])

    class Spoilt:
        """What it makes is multiplied."""

        def __init__(self, engine: Any, output: str, factor: float) -> None:
            self._engine, self._output, self._factor = engine, output, factor

        def __getattr__(self, name: str) -> Any:
            return getattr(self._engine, name)

        def run(self) -> None:
            self._engine.run()
            self._engine.row(self._output, 0)[...] *= np.float32(self._factor)

    def refused(built: agreement.Build, told: str) -> None:
        with pytest.raises(BundleInaccurate, match=told):
            judge("it", figures(checkpoint, reference, built), TENSORRT["fp16"])

    large = agreement.Build(Spoilt(reference.gpt, "hidden", 1.05), reference.vocoder)
    refused(large, "min_hidden_snr_db")
    mute = agreement.Build(reference.gpt, Spoilt(reference.vocoder, "samples", np.nan))
    refused(mute, "min_waveform_snr_db: -inf")


@pytest.mark.parametrize(
    ("precision", "kv", "extras", "told"),
    [
        ("fp8", "", (), "no precision 'fp8' for tensorrt"),
        ("fp16", "int8", (), "kv int8"),
        ("fp16", "", ("encoder",), "no engine for: encoder"),
    ],
)
def test_what_tensorrt_does_not_do(precision: str, kv: str, extras: tuple[str, ...], told: str) -> None:
    with pytest.raises(BadValue, match=told):
        check(precision, (), 256, 2, kv, extras, False, "tensorrt")


def test_defaults_of_the_backends() -> None:
    half = check("", (), 256, 2, "", (), False, "tensorrt")
    assert (half.precision, half.kv, half.vocoder()[0]) == ("fp16", "float16", "fp16")
    plain = check("", (), 256, 2, "", (), False)
    assert (plain.precision, plain.vocoder()[0]) == ("int4", "int8")
    with pytest.raises(BadValue, match="no precision 'fp16' for onnxruntime"):
        check("fp16", (), 256, 2, "", (), False)
