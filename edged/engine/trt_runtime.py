"""TensorRT as the engine layer uses it: the only module of the running daemon that imports `tensorrt`.

Every name here is in all versions from 10.3 to 11.4; where they differ, it is settled here. Loading thread
until READY, then the engine thread. Imported only when `preflight` found a driver, because without one the
library crashes. Neighbours: `trt.py` drives it, `trt_allocator.py` gives it memory.
"""

from __future__ import annotations

import functools
import logging
import mmap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tensorrt as trt

from edged.engine.api import Shape
from edged.engine.failures import first_line, native_errors
from edged.engine.trt_allocator import CountingAllocator
from edged.errors import EngineError, PlanRefused

log = logging.getLogger("edged.engine")
VERSION = str(trt.__version__)

_DTYPES = {
    "FLOAT": "float32",
    "HALF": "float16",
    "INT8": "int8",
    "UINT8": "uint8",
    "INT32": "int32",
    "INT64": "int64",
    "BOOL": "bool",
}
_LEVELS = {"INTERNAL_ERROR": logging.ERROR, "ERROR": logging.ERROR, "WARNING": logging.WARNING}


@dataclass(frozen=True, slots=True)
class PlanTensor:
    """A tensor as a plan has it. shape: -1 where it varies; host: it must lie where the processor sees it;
    ranges: by optimisation profile, the smallest and the largest shape (of outputs: none)."""

    name: str
    output: bool
    dtype: str
    shape: Shape
    host: bool
    ranges: tuple[tuple[Shape, Shape], ...]


class Log(trt.ILogger):  # type: ignore[misc]  # the bindings have no types
    """What TensorRT says, in our log; `last` is its latest error, which its calls do not tell. quiet: nothing
    above debug level, as the errors are raised."""

    def __init__(self) -> None:
        trt.ILogger.__init__(self)
        self.last = ""
        self.quiet = False

    def log(self, severity: Any, msg: str) -> None:
        level = _LEVELS.get(severity.name, logging.DEBUG)
        if level >= logging.ERROR:
            self.last = first_line(msg)
        log.log(logging.DEBUG if self.quiet else level, "TensorRT: %s", first_line(msg))


@functools.cache  # a process gives TensorRT one logger: it keeps to the first, and warns of every other
def logger() -> Log:
    """That of this process: of the voices, of those that a reload loads beside them, and of a build."""
    return Log()


class Memory(trt.IGpuAllocator):  # type: ignore[misc]
    """Hands TensorRT's wishes to the allocator. All five methods must be there: none has a default."""

    def __init__(self, counting: CountingAllocator) -> None:
        trt.IGpuAllocator.__init__(self)
        self._counting = counting

    def allocate(self, size: int, alignment: int, flags: int) -> int:
        return self._counting.take(size, alignment)

    def reallocate(self, address: int, alignment: int, new_size: int) -> int:
        return 0  # it may be refused: a block is then kept as it is

    def deallocate(self, memory: int) -> bool:
        return self._counting.give_back(memory)

    def allocate_async(self, size: int, alignment: int, flags: int, stream: int) -> int:
        return self._counting.take(size, alignment)

    def deallocate_async(self, memory: int, stream: int) -> bool:
        return self._counting.give_back(memory)


def deserialize(plan: Any, logger: Log, memory: Memory) -> Any:
    """The native engine of a plan (bytes-like), None where TensorRT refuses it."""
    runtime = trt.Runtime(logger)
    runtime.gpu_allocator = memory
    return runtime.deserialize_cuda_engine(plan)


