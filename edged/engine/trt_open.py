"""Opens the TensorRT engines of a bundle: all plans first, then one allocation for the rest.

Loading thread, after `preflight`. Whatever fails, nothing is left on the device. Neighbours: `select.py`
calls it; `trt.py` is what comes out, `trt_check.py` holds plans against the manifest.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass

from edged import settings
from edged.engine import trt_check
from edged.engine.api import TensorSpec
from edged.engine.buffers import Arena
from edged.engine.cuda import Device
from edged.engine.device_memory import DeviceMemory, aligned
from edged.engine.failures import let_go
from edged.engine.plan import PlanRow
from edged.engine.plugins import load_plugin
from edged.engine.request import Request
from edged.engine.trt import TrtEngine
from edged.engine.trt_allocator import CountingAllocator
from edged.engine.trt_context import Context, recordable
from edged.engine.trt_rig import Rig
from edged.engine.trt_runtime import VERSION, NativeEngine, Runtime
from edged.engine.trt_tensors import Packed, Piece, carve, piece_bytes
from edged.errors import EdgedError

log = logging.getLogger("edged.engine")
SPARE = 64 << 20  # bytes of device memory that further contexts leave to others


@dataclass(frozen=True, slots=True)
class _Loaded:
    """A plan that fits its manifest. profiles: of the contexts it gets, in the order of their making."""

    request: Request
    native: NativeEngine
    resident: list[TensorSpec]
    packed: tuple[Packed, Packed]
    profiles: list[int]
    weights: int  # bytes

    @property
    def carved(self) -> int:
        """Bytes on the device, without those of what the host sees as well."""
        own = [spec for spec in (*self.resident, *self.request.work) if not spec.alias]
        activations = (aligned(self.native.activations[profile]) for profile in self.profiles)
        return sum(piece_bytes(spec) for spec in own) + sum(activations)

    @property
    def mirrored(self) -> int:
        return sum(packed.nbytes for packed in self.packed)


def open_engines(requests: Sequence[Request], arena: Arena, config: settings.Engine) -> list[TrtEngine]:
    """In the order of the requests. Raises `EngineError`."""
    device = Device()
    try:
        device.use()
        return _open(requests, arena, config, device)
    except BaseException:
        with suppress(EdgedError):
            device.close()
        raise


def _open(
    requests: Sequence[Request], arena: Arena, config: settings.Engine, device: Device
) -> list[TrtEngine]:
    rig = Rig(device, Runtime(CountingAllocator(device)))
    loaded: list[_Loaded] = []
    contexts: list[list[Context]] = []
    try:
        for request in requests:
            loaded.append(_load(request, rig.runtime))
        _more_contexts(loaded, device, config)
        carved, mirrored = (sum(getattr(one, part) for one in loaded) for part in ("carved", "mirrored"))
        rig.memory = DeviceMemory(device, carved, mirrored)
        for one in loaded:
            contexts.append([])
            _contexts(one, rig.memory, device, config, contexts[-1])
        engines = [_engine(one, made, rig, arena) for one, made in zip(loaded, contexts, strict=True)]
        rig.memory.seal()
    except BaseException as error:
        let_go(error)
        with suppress(EdgedError), ExitStack() as rest:  # the first error counts
            rest.callback(rig.close)
            for one in loaded:
                rest.callback(one.native.close)
            for context in (each for made in contexts for each in made):
                rest.callback(context.close)
        raise
    rig.users = len(engines)
    arena.when_sealed(rig.runtime.allocator.ready)
    for context in (each for made in contexts for each in made):
        arena.when_sealed(context.seal)
    log.info(
        "TensorRT %s on %s: %.1f MB of weights, %.1f MB of tensors and activations, %.1f MB page-locked",
        VERSION,
        device.name,
        rig.runtime.allocator.nbytes / 1e6,
        rig.memory.device_bytes / 1e6,
        rig.memory.pinned_bytes / 1e6,
    )
    return engines


def _load(request: Request, runtime: Runtime) -> _Loaded:
    if request.plugin is not None:
        load_plugin(request.plugin)
    before = runtime.allocator.nbytes
    native = runtime.load(request.path)
    try:
        trt_check.check(request, native)
        everything = (*request.inputs, *request.outputs)
        resident = [spec for spec in everything if spec.name in request.resident]
        seen = [spec for spec in everything if spec.name not in request.resident]
        names = {spec.name for spec in request.inputs}
        packed = (
            Packed([spec for spec in seen if spec.name in names]),
            Packed([spec for spec in seen if spec.name not in names]),
        )
        weights = runtime.allocator.nbytes - before
        return _Loaded(request, native, resident, packed, list(range(native.profiles)), weights)
    except BaseException:
        native.close()
        raise


def _more_contexts(loaded: Sequence[_Loaded], device: Device, config: settings.Engine) -> None:
    """As many of the last profile, that of steps, as are wanted and fit; one at least of every profile."""
    room = device.memory()[0] - SPARE - sum(one.carved + one.mirrored for one in loaded)
    for one in loaded:
        wanted = config.contexts or one.request.slots or max(1, len(os.sched_getaffinity(0)) // 2)
        each = aligned(one.native.activations[-1])
        last = one.native.profiles - 1
        while one.profiles.count(last) < wanted and each <= room:
            one.profiles.append(last)
            room -= each
        made = one.profiles.count(last)
        told = "" if made >= wanted else f" of {wanted} wanted, memory is short"
        log.info("%s: %d contexts%s", one.request.name, made, told)


def _contexts(
    one: _Loaded, memory: DeviceMemory, device: Device, config: settings.Engine, made: list[Context]
) -> None:
    """Steps of each number of rows are recorded in a context of their own; where there are fewer than slots,
    one is left for all other steps, so that no recording is lost for one of them."""
    last = one.native.profiles - 1
    few = one.profiles.count(last) < one.request.slots
    for profile in one.profiles:
        nbytes = one.native.activations[profile]
        address = memory.carve(nbytes) if nbytes else 0
        spare = few and profile == last and not any(each.profile == last for each in made)
        graphs = config.cuda_graphs and not spare and recordable(one.native.tensors, profile)
        made.append(Context(one.native, profile, device, address, graphs, len(made)))


def _engine(one: _Loaded, contexts: list[Context], rig: Rig, arena: Arena) -> TrtEngine:
    memory, request = rig.memory, one.request
    assert memory is not None
    pieces: dict[str, Piece] = {}
    for spec in one.resident:
        shared = pieces.get(spec.alias)
        pieces[spec.name] = Piece(spec, shared.address, shared.pitch) if shared else carve(memory, spec)
    work = {spec.name: carve(memory, spec) for spec in request.work}
    for row in _rows(one):
        arena.note(row)
    for packed in one.packed:
        packed.place(memory)
    return TrtEngine(
        request.name,
        {spec.name: spec for spec in request.inputs},
        {spec.name: spec for spec in request.outputs},
        one.native,
        contexts,
        pieces,
        work,
        one.packed,
        rig,
        arena,
    )


def _rows(one: _Loaded) -> list[PlanRow]:
    """What it has on the device, and of the host page-locked."""
    owner = one.request.name
    activations = sum(aligned(one.native.activations[profile]) for profile in one.profiles)
    rows = [
        PlanRow(f"{owner}.{spec.name}", spec.shape, spec.dtype, piece_bytes(spec) / 1e6, "device")
        for spec in (*one.resident, *one.request.work)
        if not spec.alias
    ]
    parts = (("weights", one.weights), ("activations", activations), ("mirror", one.mirrored))
    rows += [PlanRow(f"{owner}.{name}", (n,), "uint8", n / 1e6, "device") for name, n in parts]
    return [*rows, PlanRow(f"{owner}.pinned", (one.mirrored,), "uint8", one.mirrored / 1e6)]
