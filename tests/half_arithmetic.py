"""Float16 as a GPU computes with it, on a processor: rounded numbers, products added up in float32, rounded.

ONNX Runtime has no such products on a processor. It computes them in float32 and leaves out the casts around
them, so that only weights are rounded and a network seems nearer to float32 than it is. Here every cast and
every result of float16 becomes a rounding that is written in float32 operators.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import onnx
from onnx import TensorProto, helper

_HALF, _FULL = TensorProto.FLOAT16, TensorProto.FLOAT
_MOVES = {
    "Transpose",
    "Reshape",
    "Split",
    "Gather",
    "ScatterND",
    "Concat",
    "Identity",
    "Squeeze",
    "Unsqueeze",
}
_SPLIT = float((1 << 13) + 1)  # of 24 bits of a float32, 11 are left


def rewritten(path: Path) -> Path:
    """A network that rounds where the one at `path` has float16; beside it, with the same weights."""
    model = onnx.load_model(str(path), load_external_data=False)
    graph = onnx.shape_inference.infer_shapes(model, strict_mode=True).graph
    half = {v.name for v in (*graph.value_info, *graph.output) if v.type.tensor_type.elem_type == _HALF}
    half |= {tensor.name for tensor in graph.initializer if tensor.data_type == _HALF}
    half |= {value.name for value in graph.input if value.type.tensor_type.elem_type == _HALF}
    made = {name for node in graph.node for name in node.output}
    given = half - made
    results = {value.name for value in graph.output}
    nodes = [helper.make_node("Cast", [name], [_wide(name)], to=_FULL) for name in sorted(given)]
    for node in graph.node:
        rounds = any(name in half for name in node.output) and node.op_type not in _MOVES
        outputs = [_wide(name) if name in half else name for name in node.output]
        inputs = [_wide(name) if name in half else name for name in node.input]
        if node.op_type == "Cast":
            nodes += _rounded(inputs[0], outputs[0]) if rounds else [_copy(node, inputs, outputs)]
        elif rounds:
            nodes += [
                _copy(node, inputs, [f"{outputs[0]}.exact"]),
                *_rounded(f"{outputs[0]}.exact", outputs[0]),
            ]
        else:
            nodes.append(_copy(node, inputs, outputs))
        nodes += [
            helper.make_node("Cast", [_wide(name)], [name], to=_HALF)
            for name in node.output
            if name in results & half
        ]
    constant = helper.make_tensor("half.split", _FULL, [], [_SPLIT])
    rebuilt = helper.make_graph(nodes, graph.name, graph.input, graph.output, [*graph.initializer, constant])
    out = path.with_name(f"rounding-{path.name}")
    changed = helper.make_model(rebuilt, opset_imports=model.opset_import, ir_version=model.ir_version)
    out.write_bytes(changed.SerializeToString())
    return out


def _wide(name: str) -> str:
    return f"{name}.wide"


def _copy(node: onnx.NodeProto, inputs: list[str], outputs: list[str]) -> onnx.NodeProto:
    copied = onnx.NodeProto()
    copied.CopyFrom(node)
    del copied.input[:], copied.output[:]
    copied.input.extend(inputs)
    copied.output.extend(outputs)
    return copied


def _rounded(value: str, result: str) -> Iterator[onnx.NodeProto]:
    """To 11 bits, ties to even: c = x * split, c - (c - x)."""
    yield helper.make_node("Mul", [value, "half.split"], [f"{result}.c"])
    yield helper.make_node("Sub", [f"{result}.c", value], [f"{result}.d"])
    yield helper.make_node("Sub", [f"{result}.c", f"{result}.d"], [result])
