"""Where the tensors of an engine lie on a device: packed where the host sees them, in pieces elsewhere.

TensorRT wants every address to be a multiple of 256 bytes. So what the host writes is packed into
page-locked memory, each bound part at a place of its own, and goes up in one copy; results come back
likewise. Tensors that only the device sees are bound row by row at their own address. Made by the loading
thread, used by the engine thread. Neighbours: `trt.py` binds and runs, `device_memory.py` gives the memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edged.engine.api import Shape, TensorSpec
from edged.engine.device_memory import DeviceMemory, aligned
from edged.errors import EngineError, ShapeExceeded


@dataclass(frozen=True, slots=True)
class Piece:
    """A tensor on the device. pitch: bytes from row to row; more than a row has where rows are used alone."""

    spec: TensorSpec
    address: int
    pitch: int
    row_bytes: int = field(init=False)  # computed once: every change of rows asks for it, tensor by tensor

    def __post_init__(self) -> None:
        object.__setattr__(self, "row_bytes", self.spec.nbytes // self.spec.shape[0])

    def at(self, shape: Shape, row: int) -> int:
        """The address of so much of it from a row on. Raises `ShapeExceeded`."""
        most = self.spec.shape
        count = shape[0] if len(shape) == len(most) else 0
        beside = count == 1 or self.pitch == self.row_bytes
        if 0 < count <= most[0] - row and row >= 0 and beside:
            if shape[1:] == most[1:]:
                return self.address + row * self.pitch
            # Less than a row begins where the row does; nothing may follow it.
            if count == 1 and all(0 < n <= m for n, m in zip(shape, most, strict=True)):
                return self.address + row * self.pitch
        raise ShapeExceeded(f"{self.spec.name}: shape {list(shape)} from row {row} does not fit {list(most)}")

    def row(self, row: int) -> int:
        if not 0 <= row < self.spec.shape[0]:
            raise ShapeExceeded(f"{self.spec.name}: no row {row}")
        return self.address + row * self.pitch


def pitch_of(spec: TensorSpec) -> int:
    return aligned(spec.nbytes // spec.shape[0])


def piece_bytes(spec: TensorSpec) -> int:
    return pitch_of(spec) * spec.shape[0]


def carve(memory: DeviceMemory, spec: TensorSpec) -> Piece:
    return Piece(spec, memory.carve(piece_bytes(spec)), pitch_of(spec))


class DeviceTensors:
    """What another engine of the same device may take from: the pieces of an engine, by name."""

    pieces: dict[str, Piece]

    def piece(self, name: str) -> Piece:
        """Raises `EngineError` for a tensor that the host sees."""
        found = self.pieces.get(name)
        if found is None:
            raise EngineError(f"tensor {name!r} does not stay on the device", "this is a fault in the voice")
        return found


class Packed:
    """The tensors of one direction in one mirror. The copy ends where the last bound part ends."""

    def __init__(self, specs: Sequence[TensorSpec]) -> None:
        self.specs = {spec.name: spec for spec in specs}
        self._offsets: dict[str, int] = {}
        self.nbytes = 0
        for spec in specs:
            self._offsets[spec.name] = self.nbytes
            self.nbytes += aligned(spec.nbytes)
        self._address = 0
        self._pinned: NDArray[np.uint8] = np.empty(0, np.uint8)

    def place(self, memory: DeviceMemory) -> None:
        if self.nbytes:
            self._address, self._pinned = memory.mirror(self.nbytes)

    def address(self, name: str) -> int:
        """On the device."""
        return self._address + self._offsets[name]

    def host_address(self, name: str) -> int:
        return int(self._pinned.ctypes.data) + self._offsets[name]

    def pinned(self, name: str, shape: Shape) -> NDArray[Any]:
        """The page-locked part of a tensor of this shape."""
        spec, offset = self.specs[name], self._offsets[name]
        nbytes = math.prod(shape) * np.dtype(spec.dtype).itemsize
        return self._pinned[offset : offset + nbytes].view(spec.dtype).reshape(shape)

    def span(self, shapes: dict[str, Shape]) -> tuple[int, NDArray[np.uint8]]:
        """What is copied when the tensors have these shapes: the address, and the page-locked bytes."""
        end = 0
        for name, shape in shapes.items():
            itemsize = np.dtype(self.specs[name].dtype).itemsize
            end = max(end, self._offsets[name] + math.prod(shape) * itemsize)
        return self._address, self._pinned[:end]
