"""Builds TensorRT plans from ONNX files: parse, profiles, tactics, timing cache, layer report.

CLI process only, on the machine that will run the plans; the only module of the compiler that imports
`tensorrt`, and only after the driver has answered (without one, TensorRT's objects crash). Uses no name that
10.3 or 11.4 lacks. Networks are strongly typed: TensorRT keeps to the element types that the graph says.
Neighbours: `trt_phases.py` turns its phases into a fraction, `trt_report.py` reads its report of layers,
`chattts/plans.py` calls; `edged/engine/trt.py` runs plans, here as in the daemon.
"""

from __future__ import annotations

import functools
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import onnx

from edged.compiler.parts import Progress
from edged.compiler.trt_phases import Phases, stoppable
from edged.engine import cuda, preflight
from edged.engine.failures import UNLOADABLE, unloadable
from edged.errors import BadValue, MissingExtra, PlanFailed

log = logging.getLogger("edged.compiler")
MOST_WORKSPACE_MB = 1_000_000  # more than any GPU has
Range = tuple[
    int, int, int
]  # of a dynamic dimension: the least, the usual (tactics are chosen for it), the most
Dims = Mapping[str, Range]  # by the name that the dimension has in the ONNX file
Shapes = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True)
class Limits:
    """workspace_mb: memory that a layer may use for scratch while tactics are tried, 0 for all there is;
    timing_cache: file that keeps what was measured, so that the next build need not measure it again; links
    are followed here. Raises `BadValue`, before the long work."""

    workspace_mb: int = 0
    timing_cache: Path | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.workspace_mb <= MOST_WORKSPACE_MB:
            raise BadValue(
                f"workspace {self.workspace_mb} MB", f"choose 1 to {MOST_WORKSPACE_MB}, or leave it out"
            )
        if self.timing_cache is not None:
            object.__setattr__(self, "timing_cache", _regular(self.timing_cache))


def _regular(path: Path) -> Path:
    """The file that a path leads to, or would; what takes its place must not replace a link or a device.

    Raises `BadValue`.
    """
    hint = "name another file with --timing-cache"
    try:
        found = path.resolve()
        if found.is_file() or not found.exists():
            return found
    except (OSError, RuntimeError) as error:  # RuntimeError: links that lead in a circle
        raise BadValue(f"the timing cache {path} cannot be used: {error}", hint) from None
    raise BadValue(f"the timing cache {path} is there, and no regular file", hint)


def tensorrt() -> Any:
    """The library, when the driver has answered, and pycuda is there, with which the new engines are tried.

    Raises `GpuUnusable`, `CudaUnavailable`, or `MissingExtra`.
    """
    preflight.look()
    cuda.binding()
    try:
        return import_module("tensorrt")
    except ModuleNotFoundError as absent:
        raise MissingExtra(absent.name or "tensorrt", "tensorrt", "building TensorRT plans") from absent
    except UNLOADABLE as broken:  # it is there, its libraries are not
        raise unloadable(broken) from broken


def profile(network: Path, dims: Dims) -> dict[str, Shapes]:
    """The shapes of every input that has dynamic dimensions. Raises `ValueError` where `dims` lacks one."""
    model = onnx.load_model(str(network), load_external_data=False)
    shapes = {}
    for value in model.graph.input:
        sizes = [dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim]
        unknown = [size for size in sizes if isinstance(size, str) and size not in dims]
        if unknown:
            raise ValueError(f"{value.name}: no range for the dimension {unknown[0]}")
        if any(isinstance(size, str) for size in sizes):
            least, usual, most = (
                tuple(dims[size][n] if isinstance(size, str) else int(size) for size in sizes)
                for n in range(3)
            )
            shapes[value.name] = (least, usual, most)
    return shapes


