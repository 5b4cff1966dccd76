"""What a TensorRT bundle needs of this machine, checked before any native call that could crash.

Without a driver TensorRT gives an object whose first use ends the process, and a plan of another GPU or
version fails with lines that nobody understands. So the driver is asked by ctypes first, the cheap questions
before the dear ones, and each answer that does not fit is an error of its own with its remedy. Nothing here
imports TensorRT or pycuda. Loading thread, the process of a trial, and `edged doctor`. Neighbours: `catalog`
and `trial` call it before they open a bundle.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Protocol

from edged.errors import (
    CapabilityMismatch,
    CudaInitFailed,
    CudaMissing,
    DeviceMemoryShort,
    DriverTooOld,
    GpuMissing,
    GpuUnusable,
    TensorRTMismatch,
    TensorRTMissing,
)

LIBCUDA = "libcuda.so.1"
# JetPack's package, and those of the registry; the first that is there is the one that is imported.
DISTRIBUTIONS = (
    "tensorrt",
    "tensorrt-cu13",
    "tensorrt-cu12",
    "tensorrt-cu13-bindings",
    "tensorrt-cu12-bindings",
)
MEMINFO = Path("/proc/meminfo")
_NO_DEVICE = 100  # CUDA_ERROR_NO_DEVICE
_MISMATCH = (803, 804)  # the library and the kernel's module are of different versions
_MAJOR, _MINOR, _INTEGRATED = 75, 76, 18  # CU_DEVICE_ATTRIBUTE_*


class Needs(Protocol):
    """What the manifest tells (`edged.manifest.TensorRT`)."""

    @property
    def version(self) -> str: ...

    @property
    def capability(self) -> str: ...

    @property
    def cuda(self) -> str: ...

    @property
    def device_mb(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Found:
    """What is there. cuda: the highest that the driver knows. integrated: GPU and processor share their
    memory. free_mb, total_mb: of the GPU, in 10**6 bytes; free_mb is what it could get."""

    cuda: str
    tensorrt: str
    device: str
    capability: str
    integrated: bool
    free_mb: float
    total_mb: float

    def __str__(self) -> str:
        memory = "shared memory" if self.integrated else "memory"
        return (
            f"{self.device} (compute capability {self.capability}), {self.free_mb:.0f} of "
            f"{self.total_mb:.0f} MB {memory} free, driver for CUDA {self.cuda}, "
            f"TensorRT {self.tensorrt or 'not installed'}"
        )


def check(wanted: Needs, budget_mb: float, library: str = LIBCUDA) -> Found:
    """Raises the `GpuUnusable` that keeps the bundle from running here; what was found otherwise.

    budget_mb: `service.memory_mb`, in which memory of the GPU counts.
    """
    if wanted.device_mb > budget_mb:
        raise DeviceMemoryShort(
            f"the bundle needs {wanted.device_mb:.0f} MB on the GPU, service.memory_mb allows {budget_mb:g} "
            "for everything",
            "raise service.memory_mb, or rebuild the bundle with fewer --slots or --positions",
        )
    driver = Driver(library)
    if major(driver.cuda) < major(wanted.cuda):  # within one major version an older driver will do
        raise DriverTooOld(
            f"the driver knows CUDA up to {driver.cuda}, the bundle was built with a driver for CUDA "
            f"{wanted.cuda}"
        )
    installed = tensorrt_version()
    if not installed:
        raise TensorRTMissing(f"the bundle needs TensorRT {wanted.version}, and there is none")
    if not same_version(installed, wanted.version):
        raise TensorRTMismatch(f"the bundle was built with TensorRT {wanted.version}, here is {installed}")
    driver.start()
    found = driver.found(installed)
    if found.capability != wanted.capability:
        raise CapabilityMismatch(
            f"the bundle was built for compute capability {wanted.capability}, {found.device} has "
            f"{found.capability}"
        )
    if found.free_mb < wanted.device_mb:
        raise DeviceMemoryShort(
            f"the bundle needs {wanted.device_mb:.0f} MB on {found.device}, {found.free_mb:.0f} of "
            f"{found.total_mb:.0f} MB are free"
        )
    return found


def look(library: str = LIBCUDA) -> Found:
    """What is there, whatever a bundle needs. Raises `GpuUnusable` where the driver does not answer."""
    driver = Driver(library)
    driver.start()
    return driver.found(tensorrt_version())


def tensorrt_version() -> str:
    """Of the installed package, "" for none. It is not imported."""
    for name in DISTRIBUTIONS:
        with suppress(metadata.PackageNotFoundError):
            return metadata.version(name)
    return ""


def same_version(one: str, other: str) -> bool:
    """Whether a plan of one runs with the other: TensorRT refuses it with any but the version that made it.

    The fourth number, of the build, is compared where both have it: 10.3.0.post1 and 10.3.0.26 are the same.
    """
    numbers = [re.findall(r"\d+", re.split(r"[^\d.]", version)[0]) for version in (one, other)]
    known = min(map(len, numbers))
    return known > 0 and numbers[0][:known] == numbers[1][:known]


def major(version: str) -> int:
    return int(version.partition(".")[0])


class Driver:
    """The driver's library. Loading it, and asking for its version, does not touch the GPU.

    Raises `CudaMissing` when it is not there.
    """

    def __init__(self, library: str = LIBCUDA) -> None:
        try:
            self._library = ctypes.CDLL(library)
        except OSError as error:
            raise CudaMissing(f"{library} cannot be loaded: {error}") from None
        number = ctypes.c_int()
        self._call("cuDriverGetVersion", ctypes.byref(number))
        self.cuda = f"{number.value // 1000}.{number.value % 1000 // 10}"

    def start(self) -> None:
        """Raises `GpuMissing` or `CudaInitFailed`."""
        result = self._function("cuInit")(0)
        if result == _NO_DEVICE:
            raise GpuMissing(f"cuInit: {self._name(result)}")
        if result:
            remedy = "restart the machine: the driver was upgraded" if result in _MISMATCH else None
            raise CudaInitFailed(f"cuInit: {self._name(result)}", remedy)
        count = ctypes.c_int()
        self._call("cuDeviceGetCount", ctypes.byref(count))
        if count.value < 1:
            raise GpuMissing("the driver counts no device")

    def found(self, tensorrt: str) -> Found:
        """The first device, after `start`."""
        device, name, total = ctypes.c_int(), ctypes.create_string_buffer(256), ctypes.c_size_t()
        self._call("cuDeviceGet", ctypes.byref(device), 0)
        self._call("cuDeviceGetName", name, len(name), device)
        self._call("cuDeviceTotalMem_v2", ctypes.byref(total), device)
        most, least, integrated = (self._attribute(a, device) for a in (_MAJOR, _MINOR, _INTEGRATED))
        free_mb = self._free(device) / 1e6
        if integrated:  # the driver does not count what the kernel's page cache would give back
            free_mb = max(free_mb, available_mb())
        return Found(
            cuda=self.cuda,
            tensorrt=tensorrt,
            device=name.value.decode(errors="replace"),
            capability=f"{most}.{least}",
            integrated=bool(integrated),
            free_mb=free_mb,
            total_mb=total.value / 1e6,
        )

    def _attribute(self, which: int, device: ctypes.c_int) -> int:
        value = ctypes.c_int()
        self._call("cuDeviceGetAttribute", ctypes.byref(value), which, device)
        return value.value

    def _free(self, device: ctypes.c_int) -> int:
        """Bytes. Only a context can be asked for it; it is given back at once."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        with self._context(device):
            self._call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value

    @contextmanager
    def _context(self, device: ctypes.c_int) -> Iterator[None]:
        context = ctypes.c_void_p()
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        try:
            self._call("cuCtxPushCurrent_v2", context)
            try:
                yield
            finally:
                self._call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))
        finally:
            self._call("cuDevicePrimaryCtxRelease_v2", device)

    def _call(self, name: str, *arguments: object) -> None:
        result = self._function(name)(*arguments)
        if result:
            raise GpuUnusable(f"{name}: {self._name(result)}")

    def _function(self, name: str) -> ctypes._NamedFuncPointer:
        try:
            return getattr(self._library, name)  # type: ignore[no-any-return]
        except AttributeError:
            raise CudaMissing(
                f"the library {self._library._name} has no {name}: it is none of NVIDIA's"
            ) from None

    def _name(self, result: int) -> str:
        """CUDA_ERROR_NO_DEVICE (100), as the driver itself calls it."""
        text = ctypes.c_char_p()
        if not self._function("cuGetErrorName")(result, ctypes.byref(text)) and text.value:
            return f"{text.value.decode(errors='replace')} ({result})"
        return f"error {result}"


def available_mb() -> float:
    """What the kernel could give to a program that asks; 0 where it does not tell."""
    with suppress(OSError, ValueError):
        for line in MEMINFO.read_text("ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024 / 1e6
    return 0.0
