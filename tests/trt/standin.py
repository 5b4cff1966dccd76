"""In TensorRT's place: engines and contexts that run an ONNX network with ONNX Runtime on raw addresses.

They have the methods of `ICudaEngine` and `IExecutionContext` that edged calls, keep what TensorRT
promises, and refuse what it refuses: unknown names, shapes outside the profile, addresses that are not
aligned or not set, activation memory that is too small. What is enqueued runs when the stream does it. A
"plan" names an ONNX file, or holds it, and has its profiles. After each run the activation memory is full of
rubbish, as it would be on a device. Neighbour: `standin_builder` makes plans as TensorRT's builder does.
"""

from __future__ import annotations

import ctypes
import functools
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
import onnxruntime as ort
import tensorrt as trt

from edged.engine.api import Shape, TensorSpec

_HOST_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_LIBCUDA = ctypes.CDLL("libcuda.so.1")  # the test's own one, loaded before
MAGIC = b"standin "
_DTYPES = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(bool)": np.bool_,
}
_NATIVE = {
    np.float32: trt.DataType.FLOAT,
    np.float16: trt.DataType.HALF,
    np.int64: trt.DataType.INT64,
    np.int32: trt.DataType.INT32,
    np.bool_: trt.DataType.BOOL,
}
Range = tuple[Shape, Shape]


@dataclass
class World:
    """What a test may look at and decide. fail: by the name of a native call, the number of the call from now
    that fails; engines, contexts: how many are alive; spent_s: inside the networks; detached: what is to be
    written in place goes elsewhere."""

    fail: dict[str, int] = field(default_factory=dict)
    engines: int = 0
    contexts: int = 0
    orphans: int = 0  # of both, ended after the context that they were made in
    runs: int = 0
    spent_s: float = 0.0  # processor time, in the other calls as well
    weights: int = 1 << 20  # bytes that an engine takes for its weights
    detached: bool = False
    asks: int = 0  # bytes that a context wants from the allocator in its next run
    calls: dict[str, int] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)  # of the networks

    def fails(self, call: str) -> bool:
        self.calls[call] = self.calls.get(call, 0) + 1
        left = self.fail.get(call, 0)
        if left:
            self.fail[call] = left - 1
        return left == 1


world = World()
Method = TypeVar("Method", bound=Callable[..., Any])


def native(method: Method) -> Method:
    """Its time is the library's, not the host's."""

    @functools.wraps(method)
    def timed(*arguments: Any) -> Any:
        begin = time.thread_time()
        try:
            return method(*arguments)
        finally:
            world.spent_s += time.thread_time() - begin

    return cast(Method, timed)


def write_plan(
    path: Path,
    onnx: Path,
    profiles: Sequence[dict[str, Range]],
    host: Sequence[str] = (),
    activations: int = 4096,
) -> None:
    """profiles: smallest and largest shape by input; host: inputs whose values are shapes."""
    path.write_bytes(plan_of(str(onnx), profiles, host, activations))


def plan_of(
    onnx: str | bytes,
    profiles: Sequence[dict[str, Any]],
    host: Sequence[str] = (),
    activations: int = 4096,
) -> bytes:
    """onnx: the file's path, or what is in it."""
    named = onnx if isinstance(onnx, str) else ""
    plan = {"onnx": named, "profiles": profiles, "host": list(host), "activations": activations}
    return MAGIC + json.dumps(plan).encode() + b"\n" + (b"" if isinstance(onnx, str) else onnx)


def profiles(inputs: Sequence[TensorSpec], varying: Sequence[dict[str, Range]]) -> list[dict[str, Range]]:
    """Profiles in which the inputs not named always have their maximum shapes."""
    return [{s.name: each.get(s.name, (s.shape, s.shape)) for s in inputs} for each in varying]


