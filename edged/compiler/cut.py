"""Cuts a sub-network out of an ONNX model. CLI process only; imports `onnx` when called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from edged.errors import BundleError


def cut(model: Any, inputs: Mapping[str, str], outputs: Mapping[str, str]) -> bytes:
    """The network between the tensors `inputs` and `outputs`, renamed to the mappings' values.

    Dimensions stay open: the engine layer knows the shapes.
    """
    from onnx import helper

    graph = model.graph
    producer = {name: node for node in graph.node for name in node.output}
    constants = {tensor.name: tensor for tensor in graph.initializer}
    known = set(producer) | {value.name for value in graph.input}
    for name in (*inputs, *outputs):
        if name not in known:
            raise BundleError(
                f"the network has no tensor {name!r}",
                "this version of the voice's package is not supported: pip install 'edged[voice-en]'",
            )

    wanted: dict[int, Any] = {}  # nodes by identity
    used: set[str] = set()
    waiting = list(outputs)
    while waiting:
        name = waiting.pop()
        if name in inputs or name in used or not name:
            continue
        used.add(name)
        node = producer.get(name)
        if node is None:
            if name not in constants:
                raise BundleError(f"the cut leaves tensor {name!r} without a source")
            continue
        if id(node) not in wanted:
            wanted[id(node)] = node
            waiting.extend(node.input)

    renamed = {**inputs, **outputs}
    nodes = []
    for node in graph.node:  # keeps the topological order
        if id(node) not in wanted:
            continue
        copy = type(node)()
        copy.CopyFrom(node)
        for names in (copy.input, copy.output):
            names[:] = [renamed.get(name, name) for name in names]
        nodes.append(copy)
    types = _types(model)
    result = helper.make_model(
        helper.make_graph(
            nodes,
            graph.name,
            [_value(ours, types[theirs]) for theirs, ours in inputs.items()],
            [_value(ours, types[theirs]) for theirs, ours in outputs.items()],
            [constants[name] for name in sorted(used & constants.keys())],
        ),
        opset_imports=list(model.opset_import),
    )
    result.ir_version = model.ir_version
    result.producer_name = "edged"
    return bytes(result.SerializeToString(deterministic=True))


def channels(model: Any, name: str) -> int:
    """The width of a feature tensor [batch, channels, symbols]."""
    shape = _types(model)[name].shape
    size = int(shape.dim[1].dim_value) if len(shape.dim) == 3 else 0
    if size < 1:
        raise BundleError(f"the width of tensor {name!r} is not known")
    return size


def _types(model: Any) -> dict[str, Any]:
    """Element type and shape of every tensor, as far as inference finds them."""
    from onnx import shape_inference

    inferred = shape_inference.infer_shapes(model).graph
    return {
        value.name: value.type.tensor_type
        for value in (*inferred.input, *inferred.output, *inferred.value_info)
    }


def _value(name: str, tensor_type: Any) -> Any:
    """A graph input or output: known sizes stay, others become names of their own."""
    from onnx import helper

    shape = [
        dim.dim_value if dim.dim_value else f"{name}_{axis}" for axis, dim in enumerate(tensor_type.shape.dim)
    ]
    return helper.make_tensor_value_info(name, tensor_type.elem_type, shape)
