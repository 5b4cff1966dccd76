"""The parts of a transformer that two dialects of ONNX write differently: `gpt.py` describes it once.

Build time only. `fused.py` uses ONNX Runtime's own operators and is what a CPU runs fast; `standard.py` uses
the ONNX standard up to opset 21, which TensorRT 10.3 parses. Both take the same weights and give the same
numbers. Neighbours: `gpt.py` calls, `quantize.py` gives quantised matrices, `graph.py` collects nodes.

The key/value cache is [B, heads, P, width] a layer. Its outputs have the shape of its inputs and are
meant to be bound to the same memory: an engine then touches only the new positions (ONNX Runtime), or
copies the buffer onto itself and writes the new positions (TensorRT's scatter). Nothing else reads an
input after its output is written, so sharing is always correct, and so is not sharing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edged.compiler.chattts.quantize import Blocks, Table
from edged.compiler.graph import ELEMENTS, Graph

OPSET = 21  # block-wise DequantizeLinear


@dataclass(frozen=True)
class Shape:
    """What attention needs to know of the network."""

    heads: int
    width: int  # of one head
    positions: int  # of the rotary tables
    theta: float
    epsilon: float  # of the norms
    cache: str = "float32"  # element type of the key/value cache
    half: bool = False  # matrix products in float16; only the standard dialect can


class Dialect(ABC):
    """Writes onto `graph`; `on` gives the same dialect writing onto a branch of it."""

    name: str
    adaptive_topk: bool  # may the number of candidates in sampling depend on the data?
    branches: bool  # is one head left out by If, or are both computed and one chosen by Where?

    def __init__(self, graph: Graph, shape: Shape) -> None:
        self.graph = graph
        self.shape = shape

    def on(self, graph: Graph) -> Dialect:
        return type(self)(graph, self.shape)

    def node(self, op: str, *inputs: str, **attributes: Any) -> str:
        return str(self.graph.node(op, inputs, **attributes))

    def linear(self, x: str, name: str, matrix: NDArray[np.floating] | Blocks) -> str:
        """x @ matrix.T for a matrix [N, K], dense or quantised; float32 in and out whatever the matrix is."""
        if isinstance(matrix, Blocks):
            return self.quantised(x, name, matrix)
        element = str(matrix.dtype)
        product = self.node("MatMul", self.cast(x, element), self.graph.weight(name, matrix.T))
        return self.cast(product, "float32", element)

    def cast(self, x: str, to: str, source: str = "float32") -> str:
        """x as another element type; nothing is written where it has it already."""
        return x if to == source else self.node("Cast", x, to=ELEMENTS[to])

    def lookup(self, name: str, table: Table, ids: str) -> str:
        """Rows of an embedding table as float32."""
        rows = self.node("Gather", self.graph.weight(name, table.values), ids)
        rows = self.cast(rows, "float32", str(table.values.dtype))
        if table.scales is not None:
            scales = self.graph.weight(f"{name}.scales", table.scales)
            rows = self.node("Mul", rows, self.node("Gather", scales, ids))
        return rows

    def gate(self, both: str) -> str:
        """silu(first half) * second half."""
        first, second = self.graph.node("Split", [both], 2, axis=-1, num_outputs=2)
        return self.node("Mul", self.node("Mul", first, self.node("Sigmoid", first)), second)

    @abstractmethod
    def quantised(self, x: str, name: str, blocks: Blocks) -> str: ...

    @abstractmethod
    def norm(self, x: str, gain: str) -> str:
        """Root-mean-square norm over the last axis."""

    @abstractmethod
    def add_norm(self, x: str, y: str, gain: str, *, last: bool = False) -> tuple[str, str]:
        """The norm of x + y, and x + y itself (not needed with `last`)."""

    @abstractmethod
    def begin(self, lengths: str, last: str, ids: str) -> None:
        """Prepares what all layers share: positions, masks, rotary tables."""

    @abstractmethod
    def attention(self, qkv: str, past: tuple[str, str], present: tuple[str, str]) -> str:
        """Causal attention of [B, S, 3 * hidden] over the cache; writes the cache outputs `present`."""


def rotary(shape: Shape) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Cosine and sine [positions, width / 2]. Angles are rounded to float32 like those of training."""
    steps = np.arange(0, shape.width, 2, dtype=np.float32) / np.float32(shape.width)
    inverse = (np.float64(1.0) / np.float64(shape.theta) ** steps).astype(np.float32)
    angles = np.arange(shape.positions, dtype=np.float32)[:, None] * inverse
    wide = angles.astype(np.float64)
    return np.cos(wide).astype(np.float32), np.sin(wide).astype(np.float32)
