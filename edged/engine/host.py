"""Engines whose tensors lie in the arena, where the processor sees them: what they have in common.

Engine thread. Neighbours: `ort.py` and `decoder.py` build on it; `api.py` says what each method means.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from numpy.typing import NDArray

from edged.engine.api import Arrays, Engine, Lanes, Shape, TensorSpec
from edged.engine.buffers import Buffer


class HostEngine(ABC):
    """The part of `Engine` that needs no runtime."""

    name: str
    inputs: dict[str, TensorSpec]
    outputs: dict[str, TensorSpec]
    resident: frozenset[str] = frozenset()
    _buffers: dict[str, Buffer]

    def row(self, name: str, row: int) -> NDArray[Any]:
        found: NDArray[Any] = self._whole(name)[row]
        return found

    def clear(self, name: str, row: int) -> None:
        self._whole(name)[row] = 0

    def move(self, name: str, source: int, target: int, count: int) -> None:
        cache = self._whole(name)
        cache[target, :, :count] = cache[source, :, :count]

    def lanes(self, spec: TensorSpec, tensor: str, arena: Arrays, owner: str) -> Lanes:
        return HostLanes(self, tensor, arena.array(spec.name, spec.shape, spec.dtype, owner))

    def _whole(self, name: str) -> NDArray[Any]:
        buffer = self._buffers[name]
        return buffer.view(buffer.spec.shape)

    @abstractmethod
    def bind(self, name: str, shape: Shape, row: int = 0) -> NDArray[Any]: ...


class HostLanes:
    """Implements `Lanes` over an array [lanes, steps, width] of the arena."""

    def __init__(self, engine: HostEngine, tensor: str, rings: NDArray[Any]) -> None:
        self._engine = engine
        self._tensor = tensor
        self._rings = rings

    def put(self, lane: int, index: int, source: Engine, tensor: str, row: int) -> None:
        self._rings[lane, index % self._rings.shape[1]] = source.row(tensor, row)

    def fill(self, lane: int, begin: int, count: int) -> None:
        _, size, width = self._rings.shape
        ring, at = self._rings[lane], begin % size
        before = min(count, size - at)
        target = self._engine.bind(self._tensor, (1, count, width))[0]
        target[:before] = ring[at : at + before]
        target[before:] = ring[: count - before]
