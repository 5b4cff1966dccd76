"""A small ONNX graph builder: unique names, initializers, one call a node.

Build time only. The graph modules of the families describe networks with it; `build` gives the model.
`branch` gives the body of an If. Neighbour: `weightfile.py`, where large weights go when one is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from numpy.typing import ArrayLike, NDArray
from onnx import TensorProto, helper, numpy_helper

from edged.engine.api import TensorSpec

if TYPE_CHECKING:
    from edged.compiler.weightfile import WeightFile

MICROSOFT = "com.microsoft"
IR_VERSION = 10  # read by ONNX Runtime 1.18 and TensorRT 10.3

ELEMENTS = {
    "float32": TensorProto.FLOAT,
    "float16": TensorProto.FLOAT16,
    "int64": TensorProto.INT64,
    "int32": TensorProto.INT32,
    "uint8": TensorProto.UINT8,
    "int8": TensorProto.INT8,
    "bool": TensorProto.BOOL,
}


@dataclass(frozen=True)
class Interface:
    """The tensors of a finished network with their maximum shapes, for the manifest."""

    inputs: list[TensorSpec]
    outputs: list[TensorSpec]


class Graph:
    """Collects nodes; every method that makes a value returns its name.

    `inputs` and `outputs` keep the tensors' maximum shapes, which become the manifest's interface; in
    the model itself a dimension given by name is dynamic.
    """

    def __init__(
        self, name: str, opset: int = 18, *, weights: WeightFile | None = None, outer: Graph | None = None
    ) -> None:
        self.name = name
        self.opset = opset
        self.weights = weights
        self.outer = outer
        self.inputs: list[TensorSpec] = []
        self.outputs: list[TensorSpec] = []
        self._nodes: list[onnx.NodeProto] = []
        self._initializers: list[onnx.TensorProto] = []
        self._known: set[str] = outer._known if outer is not None else set()
        self._infos: dict[str, list[onnx.ValueInfoProto]] = {"in": [], "out": []}
        self._constants: dict[tuple[str, tuple[int, ...], bytes], str] = {}
        self._count = 0
        self._domains: set[str] = outer._domains if outer is not None else set()  # beside ONNX's own

    def branch(self, name: str) -> Graph:
        """The body of an If. It sees every value of this graph; its own weights stay with it, because
        ONNX Runtime rewrites quantised products only where it finds the weight beside them."""
        return Graph(name, self.opset, weights=self.weights, outer=self)

    def fresh(self, stem: str) -> str:
        if self.outer is not None:  # a name inside a branch must not shadow one outside
            return self.outer.fresh(f"{self.name}.{stem}")
        self._count += 1
        return f"{stem}.{self._count}"

    def input(self, name: str, dtype: str, dims: Sequence[str | int], most: Sequence[int]) -> str:
        """A graph input. dims: sizes, or names of dynamic sizes; most: the maximum shape."""
        self.inputs.append(TensorSpec(name, dtype, tuple(most)))
        self._infos["in"].append(helper.make_tensor_value_info(name, ELEMENTS[dtype], list(dims)))
        return name

    def output(
        self, value: str, name: str, dtype: str, dims: Sequence[str | int], most: Sequence[int]
    ) -> str:
        """Makes a value a graph output of that name."""
        if value != name:
            self._nodes.append(helper.make_node("Identity", [value], [name]))
        self.outputs.append(TensorSpec(name, dtype, tuple(most)))
        self._infos["out"].append(helper.make_tensor_value_info(name, ELEMENTS[dtype], list(dims)))
        return name

    def tapped(self, value: str) -> str:
        """Makes a value inside the network an output under its own name, for measurements."""
        self._infos["out"].append(helper.make_tensor_value_info(value, TensorProto.FLOAT, None))
        return value

    def weight(self, name: str, value: NDArray[Any]) -> str:
        """A named initializer."""
        return self.packed(name, value.shape, helper.np_dtype_to_tensor_dtype(value.dtype), value)

    def packed(self, name: str, dims: Sequence[int], element: int, value: NDArray[Any]) -> str:
        """A named initializer of an ONNX element type from its bytes: two 4-bit numbers in one, say."""
        if name in self._known:
            raise ValueError(f"initializer {name!r} exists")
        self._known.add(name)
        value = np.ascontiguousarray(value)
        if self.weights is not None and value.nbytes >= self.weights.SMALLEST:
            tensor = TensorProto(name=name, data_type=element, dims=dims)
            self.weights.add(tensor, value)
        else:
            tensor = helper.make_tensor(name, element, dims, value.tobytes(), raw=True)
        self._initializers.append(tensor)
        return name

    def constant(self, value: ArrayLike, dtype: str = "int64") -> str:
        """A small constant; equal ones are stored once."""
        if self.outer is not None:
            return self.outer.constant(value, dtype)
        array = np.asarray(value, dtype=dtype)
        key = (dtype, array.shape, array.tobytes())
        if key not in self._constants:
            name = self.fresh("const")
            self._initializers.append(numpy_helper.from_array(array, name))
            self._constants[key] = name
        return self._constants[key]

    def node(
        self,
        op: str,
        inputs: Sequence[str],
        outputs: int | Sequence[str] = 1,
        domain: str = "",
        **attributes: Any,
    ) -> Any:
        """Adds a node. One output: its name; several: a tuple of names. "" in a list skips one."""
        names = [self.fresh(op) for _ in range(outputs)] if isinstance(outputs, int) else list(outputs)
        if domain:
            self._domains.add(domain)
        self._nodes.append(helper.make_node(op, list(inputs), names, domain=domain, **attributes))
        return names[0] if len(names) == 1 else tuple(names)

    def subgraph(self, outputs: Sequence[str]) -> onnx.GraphProto:
        """This graph as a branch of If: no inputs of its own, values of the outer graph by name."""
        infos = [helper.make_empty_tensor_value_info(name) for name in outputs]
        return helper.make_graph(self._nodes, self.name, [], infos, self._initializers)

    @property
    def interface(self) -> Interface:
        return Interface(self.inputs, self.outputs)

    def build(self) -> onnx.ModelProto:
        graph = helper.make_graph(
            self._nodes, self.name, self._infos["in"], self._infos["out"], self._initializers
        )
        imports = [helper.make_opsetid("", self.opset)]
        imports += [helper.make_opsetid(domain, 1) for domain in sorted(self._domains)]
        return helper.make_model(graph, opset_imports=imports, ir_version=IR_VERSION, producer_name="edged")

    def save(self, path: Path) -> None:
        """Writes the model in one file, at most 2 GB; the same graph gives the same bytes."""
        path.write_bytes(self.build().SerializeToString(deterministic=True))
