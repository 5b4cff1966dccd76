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
from onnx import TensorProto

from edged.compiler.graph import MICROSOFT, Graph

DIALECTS = ("ort", "standard")
PRECISIONS = ("fp32", "fp16", "int8")

_BELOW = 20  # steps below zero for inputs with a lower bound
GELU_MIN = -0.17  # the minimum of GELU is -0.16997

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
    layers whose name matches a pattern of `keep`; "fp16" halves the file and computes in float32.
    """

    def __init__(
        self,
        graph: Graph,
        weights: Weights,
        *,
        dialect: str = "ort",
        precision: str = "fp32",
        keep: Sequence[str] = (),
    ) -> None:
        if dialect not in DIALECTS:
            raise ValueError(f"dialect {dialect!r} is none of {DIALECTS}")
        if precision not in PRECISIONS:
            raise ValueError(f"precision {precision!r} is none of {PRECISIONS}")
        self.graph = graph
        self.weights = weights
        self.fused = dialect == "ort"
        self.precision = precision
        self.keep = tuple(keep)

    def scalar(self, value: float) -> str:
        return self.graph.constant(value, "float32")

    def stored(self, name: str, value: NDArray[np.floating]) -> str:
        """An initializer as float32; at fp16 and int8 it lies in the file as float16."""
        if self.precision == "fp32" or value.size < 4096 or self._kept(name):
            return self.graph.weight(name, value.astype(np.float32))
        half = self.graph.weight(name, value.astype(np.float16))
        return str(self.graph.node("Cast", [half], to=TensorProto.FLOAT))  # folded when the graph is loaded

    def linear(
        self,
        x: str,
        name: str,
        matrix: NDArray[np.floating],
        bias: Floats | None = None,
        *,
        above: float | None = None,
        exact: bool = False,
    ) -> str:
        """x @ matrix + bias, with matrix [in, out].

        above: a lower bound of x, if there is one. exact: never quantised to integers.
        """
        g = self.graph
        if self.precision == "int8" and not exact and not self._kept(name):
            y = self._product_int8(x, name, matrix, above)
        else:
            y = str(g.node("MatMul", [x, self.stored(f"{name}.weight", matrix)]))
        if bias is None:
            return y
        # In full rank, because ONNX Runtime would fuse a flat one into BiasGelu, which takes twice the
        # time of an addition and Gelu.
        added = g.weight(f"{name}.bias", bias.astype(np.float32).reshape(1, 1, 1, -1))
        return str(g.node("Add", [y, added]))

    def _product_int8(self, x: str, name: str, matrix: NDArray[np.floating], above: float | None) -> str:
        """Eight-bit weights, one scale an output channel.

        Fused: eight-bit inputs as well, one scale a frame. So a frame does not depend on which others are
        in the call: a window with the whole receptive field around it gives the same bits as the whole.
        Measured against one scale for all of a call (DynamicQuantizeMatMul): 1.7 dB better, 12 % slower.
        """
        g = self.graph
        scale = (np.maximum(np.abs(matrix).max(axis=0), 1e-12) / 127).astype(np.float32)
        values = np.clip(np.rint(matrix / scale), -127, 127).astype(np.int8)
        quantised, scales = g.weight(f"{name}.weight", values), g.weight(f"{name}.scale", scale)
        none = g.constant(np.zeros(len(scale)), "int8")
        if not self.fused:
            wide = g.node("DequantizeLinear", [quantised, scales, none], axis=1)
            return str(g.node("MatMul", [x, wide]))
        if above is None:
            zero, most = 128, g.node("ReduceMax", [g.node("Abs", [x]), g.constant([-1])], keepdims=0)
            most = g.node("Max", [most, self.scalar(1e-6)])
        else:
            # Most of the 256 steps for the positive side. A frame's scale is large enough that `above`
            # is within the steps below zero.
            zero, most = _BELOW, g.node("ReduceMax", [x, g.constant([-1])], keepdims=0)
            most = g.node("Max", [most, self.scalar(-above * (255 - _BELOW) / _BELOW)])
        step = g.node("Mul", [most, self.scalar(1 / (255 - zero))])  # [1, 1, time]
        flat = g.node("Reshape", [step, g.constant([-1])])
        zeros = g.node("Expand", [g.constant(zero, "int32"), g.node("Shape", [flat])])
        zeros = g.node("Cast", [zeros], to=TensorProto.UINT8)
        narrow = g.node("QuantizeLinear", [x, flat, zeros], axis=2)
        one, offset = self.scalar(1.0), g.constant(zero, "uint8")
        inputs = [narrow, quantised, one, scales, offset, none]
        y = g.node("MatMulIntegerToFloat", inputs, domain=MICROSOFT)
        return str(g.node("Mul", [y, g.node("Unsqueeze", [step, g.constant([3])])]))

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
        margin = dilation * (width // 2) if pad is None else pad
        inputs = [g.node("Transpose", [x], perm=[0, 3, 1, 2])]
        inputs.append(self.stored(f"{name}.weight", kernel[:, :, None, :]))
        if bias is not None:
            inputs.append(g.weight(f"{name}.bias", bias.astype(np.float32)))
        y = g.node(
            "Conv",
            inputs,
            kernel_shape=[1, width],
            dilations=[1, dilation],
            strides=[1, stride],
            pads=[0, margin, 0, margin],
            group=groups,
        )
        return str(g.node("Transpose", [y], perm=[0, 2, 3, 1]))
