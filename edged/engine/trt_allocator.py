"""Device memory that TensorRT asks for by itself: counted at start, refused afterwards.

Its weights come this way; tensors and activations lie in `device_memory`. TensorRT calls from whichever
thread calls it, one at a time. Neighbours: `trt_runtime` hands it over, `cuda` allocates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from edged.errors import EdgedError, EngineError

if TYPE_CHECKING:
    from edged.engine.cuda import Block, Device


class CountingAllocator:
    """Blocks by address. made: how many there were; refused: how many after `ready`.

    A callback of native code must not raise: `error` keeps why the last one was refused.
    """

    def __init__(self, device: Device) -> None:
        self.made = 0
        self.refused = 0
        self.error: EdgedError | None = None
        self._device = device
        self._live: dict[int, Block] = {}
        self._ready = False

    @property
    def nbytes(self) -> int:
        return sum(block.nbytes for block in self._live.values())

    @property
    def live(self) -> int:
        """Blocks that were not given back."""
        return len(self._live)

    def ready(self) -> None:
        """From now on nothing more is given."""
        self._ready = True

    def take(self, nbytes: int, alignment: int) -> int:
        """The address of a new block, 0 where there is none. alignment: a power of two, or 0 for any."""
        if self._ready:
            self.refused += 1
            self.error = EngineError(f"TensorRT asked for {nbytes} bytes of device memory while serving")
            return 0
        try:
            block = self._device.allocate(nbytes)
        except EdgedError as error:
            self.error = error
            return 0
        if alignment and block.address % alignment:
            block.free()
            self.error = EngineError(
                f"device memory is not aligned to {alignment} bytes, as TensorRT wants it"
            )
            return 0
        self.made += 1
        self._live[block.address] = block
        return block.address

    def give_back(self, address: int) -> bool:
        """Whether the block was one of these, and is free."""
        block = self._live.pop(address, None)
        if block is None:
            return False
        try:
            block.free()
        except EdgedError as error:  # the device will free it when it is closed
            self.error = error
            return False
        return True
