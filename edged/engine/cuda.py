"""The GPU through its driver: its context, and memory. The only module that imports `pycuda`.

A `Device` is made on the loading thread, which allocates everything; the engine thread calls `use` and then
works with streams and events; whoever stops the daemon closes the device when no other thread uses it.
pycuda keeps a stack of contexts a thread, and ends the process when a thread ends before its stack is empty.
So a context is on that stack only while something is made or freed, and `use` tells the driver itself.
Neighbours: `cuda_stream` has the streams and events, `cuda_driver` the calls that pycuda lacks;
`device_memory` and `trt` build on this.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from edged.engine.cuda_driver import Driver, cuda_errors
from edged.engine.cuda_stream import Event, Release, Stream
from edged.engine.preflight import available_mb
from edged.errors import CudaError, CudaUnavailable, DeviceOutOfMemory, EngineError, MissingExtra

__all__ = ["Block", "Device", "Event", "Pinned", "Stream", "binding", "cuda_errors"]


def binding() -> Any:
    """pycuda's interface to the driver, which it only loads. Raises `MissingExtra`, `CudaUnavailable`."""
    try:
        import pycuda.driver
    except ModuleNotFoundError as error:
        raise MissingExtra(error.name or "pycuda", "tensorrt", "a voice for TensorRT") from error
    except ImportError as error:  # it is there, but a library that it needs is not
        raise CudaUnavailable(f"pycuda cannot be loaded: {error}") from error
    return pycuda.driver


class Device:
    """A GPU with its primary context, which TensorRT uses as well, and all that was made on it.

    name, capability (major, minor), driver (the newest CUDA it has: 13000 is 13.0), integrated (with the
    processor's memory).
    Raises `MissingExtra` without pycuda, `CudaUnavailable` without a driver or such a device.
    """

    def __init__(self, ordinal: int = 0) -> None:
        cuda = self._cuda = binding()
        self._driver = Driver()
        try:
            with cuda_errors(f"CUDA device {ordinal}"):
                cuda.init()
                device = cuda.Device(ordinal)
                self.name = str(device.name())
                major, minor = device.compute_capability()
                self.driver = int(cuda.get_driver_version())
                self.integrated = bool(device.get_attribute(cuda.device_attribute.INTEGRATED))
                self._context = device.retain_primary_context()
        except DeviceOutOfMemory:
            raise
        except CudaError as error:
            raise CudaUnavailable(error.message) from error
        self.capability = int(major), int(minor)
        self._users = threading.local()
        self._left: list[_Resource] = []
        self._closed = False

    def use(self) -> None:
        """Makes the context current on the calling thread; cheap when it already is."""
        if self._closed:
            raise EngineError("the GPU was asked for after it was closed")
        if not getattr(self._users, "current", False):
            self._driver.call("cuCtxSetCurrent", ctypes.c_void_p(self._context.handle))
            self._users.current = True

    def memory(self) -> tuple[int, int]:
        """Free and total bytes of device memory, those of other processes counted. Where the processor has it
        as well, what the kernel would give back is free, too."""
        with self._active("free memory of the GPU"):
            free, total = self._cuda.mem_get_info()
        if self.integrated:
            free = max(free, min(total, int(available_mb() * 1e6)))
        return int(free), int(total)

    def stream(self) -> Stream:
        with self._active("a stream"):
            stream = Stream(self._cuda, self.release)
        return self._keep(stream)

    def event(self) -> Event:
        with self._active("an event"):
            event = Event(self._cuda, self.release)
        return self._keep(event)

    def allocate(self, nbytes: int) -> Block:
        """Device memory, all zeros. Raises `DeviceOutOfMemory`."""
        with self._active(f"{nbytes / 1e6:.1f} MB of device memory"):
            block = Block(self._cuda, self.release, nbytes)
        return self._keep(block)

    def pin(self, nbytes: int) -> Pinned:
        """Page-locked memory of the host, all zeros. Raises `DeviceOutOfMemory`."""
        with self._active(f"{nbytes / 1e6:.1f} MB of page-locked memory"):
            pinned = Pinned(self._cuda, self.release, nbytes)
        return self._keep(pinned)

    def close(self) -> None:
        """Frees all that is left, the latest first, and returns the context. Any thread; once is enough."""
        if self._closed:
            return
        self._closed = True
        left, self._left = self._left, []
        with cuda_errors("the end of the GPU's work"), ExitStack() as rest:  # from the last line to the first
            try:
                self._context.push()
            except self._cuda.Error:
                _keep_for_ever([self._context, *left])
                raise
            # While it is current, as pycuda leaks a context that another thread has made. That takes it off
            # pycuda's stack, and leaves it on the driver's, where `use` may have put it as well.
            rest.callback(self._context.detach)
            for resource in left:
                rest.callback(resource.forget)
            with suppress(self._cuda.Error):  # a device that has failed has nothing left to wait for
                self._cuda.Context.synchronize()
        with suppress(CudaError):
            self._driver.call("cuCtxPopCurrent_v2", None)
            self._driver.call("cuCtxSetCurrent", None)

    def release(self, resource: _Resource) -> None:
        """Frees one of the device's resources; nothing to do when that was done before."""
        if resource in self._left:  # empty once the device is closed
            with self._active("memory that is given back"):
                self._left.remove(resource)
                resource.forget()

    def _keep(self, resource: _R) -> _R:
        self._left.append(resource)
        return resource

    @contextmanager
    def _active(self, what: str) -> Iterator[None]:
        """The context on pycuda's stack of this thread, as making and freeing need it."""
        if self._closed:
            raise EngineError(f"{what}: the GPU was closed before")
        with cuda_errors(what):
            self._context.push()
            try:
                yield
            finally:
                self._context.pop()


def _keep_for_ever(natives: list[Any]) -> None:
    """pycuda ends the process when one of its objects goes and its context cannot be made current."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(natives))


class Block:
    """Device memory: `address` on the device, `nbytes`."""

    def __init__(self, cuda: Any, release: Release, nbytes: int) -> None:
        self._release = release
        self._memory = cuda.mem_alloc(nbytes)
        self.address, self.nbytes = int(self._memory), nbytes
        try:
            cuda.memset_d8(self.address, 0, nbytes)
            cuda.Context.synchronize()  # streams do not wait for the default stream, which writes the zeros
        except BaseException:
            self._memory.free()
            raise

    def free(self) -> None:
        """Once is enough. The device must have finished with it."""
        self._release(self)

    def forget(self) -> None:
        self._memory = None


class Pinned:
    """Page-locked memory of the host as `array`, uint8 [nbytes], which the device copies without a detour."""

    def __init__(self, cuda: Any, release: Release, nbytes: int) -> None:
        self._release = release
        self.array: NDArray[np.uint8] = cuda.pagelocked_empty(nbytes, np.uint8)
        self._memory = self.array.base
        self.array[:] = 0
        self.nbytes = nbytes

    def free(self) -> None:
        """Once is enough. No view of the array may be used afterwards."""
        self._release(self)

    def forget(self) -> None:
        self._memory.free()
        self.array = np.empty(0, np.uint8)


_Resource = Block | Pinned | Stream | Event
_R = TypeVar("_R", bound=_Resource)
