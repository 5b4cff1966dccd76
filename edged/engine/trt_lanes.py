"""Lanes on a device: hidden states stay there from the decoder's step to the vocoder's window.

Engine thread. Neighbours: `trt.py` makes them; `trt_rig.py` orders their copies between the runs.
"""

from __future__ import annotations

import numpy as np

from edged.engine.api import Engine, TensorSpec
from edged.engine.trt_rig import Copies
from edged.engine.trt_tensors import DeviceTensors, Piece
from edged.errors import EngineError


class DeviceLanes:
    """Implements `Lanes` in device memory [lanes, steps, width]."""

    def __init__(self, engine: Engine, tensor: str, target: Piece, rings: Piece, copies: Copies) -> None:
        self._engine = engine
        self._tensor = tensor
        self._target = target
        self._spec = rings.spec
        self._address = rings.address
        _, self._size, self._width = rings.spec.shape
        self._step = self._width * np.dtype(rings.spec.dtype).itemsize  # bytes
        self._pitch = rings.pitch
        self._copies = copies
        if rings.spec.dtype != target.spec.dtype or self._width != target.spec.shape[2]:
            raise EngineError(f"lanes of {_told(rings.spec)} cannot fill {_told(target.spec)}")

    def put(self, lane: int, index: int, source: Engine, tensor: str, row: int) -> None:
        if not isinstance(source, DeviceTensors):
            raise EngineError(f"{tensor!r} of {source.name} is not on the device")
        piece = source.piece(tensor)
        if (piece.spec.dtype, piece.spec.shape[1:]) != (self._spec.dtype, (self._width,)):
            raise EngineError(f"{_told(piece.spec)} does not fit into lanes of {_told(self._spec)}")
        self._copies.begin().copy(self._at(lane, index % self._size), piece.row(row), self._step)

    def fill(self, lane: int, begin: int, count: int) -> None:
        self._engine.bind(self._tensor, (1, count, self._width))
        at, target = begin % self._size, self._target.address
        before = min(count, self._size - at)
        stream = self._copies.begin()
        stream.copy(target, self._at(lane, at), before * self._step)
        if count > before:
            stream.copy(target + before * self._step, self._at(lane, 0), (count - before) * self._step)

    def _at(self, lane: int, step: int) -> int:
        return self._address + lane * self._pitch + step * self._step


def _told(spec: TensorSpec) -> str:
    return f"{spec.name} {spec.dtype}{list(spec.shape)}"
