"""The arenas of the GPU: one device allocation and one page-locked allocation hold every tensor there is.

Filled by the loading thread before READY and sealed then, so that nothing is allocated while serving; the
engine thread uses the addresses. Neighbours: `cuda` allocates, `trt` carves tensors and activation memory.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from edged.errors import EngineError

if TYPE_CHECKING:
    from edged.engine.cuda import Device

ALIGNMENT = 256  # bytes: what TensorRT asks of activation memory, and more than any tensor needs


def aligned(nbytes: int) -> int:
    """The bytes that a piece of this size takes in an arena."""
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


class DeviceMemory:
    """Pieces of two arenas, all zeros at first.

    Mirrors stand behind the carved pieces on the device, in the same order and at the same distances as their
    counterparts in the page-locked arena: neighbouring ones are copied at once, from the first's array to the
    first's address.

    device_bytes: for `carve`, the sum of the `aligned` sizes. pinned_bytes: for `mirror`, likewise; the same
    amount is taken on the device as well, in the one allocation. Raises `DeviceOutOfMemory`.
    """

    def __init__(self, device: Device, device_bytes: int, pinned_bytes: int) -> None:
        carved, mirrored = aligned(device_bytes), aligned(pinned_bytes)
        self.device_bytes, self.pinned_bytes = carved + mirrored, mirrored
        self._block = device.allocate(max(self.device_bytes, ALIGNMENT))
        try:
            self._pinned = device.pin(max(mirrored, ALIGNMENT))
        except BaseException:
            self._block.free()
            raise
        self._carved = _Range("device memory", carved)
        self._mirrored = _Range("page-locked memory", mirrored)
        self._mirrors = self._block.address + carved

    def carve(self, nbytes: int) -> int:
        """The address of a piece on the device. Raises `EngineError` without room, or when sealed."""
        return self._block.address + self._carved.take(nbytes)

    def mirror(self, nbytes: int) -> tuple[int, NDArray[np.uint8]]:
        """A piece of both: the address on the device, and the host's array, uint8 [nbytes].

        Raises `EngineError` without room, or when sealed.
        """
        offset = self._mirrored.take(nbytes)
        return self._mirrors + offset, self._pinned.array[offset : offset + nbytes]

    def seal(self) -> None:
        """Refuses every later piece, so that a mistake is an error and not memory that grows."""
        self._carved.seal()
        self._mirrored.seal()

    def close(self) -> None:
        """Frees both. Once is enough; the device must have finished, and no array may be used afterwards."""
        self.seal()
        with ExitStack() as rest:
            rest.callback(self._block.free)
            self._pinned.free()


class _Range:
    """Offsets of pieces in an arena, one behind the other."""

    def __init__(self, name: str, size: int) -> None:
        self._name, self._size = name, size
        self._used, self._sealed = 0, False

    def take(self, nbytes: int) -> int:
        if self._sealed:
            raise EngineError(f"{nbytes} bytes of {self._name} were asked for after the start: it is sealed")
        end = self._used + aligned(nbytes)
        if nbytes < 1 or end > self._size:
            free = self._size - self._used
            raise EngineError(f"{nbytes} bytes of {self._name} were asked for, and {free} are left")
        start, self._used = self._used, end
        return start

    def seal(self) -> None:
        self._sealed = True