class Runtime:
    """The log and the memory that all engines of a bundle share."""

    def __init__(self, allocator: CountingAllocator) -> None:
        self.allocator = allocator
        self._log = logger()
        self._memory = Memory(allocator)

    def load(self, path: Path) -> NativeEngine:
        """Raises `PlanRefused` where TensorRT does not take it, `EngineError`, and the allocator's errors."""
        try:
            with (
                path.open("rb") as file,
                mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as plan,
                native_errors(f"cannot load {path}"),
            ):
                native = deserialize(plan, self._log, self._memory)
        except (OSError, ValueError) as error:  # ValueError: an empty file cannot be mapped
            raise EngineError(f"{path}: {error}", "copy the bundle again or rebuild it") from error
        if native is None:
            raise self.failure(f"cannot load {path}", PlanRefused)
        return NativeEngine(path.name, native, self)

    def failure(self, what: str, kind: type[EngineError] = EngineError) -> EngineError:
        """Why a call that only answered no did so, as far as is known."""
        refused, self.allocator.error = self.allocator.error, None
        if isinstance(refused, EngineError):
            return type(refused)(f"{what}: {refused.message}")
        told, self._log.last = self._log.last, ""
        return kind(f"{what}: {told or 'TensorRT gives no reason'}")


class NativeEngine:
    """An ICudaEngine: weights on the device, shared by its contexts."""

    def __init__(self, name: str, native: Any, runtime: Runtime) -> None:
        self.name = name
        self._native = native
        self._runtime = runtime
        try:
            with native_errors(f"cannot read {name}"):
                self._read()
        except BaseException:
            self._native = None  # whoever keeps the error must not keep it alive
            raise

    def _read(self) -> None:
        # Without comprehensions: what they close over outlives an error by longer than their frames.
        self.profiles = int(self._native.num_optimization_profiles)
        names = map(self._native.get_tensor_name, range(self._native.num_io_tensors))
        self.tensors = list(map(self._tensor, names))
        sizes = map(self._native.get_device_memory_size_for_profile_v2, range(self.profiles))
        self.activations = list(map(int, sizes))

    def _tensor(self, name: str) -> PlanTensor:
        output = self._native.get_tensor_mode(name) == trt.TensorIOMode.OUTPUT
        dtype = self._native.get_tensor_dtype(name).name
        ranges = []
        for profile in range(0 if output else self.profiles):
            least, _, most = self._native.get_tensor_profile_shape(name, profile)
            ranges.append((tuple(least), tuple(most)))
        return PlanTensor(
            name,
            output,
            _DTYPES.get(dtype, dtype),
            tuple(self._native.get_tensor_shape(name)),
            self._native.get_tensor_location(name) == trt.TensorLocation.HOST,
            tuple(ranges),
        )

    def context(self, profile: int, stream: int, address: int) -> NativeContext:
        """A context of a profile that works in device memory of ours: `activations[profile]` bytes."""
        with native_errors(f"{self.name}: cannot make a context"):
            strategy = trt.ExecutionContextAllocationStrategy.USER_MANAGED
            native = self._native.create_execution_context(strategy)
            if native is None:
                raise self._runtime.failure(f"{self.name}: cannot make a context")
            made = NativeContext(self.name, native, self._runtime)
            made.begin(profile, stream, address, self.activations[profile])
        return made

    def close(self) -> None:
        """Its contexts must be closed before."""
        self._native = None


class NativeContext:
    """An IExecutionContext. Every method raises `EngineError` where TensorRT says no."""

    def __init__(self, name: str, native: Any, runtime: Runtime) -> None:
        self._name = name
        self._native = native
        self._runtime = runtime

    def begin(self, profile: int, stream: int, address: int, nbytes: int) -> None:
        if not self._native.set_optimization_profile_async(profile, stream):
            raise self._runtime.failure(f"{self._name}: no optimisation profile {profile}")
        self._native.set_device_memory(address, nbytes)

    def shape(self, name: str, shape: Shape) -> None:
        if not self._native.set_input_shape(name, shape):
            raise self._runtime.failure(f"{self._name}: {name!r} cannot have the shape {list(shape)}")

    def address(self, name: str, address: int) -> None:
        if not self._native.set_tensor_address(name, address):
            raise self._runtime.failure(f"{self._name}: {name!r} cannot lie at {address:#x}")

    def output_shape(self, name: str) -> Shape:
        """-1 where it is known only after a run."""
        return tuple(self._native.get_tensor_shape(name))

    def execute(self, stream: int) -> None:
        """Puts the work into a stream; it is not done on return."""
        if not self._native.execute_async_v3(stream):
            raise self._runtime.failure(f"{self._name}: run failed")

    def close(self) -> None:
        self._native = None
