"""The dialect of ONNX Runtime: its contributed operators, fastest on a CPU.

Build time only. Neighbour: `dialect.py` says what each method means.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto

from edged.compiler.chattts.cache import scale_name
from edged.compiler.chattts.dialect import Dialect, rotary
from edged.compiler.chattts.quantize import Blocks
from edged.compiler.graph import MICROSOFT


class Fused(Dialect):
    """ONNX Runtime's contributed operators."""

    name = "ort"
    adaptive_topk = True
    branches = True

    def quantised(self, x: str, name: str, blocks: Blocks) -> str:
        rows, columns = blocks.codes.shape
        return self.node(
            "MatMulNBits",
            x,
            self.graph.weight(name, blocks.packed()),
            self.graph.weight(f"{name}.scales", blocks.scales),
            domain=MICROSOFT,
            N=rows,
            K=columns,
            bits=blocks.bits,
            block_size=blocks.block,
            accuracy_level=4,  # activations in int8 too: twice as fast as 1 on AVX-512 VNNI
        )

    def norm(self, x: str, gain: str) -> str:
        return self.node("SimplifiedLayerNormalization", x, gain, axis=-1, epsilon=self.shape.epsilon)

    def add_norm(self, x: str, y: str, gain: str, *, last: bool = False) -> tuple[str, str]:
        normed, total = self.graph.fresh("normed"), "" if last else self.graph.fresh("sum")
        self.graph.node(
            "SkipSimplifiedLayerNormalization",
            [x, y, gain],
            [normed, "", "", total] if total else [normed],
            domain=MICROSOFT,
            epsilon=self.shape.epsilon,
        )
        return normed, total

    def begin(self, lengths: str, last: str, ids: str) -> None:
        cosine, sine = rotary(self.shape)
        self._cosine, self._sine = self.graph.weight("cosine", cosine), self.graph.weight("sine", sine)
        self._lengths = lengths
        # A first prompt is told from a step by S == total; right padding must not make S the larger.
        axis = self.graph.constant([0])
        longest = self.node("ReduceMax", lengths, axis, keepdims=1)
        longest = self.node("Add", longest, self.graph.constant([1], "int32"))
        given = self.node("Cast", self.node("Shape", ids, start=1, end=2), to=TensorProto.INT32)
        self._total = self.node("Max", longest, given)

    def attention(self, qkv: str, past: tuple[str, str], present: tuple[str, str]) -> str:
        narrow = self.shape.cache == "float16"
        cosine, sine = self._cosine, self._sine
        scales, kinds = self._scales(past) if self.shape.cache == "int8" else ((), {})
        if narrow:
            qkv = self.node("Cast", qkv, to=TensorProto.FLOAT16)
            cosine, sine = (self._narrow(name) for name in (cosine, sine))
        seen = self.graph.fresh("attention")
        self.graph.node(
            "GroupQueryAttention",
            [qkv, "", "", *past, self._lengths, self._total, cosine, sine, *scales],
            [seen, *present],
            domain=MICROSOFT,
            num_heads=self.shape.heads,
            kv_num_heads=self.shape.heads,
            do_rotary=1,
            scale=float(self.shape.width**-0.5),
            **kinds,
        )
        return self.node("Cast", seen, to=TensorProto.FLOAT) if narrow else seen

    def _scales(self, past: tuple[str, str]) -> tuple[tuple[str, ...], dict[str, Any]]:
        """Inputs and attributes for a cache of 8 bits; the scales are 1 until `cache.fit` has measured."""
        ones = np.ones((1, self.shape.heads, 1, self.shape.width), np.float32)
        scales = [self.graph.weight(scale_name(name), ones) for name in past]
        kinds = {f"{kind}_quant_type": "PER_CHANNEL" for kind in "kv"}
        return ("", "", "", *scales), {**kinds, "kv_cache_bit_width": 8}

    def _narrow(self, table: str) -> str:
        cached: dict[str, str] = self.__dict__.setdefault("_tables", {})
        if table not in cached:
            cached[table] = self.node("Cast", table, to=TensorProto.FLOAT16)
        return cached[table]
