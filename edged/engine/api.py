"""What an engine is to the rest of edged: named tensors in preallocated memory, and `run`.

Types only. A voice asks `engine.select.load` for an engine with maximum shapes, writes inputs into
views of its buffers, runs it, and reads outputs from views. Used from the engine thread, except for
the small engines of text frontends, which belong to the text thread.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Shape = tuple[int, ...]
SETTLED = 3  # runs of the same shapes, after which a device has done all that it does only once for them


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """A tensor by name with its element type and its maximum shape.

    alias: for an output, the input whose memory it shares, so that the network updates it in place.
    """

    name: str
    dtype: str  # numpy name: "float32", "int64", ...
    shape: Shape
    alias: str = ""

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize


class Arrays(Protocol):
    """Where work arrays come from; `edged.engine.buffers.Arena` is one."""

    def array(self, name: str, shape: Shape, dtype: str = "float32", owner: str = "") -> NDArray[Any]:
        """A new array of zeros."""


class Engine(Protocol):
    """A loaded network whose inputs and outputs live in memory allocated once.

    `view` returns an array over the tensor's own buffer; its shape may be any shape that fits the
    maximum. `bind` fixes the shape a tensor has in the next run. Outputs stay valid until the next
    `run` of the same engine.

    resident: the tensors that only the device sees. `bind` fixes their shape and row as it does for
    others and returns an empty array; they change by runs, `clear`, `move` and `Lanes` only. On a CPU
    there are none.
    """

    name: str
    inputs: dict[str, TensorSpec]
    outputs: dict[str, TensorSpec]
    resident: frozenset[str]

    def bind(self, name: str, shape: Shape, row: int = 0) -> NDArray[Any]:
        """Sets the shape of a tensor for the next run and returns its view.

        row: where along the first dimension of the maximum shape the tensor begins, so that a batch can
        run on some of the rows in place; the other dimensions must then be the maximum ones.
        Raises `ShapeExceeded` when the shape does not fit the maximum.
        """

    def row(self, name: str, row: int) -> NDArray[Any]:
        """A row of a tensor that is not resident, whatever part of the tensor is bound."""

    def clear(self, name: str, row: int) -> None:
        """Zeros in a row of a tensor."""

    def move(self, name: str, source: int, target: int, count: int) -> None:
        """Copies `count` positions, from the first, of a row of a cache to another.

        The cache is [rows, heads, positions, width].
        """

    def lanes(self, spec: TensorSpec, tensor: str, arena: Arrays, owner: str) -> Lanes:
        """Rings that fill the input `tensor` [1, steps, width]. spec: their name, type and shape
        [lanes, steps of a ring, width], as the engine was opened with; owner: in the plan of the arena."""

    def run(self) -> None:
        """Runs the network on the bound shapes. Raises `EngineError`."""

    def close(self) -> None:
        """Frees the network; its buffers go with the arena."""


class Lanes(Protocol):
    """Rings of what one engine made, one a lane, until another engine takes a window of it.

    They lie where the engine's tensors do, so that what is made on a device need not leave it.
    """

    def put(self, lane: int, index: int, source: Engine, tensor: str, row: int) -> None:
        """Keeps a row [width] of another engine's tensor, as of its last run, as step `index` of a lane."""

    def fill(self, lane: int, begin: int, count: int) -> None:
        """Binds the input to `count` steps and copies those of a lane from `begin` on into it."""
