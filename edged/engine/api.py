"""What an engine is to the rest of edged: named tensors in preallocated memory, and `run`.

Types only. A voice asks `engine.select.load` for an engine with maximum shapes, writes inputs into
views of its buffers, runs it, and reads outputs from views. Used from the engine thread, except for
the small engines of text frontends, which belong to the text thread.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Shape = tuple[int, ...]


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
        return int(np.prod(self.shape, dtype=np.int64)) * np.dtype(self.dtype).itemsize


class Engine(Protocol):
    """A loaded network whose inputs and outputs live in memory allocated once.

    `view` returns an array over the tensor's own buffer; its shape may be any shape that fits the
    maximum. `bind` fixes the shape a tensor has in the next run. Outputs stay valid until the next
    `run` of the same engine.
    """

    name: str
    inputs: dict[str, TensorSpec]
    outputs: dict[str, TensorSpec]

    def bind(self, name: str, shape: Shape, row: int = 0) -> NDArray[Any]:
        """Sets the shape of a tensor for the next run and returns its view.

        row: where along the first dimension of the maximum shape the tensor begins, so that a batch can
        run on some of the rows in place; the other dimensions must then be the maximum ones.
        Raises `ShapeExceeded` when the shape does not fit the maximum.
        """

    def run(self) -> None:
        """Runs the network on the bound shapes. Raises `EngineError`."""

    def close(self) -> None:
        """Frees the network; its buffers go with the arena."""
