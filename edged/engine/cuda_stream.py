"""Streams and events of the GPU: work that it does in order, and marks in it to wait for.

Made by `cuda.Device` on the loading thread, used on the engine thread. Neighbours: `cuda`, which hands pycuda
in, `cuda_driver` for the errors; `trt` runs its engines on streams.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from edged.engine.cuda_driver import cuda_errors

Release = Callable[[Any], None]  # frees what the device has made
NON_BLOCKING = 1  # CU_STREAM_NON_BLOCKING: nothing waits for the work of the default stream


class Stream:
    """Work that the device does in order, beside other streams. One thread at a time.

    `handle` is what TensorRT takes. The arrays of `upload` and `download` must be contiguous; where they are
    page-locked, nobody touches them until the work is done (`Event.wait`, `synchronize`).
    """

    def __init__(self, cuda: Any, release: Release) -> None:
        self._cuda, self._release = cuda, release
        self._done = Event(cuda, release)
        self._stream = cuda.Stream(NON_BLOCKING)
        self.handle = int(self._stream.handle)

    def upload(self, target: int, source: NDArray[Any]) -> None:
        """Host to device. target: device address."""
        with cuda_errors("upload"):
            self._cuda.memcpy_htod_async(target, source, self._stream)

    def download(self, target: NDArray[Any], source: int) -> None:
        """Device to host. source: device address; as many bytes as the target has."""
        with cuda_errors("download"):
            self._cuda.memcpy_dtoh_async(target, source, self._stream)

    def copy(self, target: int, source: int, nbytes: int) -> None:
        """Within the device; the two must not overlap."""
        with cuda_errors("copy on the device"):
            self._cuda.memcpy_dtod_async(target, source, nbytes, self._stream)

    def copy_rows(self, target: int, source: int, width: int, rows: int, pitch: int) -> None:
        """Within the device: the first `width` bytes of each of `rows` rows, `pitch` bytes apart."""
        with cuda_errors("copy of rows on the device"):
            copy = self._cuda.Memcpy2D()
            copy.set_src_device(source)
            copy.set_dst_device(target)
            copy.src_pitch = copy.dst_pitch = pitch
            copy.width_in_bytes, copy.height = width, rows
            copy(self._stream)

    def fill(self, target: int, nbytes: int) -> None:
        """Zeros."""
        with cuda_errors("zeros on the device"):
            self._cuda.memset_d8_async(target, 0, nbytes, self._stream)

    def wait(self, event: Event) -> None:
        """What comes later in this stream begins when the event has come; the host goes on."""
        with cuda_errors("wait for another stream"):
            self._stream.wait_for_event(event.native)

    def synchronize(self) -> None:
        """Blocks the host, without spinning, until the stream's work is done."""
        self._done.record(self)
        self._done.wait()

    @property
    def native(self) -> Any:
        """pycuda's object."""
        return self._stream

    def close(self) -> None:
        """Once is enough."""
        self._release(self)

    def forget(self) -> None:
        self._stream = None
        self._done.forget()


class Event:
    """A mark in the work of a stream, on which the host waits without spinning."""

    def __init__(self, cuda: Any, release: Release) -> None:
        self._release = release
        flags = cuda.event_flags
        self._event = cuda.Event(flags.BLOCKING_SYNC | flags.DISABLE_TIMING)

    def record(self, stream: Stream) -> None:
        """Sets the mark behind all that was put into the stream so far."""
        with cuda_errors("event"):
            self._event.record(stream.native)

    def wait(self) -> None:
        """Blocks until the mark is reached. Raises here what went wrong in the stream before it."""
        with cuda_errors("wait for the device"):
            self._event.synchronize()

    def done(self) -> bool:
        """Whether the mark was reached; also true before the first `record`."""
        with cuda_errors("event"):
            return bool(self._event.query())

    @property
    def native(self) -> Any:
        """pycuda's object."""
        return self._event

    def close(self) -> None:
        """Once is enough."""
        self._release(self)

    def forget(self) -> None:
        """For the device only: with the context current."""
        self._event = None