def deserialize(plan: Any, logger: Any, memory: Any) -> Any:
    """In the place of `trt_runtime.deserialize`."""
    raw = bytes(plan)
    if world.fails("deserialize") or not raw.startswith(MAGIC):
        logger.log(
            trt.ILogger.Severity.ERROR, "Serialization assertion failed: magic tag does not match\nmore"
        )
        return None
    address = memory.allocate(world.weights, 256, 0)
    if not address:
        logger.log(trt.ILogger.Severity.ERROR, "Requested amount of GPU memory could not be allocated")
        return None
    text, _, network = raw[len(MAGIC) :].partition(b"\n")
    return Engine(json.loads(text), network, logger, memory, address)


class Engine:
    def __init__(self, plan: dict[str, Any], network: bytes, logger: Any, memory: Any, address: int) -> None:
        self._logger, self._memory, self._address = logger, memory, address
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 4
        self._session = ort.InferenceSession(
            plan["onnx"] or network, options, providers=["CPUExecutionProvider"]
        )
        self._nodes = {
            node.name: node for node in (*self._session.get_inputs(), *self._session.get_outputs())
        }
        self._inputs = [node.name for node in self._session.get_inputs()]
        self._plan = plan
        self.num_io_tensors = len(self._nodes)
        self.num_optimization_profiles = len(plan["profiles"])
        world.engines += 1

    def __del__(self) -> None:
        if self._address:
            world.orphans += not _LIBCUDA.fake_live(b"context")
            self._memory.deallocate(self._address)
            world.engines -= 1

    def get_tensor_name(self, index: int) -> str:
        return list(self._nodes)[index]

    def get_tensor_mode(self, name: str) -> Any:
        return trt.TensorIOMode.INPUT if name in self._inputs else trt.TensorIOMode.OUTPUT

    def get_tensor_dtype(self, name: str) -> Any:
        return _NATIVE[_DTYPES[self._nodes[name].type]]

    def get_tensor_shape(self, name: str) -> Any:
        return trt.Dims([n if isinstance(n, int) else -1 for n in self._nodes[name].shape])

    def get_tensor_location(self, name: str) -> Any:
        return trt.TensorLocation.HOST if name in self._plan["host"] else trt.TensorLocation.DEVICE

    def get_tensor_profile_shape(self, name: str, profile_index: int) -> Any:
        least, most = self._plan["profiles"][profile_index][name]
        return [trt.Dims(least), trt.Dims(most), trt.Dims(most)]

    def get_device_memory_size_for_profile_v2(self, profile_index: int) -> int:
        return int(self._plan["activations"])

    def create_execution_context(self, strategy: Any) -> Any:
        assert strategy == trt.ExecutionContextAllocationStrategy.USER_MANAGED
        return None if world.fails("create_execution_context") else Context(self)


