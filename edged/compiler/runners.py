"""A network as a function from arrays to arrays, whichever runtime is behind it, so that two can be compared.

CLI process only; slow and simple: every call copies everything in and out. The daemon's engines are in
`edged/engine`. Neighbours: `chattts/agreement.py` compares two runners; `trt.py`
loads the plan that a `PlanRunner` runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from edged.compiler.graph import Interface
from edged.engine.api import TensorSpec
from edged.engine.cuda import Device
from edged.engine.ort import native_errors, options, ort
from edged.errors import EngineError

Arrays = dict[str, NDArray[Any]]


class Runner(Protocol):
    """inputs, outputs: at their maximum shapes."""

    inputs: dict[str, TensorSpec]
    outputs: dict[str, TensorSpec]

    def __call__(self, feeds: Mapping[str, NDArray[Any]]) -> Arrays:
        """All outputs for all inputs; arrays of the runner's own, which the next call does not change."""

    def close(self) -> None: ...


class OrtRunner:
    """An ONNX file on the CPU."""

    def __init__(self, path: Path, interface: Interface, threads: int = 0) -> None:
        self.inputs = {spec.name: spec for spec in interface.inputs}
        self.outputs = {spec.name: spec for spec in interface.outputs}
        with native_errors(f"cannot load {path}"):
            self._session: Any = ort.InferenceSession(str(path), options(threads, spinning=False))

    def __call__(self, feeds: Mapping[str, NDArray[Any]]) -> Arrays:
        names = list(self.outputs)
        with native_errors("run failed"):
            return dict(zip(names, self._session.run(names, dict(feeds)), strict=True))

    def close(self) -> None:
        self._session = None


class PlanRunner:
    """A TensorRT engine on the GPU. Outputs with an alias lie where that input lies, as in the daemon."""

    def __init__(
        self, engine: Any, interface: Interface, profiles: Sequence[Mapping[str, Any]], device: Device
    ) -> None:
        """engine: `ICudaEngine`; profiles: those it was built with, as `trt.profile` gives them; the last
        one that fits is used: a step of one row is also the shortest prompt."""
        self.inputs = {spec.name: spec for spec in interface.inputs}
        self.outputs = {spec.name: spec for spec in interface.outputs}
        self._profiles = profiles
        device.use()
        self._stream = device.stream()
        self._context = engine.create_execution_context()
        if self._context is None:
            raise EngineError("TensorRT has no memory for an execution context")
        specs = (*interface.inputs, *interface.outputs)
        self._blocks = {spec.name: device.allocate(spec.nbytes) for spec in specs if not spec.alias}
        self._places = {spec.name: self._blocks[spec.alias or spec.name].address for spec in specs}

    def __call__(self, feeds: Mapping[str, NDArray[Any]]) -> Arrays:
        context, stream = self._context, self._stream
        chosen = self._profile({name: value.shape for name, value in feeds.items()})
        if not context.set_optimization_profile_async(chosen, stream.handle):
            raise EngineError(f"TensorRT refuses profile {chosen}")
        kept = []  # until the copies are done
        for name, value in feeds.items():
            kept.append(np.ascontiguousarray(value, self.inputs[name].dtype))
            if not context.set_input_shape(name, value.shape):
                raise EngineError(f"TensorRT refuses the shape {value.shape} of {name}")
            stream.upload(self._places[name], kept[-1])
        for name, address in self._places.items():
            if not context.set_tensor_address(name, address):
                raise EngineError(f"TensorRT refuses the address of {name}")
        found = {
            name: np.empty(tuple(context.get_tensor_shape(name)), spec.dtype)
            for name, spec in self.outputs.items()
        }
        if not context.execute_async_v3(stream.handle):
            raise EngineError("TensorRT cannot run the engine")
        for name, array in found.items():
            stream.download(array, self._places[name])
        stream.synchronize()
        return found

    def close(self) -> None:
        self._context = None
        for block in self._blocks.values():
            block.free()
        self._stream.close()

    def _profile(self, shapes: Mapping[str, tuple[int, ...]]) -> int:
        for number in reversed(range(len(self._profiles))):
            ranges = self._profiles[number].items()
            if all(_within(shapes[name], least, most) for name, (least, _, most) in ranges):
                return number
        raise EngineError("no optimisation profile takes these shapes", "this is a fault in the build")


def _within(shape: Sequence[int], least: Sequence[int], most: Sequence[int]) -> bool:
    return len(shape) == len(least) and all(a <= n <= b for n, a, b in zip(shape, least, most, strict=True))
