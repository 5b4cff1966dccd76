"""The arena: every input and output buffer of every engine, allocated once at its maximum shape.

No thread of its own: filled by the loading thread before READY, then only read. `sealed` afterwards,
so that a mistake shows up as an error and not as memory that grows while serving. Buffers are reserved when
they are asked for and become resident when they are used, at the latest by `seal`: a plan over the budget
is refused between the two, while it costs nothing. Neighbours: `ort.py` binds the addresses to a session,
voices write and read through the views, `plan.py` tells what there is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edged.engine.api import Shape, TensorSpec
from edged.engine.plan import PlanRow, buffer_row, qualified, weights_row
from edged.errors import EngineError, ShapeExceeded

ALIGNMENT = 64  # bytes: a cache line, and the width of the widest vector registers
PAGE = 4096  # bytes; the smallest page there is, so that a stride of it meets every page


class Buffer:
    """The memory of one tensor. Every view starts at its address, or at one of its rows."""

    __slots__ = ("_flat", "_items", "_memory", "_row", "address", "nbytes", "spec")

    def __init__(self, spec: TensorSpec) -> None:
        self.spec = spec
        self.nbytes = spec.nbytes
        raw = np.zeros(self.nbytes + ALIGNMENT, np.uint8)  # a large one is not resident yet
        skip = -raw.ctypes.data % ALIGNMENT
        memory = self._memory = raw[skip : skip + self.nbytes]
        self._flat: NDArray[Any] = memory.view(np.dtype(spec.dtype))
        self._items = int(self._flat.size)
        self._row = math.prod(spec.shape[1:])  # items in a row of the first dimension
        self.address = int(memory.ctypes.data)

    def touch(self) -> None:
        """Makes every page resident; what is in it stays."""
        for bytes_ in (self._memory[::PAGE], self._memory[-1:]):
            np.bitwise_or(bytes_, 0, out=bytes_)  # a write: reading maps the one page of zeros only

    def view(self, shape: Shape, row: int = 0) -> NDArray[Any]:
        """An array of this shape over the memory from that row on; nothing is copied or allocated."""
        maximum = self.spec.shape
        if row:
            return self._rows(shape, row)
        items = math.prod(shape)
        if len(shape) != len(maximum) or items > self._items or any(n < 1 for n in shape):
            raise ShapeExceeded(f"{self.spec.name}: shape {list(shape)} does not fit {list(maximum)}")
        if any(n > m for n, m in zip(shape, maximum, strict=True)):
            raise ShapeExceeded(f"{self.spec.name}: shape {list(shape)} does not fit {list(maximum)}")
        return self._flat[:items].reshape(shape)

    def _rows(self, shape: Shape, row: int) -> NDArray[Any]:
        maximum = self.spec.shape
        if not shape or shape[1:] != maximum[1:] or row < 0 or not 0 < shape[0] <= maximum[0] - row:
            raise ShapeExceeded(
                f"{self.spec.name}: shape {list(shape)} from row {row} does not fit {list(maximum)}"
            )
        return self._flat[row * self._row : (row + shape[0]) * self._row].reshape(shape)

    def address_of(self, row: int) -> int:
        return self.address + row * self._row * self._flat.itemsize


class Arena:
    """All buffers of a process by name, and what else its plan has.

    cpu_s: processor seconds that threads spent inside each engine, without the runtime's own threads. The
    engine adds to its own entry on the thread that runs it; anybody reads.
    """

    def __init__(self) -> None:
        self.cpu_s: dict[str, float] = {}
        self._buffers: dict[str, Buffer] = {}
        self._notes: dict[str, PlanRow] = {}
        self._sealed = False
        self._when_sealed: list[Callable[[], None]] = []

    def allocate(self, spec: TensorSpec, owner: str = "") -> Buffer:
        """A new buffer of the maximum shape. `owner` (voice or engine) prefixes its name in the plan."""
        name = qualified(spec.name, owner)
        if self._sealed:
            raise EngineError(f"buffer {name!r} was asked for after the start: the arena is sealed")
        if name in self._buffers:
            raise EngineError(f"buffer {name!r} exists already")
        if not spec.shape or any(n < 1 for n in spec.shape):
            raise EngineError(f"buffer {name!r} has the empty shape {list(spec.shape)}")
        try:
            buffer = Buffer(spec)
        except MemoryError as error:
            raise EngineError(
                f"no memory for buffer {name!r} ({spec.nbytes / 1e6:.1f} MB)",
                "free memory on this machine, or use a voice with smaller limits",
            ) from error
        self._buffers[name] = buffer
        return buffer

    def tensors(self, specs: Iterable[TensorSpec], owner: str) -> dict[str, Buffer]:
        """Buffers of an engine's tensors by name; one with an alias shares the memory of that tensor."""
        found: dict[str, Buffer] = {}
        for spec in specs:
            shared = found.get(spec.alias)
            if shared is not None and (shared.spec.shape, shared.spec.dtype) == (spec.shape, spec.dtype):
                found[spec.name] = shared
            elif spec.alias:
                raise EngineError(f"{owner}: tensor {spec.name!r} cannot share the memory of {spec.alias!r}")
            else:
                found[spec.name] = self.allocate(spec, owner)
        return found

    def array(self, name: str, shape: Shape, dtype: str = "float32", owner: str = "") -> NDArray[Any]:
        """A work array of a voice, counted in the plan like the tensors of engines."""
        return self.allocate(TensorSpec(name, dtype, shape), owner).view(shape)

    def note(self, row: PlanRow) -> None:
        """Counts memory in the plan that is not a buffer of the arena."""
        self._notes[row.name] = row

    def weights(self, name: str, nbytes: int) -> None:
        """Counts the weights of an engine, to be called before they are loaded."""
        self.note(weights_row(name, nbytes))

    def free(self, owner: str) -> None:
        """Forgets the buffers and weights of one owner; the memory goes when the last view does."""
        self._buffers = {k: b for k, b in self._buffers.items() if not k.startswith(f"{owner}.")}
        self._notes = {k: n for k, n in self._notes.items() if not k.startswith(f"{owner}.")}

    def when_sealed(self, call: Callable[[], None]) -> None:
        """For memory that is not the arena's: called by `seal`, to refuse what comes later."""
        self._when_sealed.append(call)

    def seal(self) -> None:
        """Makes every buffer resident and refuses every later allocation."""
        self._sealed = True
        for call in self._when_sealed:
            call()
        for buffer in self._buffers.values():
            buffer.touch()

    @property
    def engine_cpu_s(self) -> float:
        return sum(list(self.cpu_s.values()))

    @property
    def nbytes(self) -> int:
        """Of the buffers only. Any thread, also while others load."""
        return sum(buffer.nbytes for buffer in list(self._buffers.values()))

    def plan(self) -> list[PlanRow]:
        """What was allocated or noted, the largest first. Any thread, also while others load."""
        rows = [buffer_row(replace(b.spec, name=k)) for k, b in list(self._buffers.items())]
        rows += list(self._notes.values())
        return sorted(rows, key=lambda row: (-row.megabytes, row.name))