class Context:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._profile: dict[str, Range] | None = None
        self._shapes: dict[str, Shape] = {}
        self._addresses: dict[str, int] = {}
        self._work = (0, 0)
        self._kept: list[Any] = []
        world.contexts += 1

    def __del__(self) -> None:
        world.orphans += not _LIBCUDA.fake_live(b"context")
        world.contexts -= 1

    def _no(self, why: str) -> bool:
        self._engine._logger.log(trt.ILogger.Severity.ERROR, why)
        return False

    def set_optimization_profile_async(self, profile_index: int, stream_handle: int) -> bool:
        known = self._engine._plan["profiles"]
        if not stream_handle or world.fails("set_optimization_profile_async") or profile_index >= len(known):
            return self._no(f"profile {profile_index} is not there")
        self._profile = known[profile_index]
        return True

    def set_device_memory(self, memory: int, size: int) -> None:
        self._work = (memory, size)

    @native
    def set_input_shape(self, name: str, shape: Shape) -> bool:
        if self._profile is None or name not in self._profile or world.fails("set_input_shape"):
            return self._no(f"no input {name}")
        least, most = self._profile[name]
        if len(shape) != len(least) or any(
            not a <= n <= b for a, n, b in zip(least, shape, most, strict=True)
        ):
            return self._no(f"{name}: {shape} is outside of the profile")
        self._shapes[name] = tuple(shape)
        return True

    @native
    def set_tensor_address(self, name: str, memory: int) -> bool:
        if name not in self._engine._nodes or memory % 256 or world.fails("set_tensor_address"):
            return self._no(f"{name}: cannot lie at {memory:#x}")
        self._addresses[name] = memory
        return True

    @native
    def get_tensor_shape(self, name: str) -> Any:
        return trt.Dims(self._shape(name))

    @native
    def execute_async_v3(self, stream_handle: int) -> bool:
        engine = self._engine
        if not stream_handle or world.fails("execute_async_v3"):
            return self._no("enqueueV3: an illegal memory access was encountered")
        if missing := [name for name in engine._nodes if not self._addresses.get(name)]:
            return self._no(f"no address of {missing}")
        if missing := [name for name in engine._inputs if name not in self._shapes]:
            return self._no(f"no shape of {missing}")
        if self._work[0] % 256 or self._work[1] < engine._plan["activations"]:
            return self._no(f"activation memory {self._work} is too small or not aligned")
        if world.asks and not engine._memory.allocate_async(world.asks, 256, 0, stream_handle):
            return self._no("temporary memory could not be allocated")
        # What the stream does later is what is bound now; the values of shapes are read now as well.
        values = {name: self._value(name) for name in engine._plan["host"]}
        addresses = self._addresses | {name: value.ctypes.data for name, value in values.items()}
        shapes, work = dict(self._shapes), self._work

        def run(_: Any) -> None:
            begin = time.thread_time()
            try:
                self._run(shapes, addresses)
            except Exception as error:  # as an illegal access would be: told by whoever waits
                world.errors.append(str(error))
            ctypes.memset(work[0], 0x7F, work[1])
            world.spent_s += time.thread_time() - begin
            world.runs += 1

        call = _HOST_FUNCTION(run)
        self._kept.append((call, values))  # a recorded one is called again
        code = _LIBCUDA.cuLaunchHostFunc(ctypes.c_void_p(stream_handle), call, None)
        return code == 0 or self._no(f"cuLaunchHostFunc: {code}")

    def _value(self, name: str) -> Any:
        dtype, shape = np.dtype(_DTYPES[self._engine._nodes[name].type]), self._shapes[name]
        raw = ctypes.string_at(self._addresses[name], dtype.itemsize * int(np.prod(shape)))
        return np.frombuffer(raw, dtype).copy()

    def _run(self, shapes: dict[str, Shape], addresses: dict[str, int]) -> None:
        binding = self._engine._session.io_binding()
        for name in self._engine._inputs:
            dtype = _DTYPES[self._engine._nodes[name].type]
            binding.bind_input(name, "cpu", 0, dtype, shapes[name], addresses[name])
        outputs = [name for name in self._engine._nodes if name not in self._engine._inputs]
        for name in outputs:  # of unknown shape, or not over an input: made by the runtime and copied
            past = name.replace("present", "past")
            if past != name and not world.detached:
                dtype = _DTYPES[self._engine._nodes[name].type]
                binding.bind_output(name, "cpu", 0, dtype, shapes[past], addresses[name])
            else:
                binding.bind_output(name)
        self._engine._session.run_with_iobinding(binding)
        for name, value in zip(outputs, binding.get_outputs(), strict=True):
            if name.replace("present", "past") == name:
                made = np.ascontiguousarray(value.numpy())
                ctypes.memmove(addresses[name], made.ctypes.data, made.nbytes)

    def _shape(self, name: str) -> list[int]:
        """-1 where the names of dimensions do not tell."""
        if name in self._shapes:
            return list(self._shapes[name])
        known = {}
        for each in self._engine._inputs:
            shape = self._shapes.get(each, ())
            known.update(zip(self._engine._nodes[each].shape, shape, strict=False))
        return [n if isinstance(n, int) else known.get(n, -1) for n in self._engine._nodes[name].shape]
