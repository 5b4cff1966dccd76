"""Layers on channels-last images of height 1, each in either dialect and at any precision.

Build time only. A value here is [1, 1, time, channels]: matrix products and norms need no transposes that
way, and ONNX Runtime's two-dimensional convolutions are twice as fast as its one-dimensional ones.
Neighbours: `convnext.py`, `vocoder.py` and `encoder.py` describe their networks with `Net`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from edged.compiler.chattts.past import Past
from edged.compiler.graph import ELEMENTS, MICROSOFT, Graph

DIALECTS = ("ort", "standard")
PRECISIONS = ("fp32", "fp16", "int8")

_HALF = 127  # of the 8-bit integers on either side of zero

Floats = NDArray[np.float32]


class Weights(Protocol):
    """What the graphs need of a checkpoint."""

    def tensor(self, part: str, name: str) -> Floats:
        """A tensor by the name it has in the part's file."""

    def has(self, part: str, name: str) -> bool:
        """Whether there is such a tensor."""


class Net:
    """A graph under construction, with the choices that hold for the whole of it.

    precision "int8" quantises the matrices of `linear` (convolutions are 2 % of the work), except for
    layers whose name matches a pattern of `keep`; "fp16" halves the file and computes in float32, or, with
    `half`, in float16 between explicit casts: matrices and convolutions only, and none of `keep`.
    """

    def __init__(
        self,
        graph: Graph,
        weights: Weights,
        *,
        dialect: str = "ort",
        precision: str = "fp32",
        keep: Sequence[str] = (),
        half: bool = False,
    ) -> None:
        if dialect not in DIALECTS:
            raise ValueError(f"dialect {dialect!r} is none of {DIALECTS}")
        if precision not in PRECISIONS:
            raise ValueError(f"precision {precision!r} is none of {PRECISIONS}")
        if half and (dialect != "standard" or precision != "fp16"):
            raise ValueError("products in float16 are of the standard dialect at precision fp16")
        self.graph = graph
        self.weights = weights
        self.fused = dialect == "ort"
        self.precision = precision
        self.keep = tuple(keep)
        self.half = half
        self.past: Past | None = None  # where there is one, convolutions go on from it

    def scalar(self, value: float) -> str:
        return self.graph.constant(value, "float32")

    def stored(self, name: str, value: NDArray[np.floating]) -> str:
        """An initializer as float32; at fp16 and int8 it lies in the file as float16."""
        if self.precision == "fp32" or value.size < 4096 or self._kept(name):
            return self.graph.weight(name, value.astype(np.float32))
        half = self.graph.weight(name, value.astype(np.float16))
        return self.cast(half, "float32", "float16")  # folded when the graph is loaded

    def cast(self, x: str, to: str, source: str = "float32") -> str:
        """x as another element type; nothing is written where it has it already."""
        return x if to == source else str(self.graph.node("Cast", [x], to=ELEMENTS[to]))

    def linear(
        self,
        x: str,
        name: str,
        matrix: NDArray[np.floating],
        bias: Floats | None = None,
        *,
        exact: bool = False,
    ) -> str:
        """x @ matrix + bias, with matrix [in, out]. exact: neither quantised nor multiplied in float16."""
        g = self.graph
        if self.precision == "int8" and not exact and not self._kept(name):
            y = self._product_int8(x, name, matrix)
        elif self.half and not exact and not self._kept(name):
            half = self.graph.weight(f"{name}.weight", matrix.astype(np.float16))
            y = g.node("MatMul", [self.cast(x, "float16"), half])
            y = self.cast(y, "float32", "float16")
        else:
            y = str(g.node("MatMul", [x, self.stored(f"{name}.weight", matrix)]))
        if bias is None:
            return y
        # In full rank, because ONNX Runtime would fuse a flat one into BiasGelu, which takes twice the
        # time of an addition and Gelu.
        added = g.weight(f"{name}.bias", bias.astype(np.float32).reshape(1, 1, 1, -1))
        return str(g.node("Add", [y, added]))

    def _product_int8(self, x: str, name: str, matrix: NDArray[np.floating]) -> str:
        """Eight-bit weights, one scale an output channel.

        Fused: inputs of 16 bits as two of 8, the rounded ones and what rounding left over; one scale a
        frame, so that a frame does not depend on which others are in the call. Inputs of 8 bits take two
        thirds of the time, but what they lose depends on the last digits of every input: a window with a
        wide margin was then within 31 dB of the same samples of a whole utterance, and is within 74 dB so.
        """
        g = self.graph
        scale = (np.maximum(np.abs(matrix).max(axis=0), 1e-12) / _HALF).astype(np.float32)
        values = np.clip(np.rint(matrix / scale), -_HALF, _HALF).astype(np.int8)
        quantised, scales = g.weight(f"{name}.weight", values), g.weight(f"{name}.scale", scale)
        none = g.constant(np.zeros(len(scale)), "int8")
        if not self.fused:
            wide = g.node("DequantizeLinear", [quantised, scales, none], axis=1)
            return str(g.node("MatMul", [x, wide]))
        most = g.node("ReduceMax", [g.node("Abs", [x]), g.constant([-1])], keepdims=1)
        step = g.node("Mul", [g.node("Max", [most, self.scalar(1e-6)]), self.scalar(1 / _HALF)])
        ratio = g.node("Div", [x, step])  # -127 to 127
        rounded = g.node("Round", [ratio])
        zero = g.constant(128, "uint8")
        parts = []
        # What is left over is at most half a step.
        for part, unit in ((rounded, 1.0), (g.node("Sub", [ratio, rounded]), 0.5 / _HALF)):
            narrow = g.node("QuantizeLinear", [part, self.scalar(unit), zero])
            inputs = [narrow, quantised, self.scalar(unit), scales, zero, none]
            parts.append(g.node("MatMulIntegerToFloat", inputs, domain=MICROSOFT))
        return str(g.node("Mul", [g.node("Add", parts), step]))

    def _kept(self, name: str) -> bool:
        return any(fnmatchcase(name, pattern) for pattern in self.keep)

    def gelu(self, x: str) -> str:
        """The exact one, by the error function."""
        g = self.graph
        if self.fused:
            return str(g.node("Gelu", [x], domain=MICROSOFT))
        bell = g.node("Erf", [g.node("Mul", [x, self.scalar(math.sqrt(0.5))])])
        half = g.node("Mul", [x, self.scalar(0.5)])
        return str(g.node("Mul", [half, g.node("Add", [bell, self.scalar(1.0)])]))

    def norm(self, x: str, name: str, scale: Floats, bias: Floats) -> str:
        g = self.graph
        params = [g.weight(f"{name}.weight", scale), g.weight(f"{name}.bias", bias)]
        return str(g.node("LayerNormalization", [x, *params], axis=-1, epsilon=1e-6))

    def conv(
        self,
        x: str,
        name: str,
        kernel: NDArray[np.floating],
        bias: Floats | None = None,
        *,
        dilation: int = 1,
        stride: int = 1,
        groups: int = 1,
        pad: int | None = None,
    ) -> str:
        """A convolution over time with zero padding. kernel: [out, in / groups, width]."""
        g = self.graph
        width = kernel.shape[2]
        margin = before = dilation * (width // 2) if pad is None else pad
        if self.past is not None and margin:
            x, before = self.past.before(x, margin, kernel.shape[1] * groups), 0
        element = "float16" if self.half and not self._kept(name) else "float32"
        inputs = [g.node("Transpose", [self.cast(x, element)], perm=[0, 3, 1, 2])]
        kernel = kernel[:, :, None, :]
        if element == "float16":
            inputs.append(g.weight(f"{name}.weight", kernel.astype(element)))
        else:
            inputs.append(self.stored(f"{name}.weight", kernel))
        if bias is not None:
            inputs.append(g.weight(f"{name}.bias", bias.astype(element)))
        y = g.node(
            "Conv",
            inputs,
            kernel_shape=[1, width],
            dilations=[1, dilation],
            strides=[1, stride],
            pads=[0, before, 0, margin],
            group=groups,
        )
        return self.cast(g.node("Transpose", [y], perm=[0, 2, 3, 1]), "float32", element)
