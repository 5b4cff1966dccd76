"""In the place of the module `tensorrt` while a bundle is built: what the compiler uses of it.

Names and enumerations are those of the real bindings; builder, parser and configuration are stand-ins. A plan
holds the ONNX file with its weights and the profiles, and `standin.deserialize` runs it. Neighbour:
`standin.py`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import tensorrt as trt
from onnx import numpy_helper

from tests.trt import standin

__version__ = trt.__version__
ILogger, IProgressMonitor = trt.ILogger, trt.IProgressMonitor
NetworkDefinitionCreationFlag, BuilderFlag = trt.NetworkDefinitionCreationFlag, trt.BuilderFlag
ProfilingVerbosity, MemoryPoolType = trt.ProfilingVerbosity, trt.MemoryPoolType
LayerInformationFormat = trt.LayerInformationFormat
TIMINGS = b"timings of a stand-in"


@dataclass
class Order:
    """What a test decides, and what the builder was told. spoilt: weights come out larger by this factor."""

    spoilt: float = 1.0
    timings: list[bytes] = field(default_factory=list)  # that were there before a build
    typed: list[bool] = field(default_factory=list)


order = Order()


class Definition:
    model: Any = None


class Cache:
    def __init__(self, held: bytes) -> None:
        self.held = held

    def serialize(self) -> bytes:
        return self.held or TIMINGS


class Profile:
    def __init__(self) -> None:
        self.shapes: dict[str, Any] = {}

    def set_shape(self, input: str, min: Any, opt: Any, max: Any) -> None:
        assert all(a <= b <= c for a, b, c in zip(min, opt, max, strict=True)), input
        self.shapes[input] = [list(min), list(max)]


class Config:
    def __init__(self) -> None:
        self.profiles: list[Profile] = []
        self.progress_monitor: Any = None
        self.profiling_verbosity: Any = None
        self._cache = Cache(b"")

    def clear_flag(self, flag: Any) -> None: ...

    def set_memory_pool_limit(self, pool: Any, pool_size: int) -> None: ...

    def add_optimization_profile(self, profile: Any) -> int:
        self.profiles.append(profile)
        return len(self.profiles) - 1

    def create_timing_cache(self, serialized_timing_cache: bytes) -> Any:
        order.timings.append(serialized_timing_cache)
        return Cache(serialized_timing_cache)

    def set_timing_cache(self, cache: Any, ignore_mismatch: bool) -> bool:
        self._cache = cache
        return cache.held in (b"", TIMINGS)

    def get_timing_cache(self) -> Any:
        return self._cache


class Builder:
    def __init__(self, logger: Any) -> None: ...

    def create_network(self, flags: int) -> Any:
        order.typed.append(bool(flags & 1 << int(NetworkDefinitionCreationFlag.STRONGLY_TYPED)))
        return Definition()

    def create_builder_config(self) -> Any:
        return Config()

    def create_optimization_profile(self) -> Any:
        return Profile()

    def build_serialized_network(self, network: Any, config: Any) -> Any:
        monitor = config.progress_monitor
        monitor.phase_start("Building Engine", None, 2)
        for step in range(2):
            if not monitor.step_complete("Building Engine", step):
                return None
        monitor.phase_finish("Building Engine")
        model = network.model
        fixed = {
            value.name: [[dim.dim_value for dim in value.type.tensor_type.shape.dim]] * 2
            for value in model.graph.input
        }
        for tensor in model.graph.initializer:
            if order.spoilt != 1.0 and tensor.data_type in (1, 10) and len(tensor.dims) > 1:
                values = numpy_helper.to_array(tensor)
                larger = (values * np.asarray(order.spoilt, values.dtype)).astype(values.dtype)
                tensor.CopyFrom(numpy_helper.from_array(larger, tensor.name))
        ranges = [{**fixed, **profile.shapes} for profile in config.profiles]
        return standin.plan_of(model.SerializeToString(), ranges)


class OnnxParser:
    num_errors = 0

    def __init__(self, network: Any, logger: Any) -> None:
        self._network = network

    def parse_from_file(self, model: str) -> bool:
        self._network.model = onnx.load_model(model)
        return True


class Runtime:
    def __init__(self, logger: Any) -> None: ...

    def deserialize_cuda_engine(self, serialized_engine: Any) -> Any:
        return Plan() if bytes(serialized_engine).startswith(standin.MAGIC) else None


class Plan:
    def create_engine_inspector(self) -> Any:
        return Inspector()


class Inspector:
    def get_engine_information(self, format: Any) -> str:
        return json.dumps({"Layers": [{"Name": "a", "LayerType": "gemm"}]})
