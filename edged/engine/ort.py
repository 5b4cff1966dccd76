"""ONNX Runtime behind the engine interface: the only module that imports `onnxruntime`.

Used by the engine thread (and by the text thread for a frontend's own small engines); one engine
belongs to one thread. Inputs and outputs are bound by address to arena buffers, so a run copies and
allocates nothing of ours. Neighbours: `select.py` creates it, `buffers.py` gives it memory.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path
from time import thread_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edged.engine.api import Shape, TensorSpec
from edged.engine.buffers import Arena
from edged.engine.failures import native_errors
from edged.engine.host import HostEngine
from edged.errors import EngineError, ShapeExceeded

# Recent builds of ONNX Runtime report their use over the network and keep a database for that below the home
# directory. Nothing leaves this machine: the variable counts when the library is loaded, so it comes first.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import onnxruntime as ort

ort.disable_telemetry_events()

__all__ = ["OrtEngine", "native_errors", "optimize", "options", "ort"]

FULL_BYTES = 1 << 16  # a disk with less room is full
_TYPES = {
    "float": "float32",
    "double": "float64",
    "float16": "float16",
    "int8": "int8",
    "uint8": "uint8",
    "int16": "int16",
    "int32": "int32",
    "int64": "int64",
    "bool": "bool",
}


def options(threads: int, spinning: bool) -> ort.SessionOptions:
    """Session options for a long-lived service on a small machine."""
    chosen = ort.SessionOptions()
    chosen.intra_op_num_threads = threads
    chosen.inter_op_num_threads = 1
    chosen.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    # A memory pattern is kept for every input shape ever seen; sentences vary without end.
    chosen.enable_mem_pattern = False
    chosen.log_severity_level = 3  # errors only
    # A decoder step is 80 matrices of 0.1 ms: a thread that sleeps between them is woken so late that two
    # threads are no faster than one (12.4 against 7.3 ms a step, measured). Between runs, though, spinning
    # would burn a whole core for nothing.
    chosen.add_session_config_entry("session.intra_op.allow_spinning", "1")
    chosen.add_session_config_entry("session.force_spinning_stop", "0" if spinning else "1")
    return chosen


def optimize(model: bytes, path: Path) -> None:
    """Writes the network as the runtime would rewrite it for any CPU, so that a start need not do it.

    Extended level: fused operators, but no memory layouts that only fit the CPU of the build machine.
    """
    chosen = options(threads=1, spinning=False)
    chosen.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    chosen.optimized_model_filepath = str(path)
    try:
        with native_errors(f"cannot optimize {path.name}"):
            ort.InferenceSession(model, chosen, providers=[_CPU])
    except EngineError:
        room = os.statvfs(path.parent)
        if room.f_bavail * room.f_frsize < FULL_BYTES:  # for the library it is an invalid network
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path)) from None
        raise


# Doubling (the default) rounds every growth of the workspace up to a power of two: on a 1 GB box that
# is tens of MB never used. The exact sizes are known after one run at the maximum shapes.
_CPU = ("CPUExecutionProvider", {"arena_extend_strategy": "kSameAsRequested"})


class OrtEngine(HostEngine):
    """One ONNX network on the CPU with all of its tensors in the arena."""

    def __init__(
        self,
        path: Path,
        inputs: Sequence[TensorSpec],
        outputs: Sequence[TensorSpec],
        arena: Arena,
        *,
        name: str,
        threads: int = 1,
        spinning: bool = False,
    ) -> None:
        self.name = name
        self.inputs = {spec.name: spec for spec in inputs}
        self.outputs = {spec.name: spec for spec in outputs}
        if not path.is_file():
            raise EngineError(f"{path}: no such file", "copy the bundle again or rebuild it")
        with native_errors(f"cannot load {path}"):
            self._session: Any = ort.InferenceSession(str(path), options(threads, spinning), providers=[_CPU])
            self._binding: Any = self._session.io_binding()
        self._check(path)
        self._cpu_s = arena.cpu_s
        self._cpu_s[name] = 0.0
        self._buffers = arena.tensors((*inputs, *outputs), name)
        self._dtypes = {spec.name: np.dtype(spec.dtype).type for spec in (*inputs, *outputs)}
        self._views: dict[str, NDArray[Any]] = {}
        self._at: dict[str, int] = {}  # the row each view begins at
        for spec in (*inputs, *outputs):
            self.bind(spec.name, spec.shape)

    def _check(self, path: Path) -> None:
        """The file's tensors must be the declared ones: a wrong address would corrupt memory."""
        pairs = ((self._session.get_inputs(), self.inputs), (self._session.get_outputs(), self.outputs))
        for found, declared in pairs:
            names = [node.name for node in found]
            if sorted(names) != sorted(declared):
                raise EngineError(f"{path}: has tensors {names}, its manifest says {sorted(declared)}")
            for node in found:
                spec = declared[node.name]
                element = _TYPES.get(node.type.removeprefix("tensor(").removesuffix(")"), node.type)
                fixed = len(node.shape) == len(spec.shape) and all(
                    not isinstance(dim, int) or dim == most
                    for dim, most in zip(node.shape, spec.shape, strict=True)
                )
                if element != spec.dtype or not fixed:
                    raise EngineError(
                        f"{path}: tensor {node.name!r} is {element}{node.shape}, "
                        f"its manifest says {spec.dtype}{list(spec.shape)}"
                    )

    def bind(self, name: str, shape: Shape, row: int = 0) -> NDArray[Any]:
        view = self._views.get(name)
        if view is not None and view.shape == shape and self._at[name] == row:
            return view
        buffer = self._buffers.get(name)
        if buffer is None:
            raise ShapeExceeded(f"{self.name}: no tensor {name!r}", "this is a fault in the voice")
        view = buffer.view(shape, row)
        bind = self._binding.bind_input if name in self.inputs else self._binding.bind_output
        with native_errors(f"{self.name}: cannot bind {name!r}"):
            bind(name, "cpu", 0, self._dtypes[name], shape, buffer.address_of(row))
        self._views[name] = view
        self._at[name] = row
        return view

    def run(self) -> None:
        begin = thread_time()
        with native_errors(f"{self.name}: run failed"):
            self._session.run_with_iobinding(self._binding)
        self._cpu_s[self.name] += thread_time() - begin

    def close(self) -> None:
        self._views.clear()
        self._buffers.clear()
        self._binding = None
        self._session = None
