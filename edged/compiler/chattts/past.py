"""What a network that looks to both sides keeps of one call for the next: the last inputs of convolutions.

Build time only. With it a call goes on where the one before stopped, and the frames before need not be
computed again. All that is kept is one row of numbers, in and out, which may share their memory: all of the
input is read before the output is written. Zeros are what a convolution sees before the first frame, so a
row of zeros begins an utterance. Neighbours: `layers.py` asks for frames, `vocoder.py` makes one.
"""

from __future__ import annotations

import numpy as np

from edged.compiler.graph import Graph
from edged.engine.api import TensorSpec

INPUT, OUTPUT = "past_frames", "present_frames"


class Past:
    """keep: a value [1], frames of the call that the next one does not get again; rows: of the memory."""

    def __init__(self, graph: Graph, keep: str, rows: int, *, fixed: bool = False) -> None:
        """fixed: what is kept is gathered, so that no shape depends on a value, as TensorRT wants it."""
        self._graph = graph
        self._keep = keep
        self._fixed = fixed
        self._rows = rows
        self._size = 0
        self._kept: list[str] = []

    def before(self, x: str, frames: int, channels: int) -> str:
        """x [1, 1, time, channels] with the frames that came before it."""
        g = self._graph
        size = frames * channels
        bounds = [g.constant([self._size]), g.constant([self._size + size]), g.constant([1])]
        old = g.node("Reshape", [g.node("Slice", [INPUT, *bounds]), g.constant([1, 1, frames, channels])])
        both = str(g.node("Concat", [old, x], axis=2))
        if self._fixed:
            places = g.node("Add", [self._keep, g.constant(np.arange(frames))])
            new = g.node("Gather", [both, places], axis=2)
        else:
            end = g.node("Add", [self._keep, g.constant([frames])])
            new = g.node("Slice", [both, self._keep, end, g.constant([2])])
        self._kept.append(g.node("Reshape", [new, g.constant([1, size])]))
        self._size += size
        return both

    def finish(self) -> None:
        """Declares the tensors."""
        g = self._graph
        g.input(INPUT, "float32", ["row", self._size], (self._rows, self._size))
        # By its shape alone a checker would see one row only and refuse a memory of several.
        present = g.node("Reshape", [g.node("Concat", self._kept, axis=1), g.node("Shape", [INPUT])])
        g.output(present, OUTPUT, "float32", ["row", self._size], (self._rows, self._size))


def in_place(spec: TensorSpec) -> TensorSpec:
    """Outputs of what is kept are written over its inputs."""
    if not spec.name.startswith("present_"):
        return spec
    return TensorSpec(spec.name, spec.dtype, spec.shape, alias=spec.name.replace("present_", "past_"))
