"""TensorRT behind the engine interface: prebuilt plans, one allocation, one wait a run.

`open_engines` runs on the loading thread, everything else on the engine thread. A run packs what the host
wrote into page-locked memory, and puts one upload, the network and one download into the stream of a
context; then it waits for an event. Caches, hidden states and lanes stay on the device. A cache is input and
output at one address: that a plan reads it before it writes there is assumed, and unproven on a GPU. A build
compares 48 steps with ONNX Runtime, and would find a plan that does not. Neighbours:
`trt_runtime.py` has the native calls, `trt_context.py` the contexts, `trt_tensors.py` the addresses,
`trt_rig.py` what engines share.
"""

from __future__ import annotations

from contextlib import ExitStack
from time import thread_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edged.engine.api import Arrays, Lanes, Shape, TensorSpec
from edged.engine.buffers import Arena
from edged.engine.trt_context import Context, choose, profiles_of
from edged.engine.trt_lanes import DeviceLanes
from edged.engine.trt_rig import Rig
from edged.engine.trt_runtime import NativeEngine
from edged.engine.trt_tensors import DeviceTensors, Packed, Piece
from edged.errors import EngineError, ShapeExceeded

_UNSEEN: NDArray[Any] = np.empty(0, np.uint8)


class TrtEngine(DeviceTensors):
    """Implements `Engine`."""

    def __init__(
        self,
        name: str,
        inputs: dict[str, TensorSpec],
        outputs: dict[str, TensorSpec],
        native: NativeEngine,
        contexts: list[Context],
        pieces: dict[str, Piece],
        work: dict[str, Piece],
        packed: tuple[Packed, Packed],
        rig: Rig,
        arena: Arena,
    ) -> None:
        """pieces: the resident tensors; work: what was asked for beside them; packed: inputs and outputs that
        the host sees."""
        self.name = name
        self.inputs = inputs
        self.outputs = outputs
        self.pieces = pieces
        self.resident = frozenset(pieces)
        self._native = native
        self._contexts = contexts
        self._work = work
        self._up, self._down = packed
        self._rig = rig
        self._hosted = {tensor.name for tensor in native.tensors if tensor.host}
        self._cpu_s = arena.cpu_s
        self._cpu_s[name] = 0.0
        seen = [*self._up.specs.values(), *self._down.specs.values()]
        self._buffers = arena.tensors(seen, name)
        self._bound: dict[str, tuple[Shape, int]] = {}
        self._views: dict[str, NDArray[Any]] = {}
        self._addresses = self._packed_addresses()
        self._context: Context | None = None
        self._ups: list[tuple[NDArray[Any], NDArray[Any]]] = []  # (page-locked, ours) of what goes up
        self._downs: list[tuple[NDArray[Any], NDArray[Any]]] = []
        self._span_up = self._span_down = (0, np.empty(0, np.uint8))  # the address, and what is copied
        self._runs = len(contexts)
        for spec in (*inputs.values(), *outputs.values()):
            whole = spec.name not in pieces or pieces[spec.name].pitch == pieces[spec.name].row_bytes
            self.bind(spec.name, spec.shape if whole else (1, *spec.shape[1:]))

    # -- what is bound --------------------------------------------------------------------------

    def bind(self, name: str, shape: Shape, row: int = 0) -> NDArray[Any]:
        if self._bound.get(name) == (shape, row):
            return self._views[name]
        if name in self.pieces:
            self._addresses[name] = self.pieces[name].at(shape, row)
            view = _UNSEEN
        elif name in self._buffers:
            view = self._buffers[name].view(shape, row)
        else:
            raise ShapeExceeded(f"{self.name}: no tensor {name!r}", "this is a fault in the voice")
        self._views[name] = view
        self._bound[name] = (shape, row)
        self._context = None
        return view

    def row(self, name: str, row: int) -> NDArray[Any]:
        if name in self.pieces:
            raise EngineError(f"{self.name}: {name!r} stays on the device", "this is a fault in the voice")
        buffer = self._buffers[name]
        found: NDArray[Any] = buffer.view(buffer.spec.shape)[row]
        return found

    def clear(self, name: str, row: int) -> None:
        if name not in self.pieces:
            self.row(name, row)[...] = 0
            return
        piece = self.pieces[name]
        self._rig.copies.begin().fill(piece.row(row), piece.row_bytes)

    def move(self, name: str, source: int, target: int, count: int) -> None:
        piece = self.piece(name)
        _, heads, positions, width = piece.spec.shape
        step = width * np.dtype(piece.spec.dtype).itemsize
        if source == target or count < 1:
            return
        self._rig.copies.begin().copy_rows(
            piece.row(target), piece.row(source), min(count, positions) * step, heads, positions * step
        )

    def lanes(self, spec: TensorSpec, tensor: str, arena: Arrays, owner: str) -> Lanes:
        rings = self._work.get(spec.name)
        if rings is None or rings.spec != spec:
            raise EngineError(f"{self.name}: was not opened with lanes {spec.name} {list(spec.shape)}")
        return DeviceLanes(self, tensor, self.piece(tensor), rings, self._rig.copies)

    # -- a run ----------------------------------------------------------------------------------

    def run(self) -> None:
        begin = thread_time()
        self._rig.device.use()
        self._rig.copies.rest()
        context = self._context or self._settle()
        try:
            self._rig.copies.before(context.stream)
            for pinned, ours in self._ups:
                pinned[...] = ours
            context.run(self._enqueue)
        except BaseException:
            self._context = None
            self._rig.copies.failed(context.stream)
            raise
        self._rig.copies.done()
        for pinned, ours in self._downs:
            ours[...] = pinned
        self._runs += 1
        context.used = self._runs
        self._cpu_s[self.name] += thread_time() - begin

    def _enqueue(self) -> None:
        context = self._context
        assert context is not None
        (above, source), (below, target) = self._span_up, self._span_down
        if source.size:
            context.stream.upload(above, source)
        context.execute()
        if target.size:
            context.stream.download(target, below)

    def _settle(self) -> Context:
        """Chooses the context for what is bound, and binds it. Raises `EngineError`."""
        shapes = {name: self._bound[name][0] for name in self.inputs}
        profiles = profiles_of(self.name, self._native.tensors, shapes)
        key = tuple(self._bound.values())
        context = choose(self._contexts, profiles, key)
        if context.key != key:
            context.bind(key, shapes, self._addresses)
            self._compare(context)
        self._ups = [(self._up.pinned(n, self._bound[n][0]), self._views[n]) for n in self._up.specs]
        self._downs = [(self._down.pinned(n, self._bound[n][0]), self._views[n]) for n in self._down.specs]
        self._span_up = self._up.span({name: self._bound[name][0] for name in self._up.specs})
        self._span_down = self._down.span({name: self._bound[name][0] for name in self._down.specs})
        self._context = context
        return context

    def _packed_addresses(self) -> dict[str, int]:
        """Of what the host sees: always the same, whatever is bound."""
        found = {name: self._down.address(name) for name in self._down.specs}
        for name in self._up.specs:  # the value of a shape is read by the processor
            found[name] = self._up.host_address(name) if name in self._hosted else self._up.address(name)
        return found

    def _compare(self, context: Context) -> None:
        """What will come out must have the bound shape: more would be written over what lies behind it."""
        for name, spec in self.outputs.items():
            if spec.alias:  # has the shape of an input
                continue
            wanted, found = self._bound[name][0], context.output_shape(name)
            if len(found) != len(wanted) or any(n not in (-1, m) for n, m in zip(found, wanted, strict=True)):
                context.key = None
                raise EngineError(
                    f"{self.name}: {name!r} will be {list(found)}, and {list(wanted)} is bound",
                    "this is a fault in the voice",
                )

    def close(self) -> None:
        if not self._contexts:
            return
        contexts, self._contexts, self._context = self._contexts, [], None
        with ExitStack() as rest:  # all of it whatever fails, from the last line to the first
            rest.callback(self._rig.leave)
            rest.callback(self._buffers.clear)
            rest.callback(self._views.clear)
            rest.callback(self._native.close)
            for context in contexts:
                rest.callback(context.close)
            self._rig.device.use()
