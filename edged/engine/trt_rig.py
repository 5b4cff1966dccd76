"""What the TensorRT engines of a bundle share: the device, its one allocation, and the copies between them.

Made by the loading thread, used by the engine thread, closed with the last engine. Neighbours: `trt.py` makes
it; `device_memory.py`, `trt_runtime.py`.
"""

from __future__ import annotations

from contextlib import ExitStack, suppress

from edged.engine.cuda import Device, Stream
from edged.engine.device_memory import DeviceMemory
from edged.engine.trt_runtime import Runtime
from edged.errors import EdgedError


class Copies:
    """A stream for copies within the device. They begin when they are asked for, as the host waits for every
    run; a later run waits for them on the device."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._stream = device.stream()
        self._event = device.event()
        self._pending = False
        self._failed: list[Stream] = []

    def begin(self) -> Stream:
        """The stream for the next copy. Raises `EngineError` while a failed run has not come to rest."""
        self._device.use()
        self.rest()
        self._pending = True
        return self._stream

    def before(self, stream: Stream) -> None:
        """What comes next in this stream begins after the copies."""
        if self._pending:
            self._event.record(self._stream)
            stream.wait(self._event)

    def failed(self, stream: Stream) -> None:
        """A run failed, and some of its work may still be in its stream: it must end before anything else
        touches the memory that all share."""
        self._failed.append(stream)
        with suppress(EdgedError):  # what failed may fail again; then whoever comes next waits
            self.rest()

    def rest(self) -> None:
        """Waits for what failed runs have left. Raises `EngineError`."""
        while self._failed:
            self._failed[-1].synchronize()
            self._failed.pop()

    def done(self) -> None:
        """A run that came after them has ended."""
        self._pending = False

    def close(self) -> None:
        with suppress(EdgedError):  # what failed before fails again
            self._stream.synchronize()


class Rig:
    """users: engines that are open. runtime: the log and the allocator of TensorRT."""

    def __init__(self, device: Device, runtime: Runtime) -> None:
        self.device = device
        self.runtime = runtime
        self.copies = Copies(device)
        self.memory: DeviceMemory | None = None
        self.users = 0

    def leave(self) -> None:
        """An engine was closed, its native parts before; with the last one everything goes."""
        self.users -= 1
        if self.users <= 0:
            self.close()

    def close(self) -> None:
        """Nothing is left on the device afterwards, as far as the driver allows. Raises `EngineError`."""
        with ExitStack() as rest:  # all of it whatever fails, from the last line to the first
            rest.callback(self.device.close)
            if self.memory is not None:
                rest.callback(self.memory.close)
            self.copies.close()
