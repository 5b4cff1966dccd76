"""Reads weights back out of a built model as float32, whatever their format, one at a time.

CLI process only; for `verify.py`. A weight keeps its name in every precision, so two models of the same
network can be compared name by name.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from edged.errors import BundleError

Floats = NDArray[np.float32]
_SMALLEST = 4096  # values; gains and biases are never quantised


class StoredWeights:
    """The initializers of one model file."""

    def __init__(self, path: Path) -> None:
        self._folder = path.parent
        model = onnx.load_model(str(path), load_external_data=False)
        self._tensors: dict[str, onnx.TensorProto] = {}
        self._products: dict[str, onnx.NodeProto] = {}  # by the weight that is multiplied with
        for graph in _graphs(model.graph):
            self._tensors.update((tensor.name, tensor) for tensor in graph.initializer)
            for node in graph.node:
                if node.op_type == "MatMulNBits":
                    self._products[node.input[1]] = node

    def names(self) -> Iterator[str]:
        """Weights large enough to be quantised, without their scales; in the order of the file."""
        for name, tensor in self._tensors.items():
            if int(np.prod(tensor.dims)) >= _SMALLEST and not name.endswith((".scales", ".scale")):
                yield name

    def has(self, name: str) -> bool:
        return name in self._tensors

    def value(self, name: str) -> Floats:
        """The values as the network multiplies with them. Matrices are [inputs, outputs]."""
        stored = self._read(name)
        product = self._products.get(name)
        if product is not None:
            return self._blocks(name, stored, product)
        if f"{name}.scales" in self._tensors:
            return np.asarray(stored.astype(np.float32) * self._read(f"{name}.scales"), np.float32)
        scale = f"{name.removesuffix('.weight')}.scale"
        if stored.dtype == np.int8 and scale in self._tensors:
            return np.asarray(stored.astype(np.float32) * self._read(scale), np.float32)
        return np.asarray(stored, np.float32)

    def bits(self, name: str) -> int:
        product = self._products.get(name)
        return _attribute(product, "bits") if product is not None else self._read(name).dtype.itemsize * 8

    def _blocks(self, name: str, packed: NDArray[Any], product: onnx.NodeProto) -> Floats:
        """MatMulNBits: [N, blocks, bytes] of unsigned numbers with their zero in the middle."""
        rows, columns = _attribute(product, "N"), _attribute(product, "K")
        bits, block = _attribute(product, "bits"), _attribute(product, "block_size")
        codes = packed.reshape(rows, -1)
        if bits == 4:
            codes = np.stack([codes & 15, codes >> 4], axis=2).reshape(rows, -1)
        scales = self._read(f"{name}.scales").astype(np.float32).reshape(rows, -1)
        values = codes.astype(np.float32) - np.float32(1 << (bits - 1))
        values = values.reshape(rows, -1, block) * scales[..., None]
        return np.asarray(values.reshape(rows, -1)[:, :columns].T, np.float32)

    def _read(self, name: str) -> NDArray[Any]:
        tensor = self._tensors[name]
        if tensor.data_location != onnx.TensorProto.EXTERNAL:
            return np.asarray(numpy_helper.to_array(tensor))
        place = {entry.key: entry.value for entry in tensor.external_data}
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
        try:
            return np.memmap(
                self._folder / place["location"], dtype, "r", int(place["offset"]), tuple(tensor.dims)
            )
        except (OSError, KeyError, ValueError) as error:
            raise BundleError(f"weight {name!r} cannot be read: {error}") from error


def _attribute(node: onnx.NodeProto, name: str) -> int:
    return next(int(attribute.i) for attribute in node.attribute if attribute.name == name)


def _graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from _graphs(attribute.g)