class PlanBuilder:
    """Builds plans one after another with one timing cache.

    library: `tensorrt()`, or another module with its interface; prepare: gets each builder's configuration
    before it is used, for what only that library has.
    """

    def __init__(
        self, library: Any, limits: Limits, prepare: Callable[[Any], None] = lambda config: None
    ) -> None:
        self._trt = library
        self._limits = limits
        self._prepare = prepare
        self._logger = _logger(library)

    @property
    def version(self) -> str:
        return str(self._trt.__version__)

    def build(self, network: Path, plan: Path, profiles: Sequence[Dims], progress: Progress) -> None:
        """Writes the plan of an ONNX file, with an optimisation profile for each of `profiles`.

        Raises `PlanFailed`, which names the node and the operator that TensorRT refuses.
        """
        trt, self._logger.last = self._trt, ""
        builder = trt.Builder(self._logger)
        typed = 1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED)  # its value is not everywhere 1
        definition = builder.create_network(typed)
        self._parse(definition, network)
        config = builder.create_builder_config()
        # What is float32 in the graph is so for its precision: not rounded to the 10 bits of TF32.
        config.clear_flag(trt.BuilderFlag.TF32)
        config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED  # the layer report names tactics
        if self._limits.workspace_mb:
            size = self._limits.workspace_mb * 1_000_000
            config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, size)
        self._prepare(config)
        for dims in profiles:
            shapes = builder.create_optimization_profile()
            for name, (least, usual, most) in profile(network, dims).items():
                shapes.set_shape(name, least, usual, most)
            if config.add_optimization_profile(shapes) < 0:
                raise PlanFailed(f"{network.name}: TensorRT refuses the shapes {dict(dims)}")
        self._read_timings(config)
        phases = Phases(network.stem, progress)
        config.progress_monitor = _monitor(trt, phases)
        serialized = stoppable(lambda: builder.build_serialized_network(definition, config), phases)
        if phases.failure is not None:
            raise phases.failure
        if serialized is None:
            raise PlanFailed(f"{network.name}: TensorRT {self.version}: {self._logger.last or 'no plan'}")
        plan.write_bytes(memoryview(serialized))
        self._write_timings(config)

    def layers(self, plan: Path) -> str:
        """The engine inspector's report of a plan that was just built, as JSON. Raises `PlanFailed`."""
        runtime = self._trt.Runtime(self._logger)
        engine = runtime.deserialize_cuda_engine(plan.read_bytes())
        if engine is None:
            raise PlanFailed(f"{plan.name}: cannot be loaded: {self._logger.last}")
        inspector = engine.create_engine_inspector()
        return str(inspector.get_engine_information(self._trt.LayerInformationFormat.JSON))

    def _parse(self, definition: Any, network: Path) -> None:
        parser = self._trt.OnnxParser(definition, self._logger)
        if parser.parse_from_file(str(network)):
            return
        told = [_told(parser.get_error(n)) for n in range(parser.num_errors)]
        raise PlanFailed(
            f"{network.name}: TensorRT {self.version} cannot parse it: "
            f"{'; '.join(told) or self._logger.last or 'no reason given'}"
        )

    def _read_timings(self, config: Any) -> None:
        path = self._limits.timing_cache
        if path is None:
            return
        try:
            kept = path.read_bytes() if path.exists() else b""
        except OSError as error:
            log.info("%s: timings cannot be read, measured anew: %s", path, error)
            kept = b""
        if not _timings(config, kept):
            log.info("%s: timings of another GPU or version, measured anew", path)
            _timings(config, b"")

    def _write_timings(self, config: Any) -> None:
        path = self._limits.timing_cache
        cache = config.get_timing_cache() if path is not None else None
        if path is None or cache is None:
            return
        unfinished = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            unfinished.write_bytes(memoryview(cache.serialize()))
            unfinished.replace(path)
        except (OSError, TypeError) as error:  # TypeError: there was nothing to serialise
            log.info("%s: timings cannot be kept, the next build measures them again: %s", path, error)
            with suppress(OSError):
                unfinished.unlink(missing_ok=True)


def _timings(config: Any, kept: bytes) -> bool:
    """Whether TensorRT takes them."""
    cache = config.create_timing_cache(kept)  # None where it makes nothing of them
    return cache is not None and bool(config.set_timing_cache(cache, False))


def _told(error: Any) -> str:
    """What the parser says of a node, on one line."""
    node = f"node {error.node_name() or error.node()} (operator {error.node_operator()})"
    return f"{node}: {error.code().name}, {' '.join(str(error.desc()).split())[:300]}"


@functools.cache
def _logger(trt: Any) -> Any:
    """For TensorRT that of the engines, which run in this process, too; another library has its own."""
    if trt.__name__ == "tensorrt":
        from edged.engine import trt_runtime

        shared = trt_runtime.logger()
        shared.quiet = True
        return shared

    class Logger(trt.ILogger):  # type: ignore[misc]  # a class of an untyped, optional package
        """TensorRT's messages in our log; `last` is the latest error, which its calls do not give."""

        def __init__(self) -> None:
            super().__init__()
            self.last = ""

        def log(self, severity: Any, message: str) -> None:
            if severity in (trt.ILogger.Severity.INTERNAL_ERROR, trt.ILogger.Severity.ERROR):
                self.last = " ".join(message.split())[:400]
            if severity != trt.ILogger.Severity.VERBOSE:
                log.debug("TensorRT: %s", message)

    return Logger()


def _monitor(trt: Any, phases: Phases) -> Any:
    class Monitor(trt.IProgressMonitor):  # type: ignore[misc]
        """Hands TensorRT's reports on."""

        def phase_start(self, phase_name: str, parent_phase: str | None, num_steps: int) -> None:
            phases.start(phase_name, parent_phase, num_steps)

        def step_complete(self, phase_name: str, step: int) -> bool:
            return phases.step(phase_name, step)

        def phase_finish(self, phase_name: str) -> None:
            phases.finish(phase_name)

    return Monitor()
