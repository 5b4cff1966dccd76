"""The file beside a model that holds its large weights, written as they come.

Build time only: a network of a gigabyte is written with one tensor in memory at a time. ONNX Runtime maps
the file instead of reading it, so a table that is only looked up stays in the page cache: measured with a
110 MB network, 57 MB less memory of its own and 40 % less time to load than one file with everything in it.
A file in use must therefore be replaced, never written again: the reader would lose its pages (SIGBUS).
Neighbour: `graph.py` puts the references into the model.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any

from numpy.typing import NDArray
from onnx import TensorProto

_PAGE = 4096  # bytes: a mapped tensor starts on a page, hence aligned for every vector register


class WeightFile:
    """Context manager. Offsets and bytes depend only on what is added, in its order."""

    SMALLEST = 4096  # bytes; what is smaller stays in the model

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("wb")

    def __enter__(self) -> WeightFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def add(self, tensor: TensorProto, value: NDArray[Any]) -> None:
        """Writes the bytes of a contiguous array and lets the tensor refer to them."""
        self._file.write(b"\0" * (-self._file.tell() % _PAGE))
        offset = self._file.tell()
        self._file.write(value.data.cast("B"))
        tensor.data_location = TensorProto.EXTERNAL
        for key, text in (("location", self.path.name), ("offset", offset), ("length", value.nbytes)):
            tensor.external_data.add(key=key, value=str(text))
