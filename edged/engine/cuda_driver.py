"""Calls of the GPU's driver that pycuda does not have, by ctypes, and what its failures are to edged.

Any thread. Neighbours: `cuda` needs the context of a thread, `cuda_graph` the graphs, all `cuda_errors`.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from edged.errors import CudaError, CudaUnavailable, DeviceOutOfMemory, EngineError

LIBRARY = "libcuda.so.1"
OUT_OF_MEMORY = 2  # CUDA_ERROR_OUT_OF_MEMORY
CODES = range(1, 1000)  # where the driver's codes lie


class Driver:
    """The driver's library. Raises `CudaUnavailable` where there is none."""

    def __init__(self) -> None:
        try:
            self._library = ctypes.CDLL(LIBRARY)
        except OSError as error:
            raise CudaUnavailable(f"the NVIDIA driver's library cannot be loaded: {error}") from error

    def call(self, function: str, *arguments: Any) -> None:
        """Calls a function that returns a code. Arguments are ctypes values, as it declares them.

        Raises `DeviceOutOfMemory`, or `CudaError` with the name of the code.
        """
        try:
            native = getattr(self._library, function)
        except AttributeError:
            raise CudaError(f"{function}: this driver has no such function") from None
        code = native(*arguments)
        if code:
            kind = DeviceOutOfMemory if code == OUT_OF_MEMORY else CudaError
            raise kind(f"{function} failed: {self._text('cuGetErrorName', code) or f'code {code}'}")

    def name(self, description: str) -> str:
        """The name of the code that has this description, "" when none has: pycuda keeps the latter only."""
        described = (c for c in CODES if self._text("cuGetErrorString", c) == description)
        code = next(described, None)
        return "" if code is None else self._text("cuGetErrorName", code)

    def _text(self, function: str, code: int) -> str:
        text = ctypes.c_char_p()
        if getattr(self._library, function)(ctypes.c_int(code), ctypes.byref(text)):
            return ""
        return (text.value or b"").decode("ascii", "replace")


@contextmanager
def cuda_errors(what: str) -> Iterator[None]:
    """Turns whatever pycuda raises into a `CudaError`; the one place that does.

    what: what is being done, the beginning of the message. Raises `DeviceOutOfMemory`, `CudaError`.
    """
    try:
        yield
    except Exception as error:
        native = sys.modules.get("pycuda.driver")
        if isinstance(error, EngineError) or native is None or not isinstance(error, native.Error):
            raise
        kind = DeviceOutOfMemory if isinstance(error, native.MemoryError) else CudaError
        raise kind(f"{what}: {_told(str(error))}") from error


def _told(text: str) -> str:
    """pycuda's message, which is "call failed: description - more", with the name of the code."""
    first = text.strip().partition("\n")[0]
    name = Driver().name(first.partition(" failed: ")[2].partition(" - ")[0])
    return f"{first} ({name})" if name else first
