"""The dialect of the ONNX standard, for TensorRT: operators up to opset 21 that version 10.3 parses.

Build time only. Every value has the element type that the graph says, as a strongly typed TensorRT network
wants it. With `Shape.half` matrix products and the cache are float16; norms, softmax, rotary positions and
the sum that runs through all layers stay float32, between explicit casts, because an outlier of a trained
network's hidden state does not fit float16. Neighbour: `dialect.py` says what each method means.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto

from edged.compiler.chattts.dialect import Dialect, rotary
from edged.compiler.chattts.quantize import Blocks, Table

_MASKED = -1.0e9  # added to the score of a position a token must not see


class Standard(Dialect):
    """Operators of the ONNX standard only."""

    name = "standard"
    adaptive_topk = False
    # An engine that decides on the device what to run next cannot be captured as a CUDA graph. Reading the
    # text head in every step is 8 % more bytes.
    branches = False

    def quantised(self, x: str, name: str, blocks: Blocks) -> str:
        rows, columns = blocks.codes.shape
        scales = np.ascontiguousarray(blocks.scales.T)  # [K / block, N]
        if blocks.bits == 4:
            codes = self.graph.packed(name, (columns, rows), TensorProto.INT4, blocks.packed_columns())
            attributes = {"axis": 0, "block_size": blocks.block}
        elif blocks.block == columns:  # one scale a row: what TensorRT knows for 8 bits
            codes, scales = self.graph.weight(name, blocks.codes.T), scales[0]
            attributes = {"axis": 1}
        else:
            codes = self.graph.weight(name, blocks.codes.T)
            attributes = {"axis": 0, "block_size": blocks.block}
        scale = self.graph.weight(f"{name}.scales", scales.astype(self.element))
        wide = self.node("DequantizeLinear", codes, scale, **attributes)
        return self.cast(self.node("MatMul", self.cast(x, self.element), wide), "float32", self.element)

    @property
    def element(self) -> str:
        """Of matrix products."""
        return "float16" if self.shape.half else "float32"

    def lookup(self, name: str, table: Table, ids: str) -> str:
        if table.scales is not None:  # TensorRT takes 8-bit constants before DequantizeLinear only
            table = Table((table.values * table.scales).astype(np.float16))
        return super().lookup(name, table, ids)

    def norm(self, x: str, gain: str) -> str:
        mean = self.node("ReduceMean", self.node("Mul", x, x), self.graph.constant([-1]), keepdims=1)
        mean = self.node("Add", mean, self.graph.constant(self.shape.epsilon, "float32"))
        return self.node("Mul", self.node("Div", x, self.node("Sqrt", mean)), gain)

    def add_norm(self, x: str, y: str, gain: str, *, last: bool = False) -> tuple[str, str]:
        total = self.node("Add", x, y)
        return self.norm(total, gain), total

    def begin(self, lengths: str, last: str, ids: str) -> None:
        graph, heads = self.graph, self.shape.heads
        cosine, sine = rotary(self.shape)
        first = self.node("Sub", self.node("Cast", lengths, to=TensorProto.INT64), last)
        count = self.node("Squeeze", self.node("Shape", ids, start=1, end=2))
        steps = self.node("Range", graph.constant(0), count, graph.constant(1))
        position = self.node("Add", self.node("Unsqueeze", first, graph.constant([1])), steps)  # [B, S]

        def table(name: str, values: NDArray[np.float32]) -> str:  # [B, S, 1, width]
            weight = graph.weight(name, values)
            return self.node("Unsqueeze", self.node("Gather", weight, position), graph.constant([2]))

        # cos * (a, b) + sin * (-b, a): the sign is in the table
        self._cosine = table("cosine", np.concatenate([cosine, cosine], 1))
        self._sine = table("sine", np.concatenate([-sine, sine], 1))

        # Where the cache is written: (row, head, position) for each of [B, heads, S]
        row = self.node("Range", graph.constant(0), self._rows(ids), graph.constant(1))
        row = self.node("Unsqueeze", row, graph.constant([1, 2, 3]))
        head = graph.constant(np.arange(heads)[None, :, None, None])
        at = self.node("Unsqueeze", position, graph.constant([1, 3]))
        none = self.node("Mul", self.node("Add", self.node("Add", row, head), at), graph.constant(0))
        self._index = str(graph.node("Concat", [self.node("Add", p, none) for p in (row, head, at)], axis=3))
        self._at = at

    def _rows(self, ids: str) -> str:
        return self.node("Squeeze", self.node("Shape", ids, start=0, end=1))

    def mask(self, keys: str) -> str:
        """[B, 1, S, P], 0 where a token may look: at its own position and before. Once for all layers."""
        if not hasattr(self, "_mask"):
            graph = self.graph
            count = self.node("Squeeze", self.node("Shape", keys, start=2, end=3))
            slots = self.node("Range", graph.constant(0), count, graph.constant(1))
            hidden = self.node("Greater", slots, self._at)  # [P] > [B, 1, S, 1]
            zero, masked = graph.constant(0.0, "float32"), graph.constant(_MASKED, "float32")
            self._mask = self.node("Where", hidden, masked, zero)
        return self._mask

    def place(self, qkv: str, past: tuple[str, str], present: tuple[str, str]) -> tuple[str, str, str]:
        """Turned queries [B, heads, S, width] as float32, and all keys and values with the new ones in
        `present`, ready for a product."""
        graph, heads, width = self.graph, self.shape.heads, self.shape.width
        shaped = self.node("Reshape", qkv, graph.constant([0, 0, 3 * heads, width]))
        turned, values = graph.node("Split", [shaped, graph.constant([2 * heads, heads])], 2, axis=2)
        first, second = graph.node("Split", [turned], 2, axis=3, num_outputs=2)
        swapped = self.node("Concat", second, first, axis=3)
        turned = self.node(
            "Add", self.node("Mul", turned, self._cosine), self.node("Mul", swapped, self._sine)
        )
        query, key = graph.node("Split", [turned], 2, axis=2, num_outputs=2)
        query, key, values = (
            self.node("Transpose", part, perm=[0, 2, 1, 3]) for part in (query, key, values)
        )
        return query, self._write(past[0], key, present[0]), self._write(past[1], values, present[1])

    def attention(self, qkv: str, past: tuple[str, str], present: tuple[str, str]) -> str:
        graph, heads, width = self.graph, self.shape.heads, self.shape.width
        query, keys, values = self.place(qkv, past, present)
        query = self.cast(self.node("Mul", query, graph.constant(width**-0.5, "float32")), self.element)
        scores = self.node("MatMul", query, self.node("Transpose", keys, perm=[0, 1, 3, 2]))
        scores = self.node("Add", self.cast(scores, "float32", self.element), self.mask(past[0]))
        weights = self.cast(self.node("Softmax", scores, axis=3), self.element)
        seen = self.node("Transpose", self.node("MatMul", weights, values), perm=[0, 2, 1, 3])
        seen = self.node("Reshape", seen, graph.constant([0, 0, heads * width]))
        return self.cast(seen, "float32", self.element)

    def _write(self, past: str, new: str, present: str) -> str:
        """Puts the new positions into the cache; returns all of it."""
        self.graph.node("ScatterND", [past, self._index, self.cast(new, self.shape.cache)], [present])
        return self.read(present)

    def read(self, present: str) -> str:
        """A cache, ready for a product."""
        return self.cast(present, self.element, self.shape.cache)
