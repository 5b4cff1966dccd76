"""The contexts of a TensorRT engine: a profile, a stream, activation memory and shapes each.

A run takes the context that has the wanted shapes already, so that steps and pieces of a prompt in turn
cost no rebinding; only where none has, the one that was not used for longest is bound anew. Engine thread.
Neighbours: `trt.py` runs them, `trt_runtime.py` has the native calls, `cuda_graph.py` records steps.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from contextlib import ExitStack, suppress

from edged.engine.api import Shape
from edged.engine.cuda import Device
from edged.engine.cuda_graph import StepGraphs
from edged.engine.trt_runtime import NativeContext, NativeEngine, PlanTensor
from edged.errors import EdgedError, ShapeExceeded


class Context:
    """key: what is bound to it; fresh: bound since its last run; used: when that was."""

    def __init__(
        self, native: NativeEngine, profile: int, device: Device, address: int, graphs: bool, first: int
    ) -> None:
        """first: its place among the contexts, the order of use at the start."""
        self.profile = profile
        self.stream = device.stream()
        self._done = device.event()
        self._native: NativeContext = native.context(profile, self.stream.handle, address)
        self.stream.synchronize()  # a profile is chosen in the stream
        self._graphs = StepGraphs(self.stream, graphs)
        self.key: Hashable = None
        self.fresh = True
        self.used = first
        self._shapes: dict[str, Shape] = {}
        self._addresses: dict[str, int] = {}

    def bind(self, key: Hashable, shapes: dict[str, Shape], addresses: dict[str, int]) -> None:
        """Tells TensorRT what differs from before. Raises `EngineError`."""
        self.key, self.fresh = None, True
        self._graphs.forget()  # what was recorded of other shapes and addresses is void
        for name, shape in shapes.items():
            if self._shapes.get(name) != shape:
                self._native.shape(name, shape)
                self._shapes[name] = shape
        for name, address in addresses.items():
            if self._addresses.get(name) != address:
                self._native.address(name, address)
                self._addresses[name] = address
        self.key = key

    def output_shape(self, name: str) -> Shape:
        return self._native.output_shape(name)

    def execute(self) -> None:
        self._native.execute(self.stream.handle)

    def run(self, work: Callable[[], None]) -> None:
        """Puts the work into the stream and waits for its end, without spinning. Raises `EngineError`."""
        try:
            # Right after binding TensorRT puts work of its own into the stream that must not be recorded.
            if self.fresh:
                work()
            else:
                self._graphs.run(self.key, work)
            self._done.record(self.stream)
            self._done.wait()
        except BaseException:
            self.key = None  # whatever it holds now, the next run binds anew
            raise
        self.fresh = False

    def close(self) -> None:
        """All of it, whatever fails. Raises `EngineError`."""
        with ExitStack() as rest:  # from the last line to the first
            rest.callback(self._native.close)
            for _ in range(max(1, self._graphs.recorded)):  # a call that fails has taken one away
                rest.callback(self._graphs.close)
            with suppress(EdgedError):  # what failed before fails again
                self.stream.synchronize()


def recordable(tensors: Sequence[PlanTensor], profile: int) -> bool:
    """Whether a profile has few shapes, such as those of a step, so that each is worth recording: only the
    rows vary. What the host decides at every run cannot be recorded."""
    inputs = [tensor for tensor in tensors if not tensor.output]
    if any(tensor.host for tensor in inputs):
        return False
    return all(least[1:] == most[1:] for tensor in inputs for least, most in (tensor.ranges[profile],))


def profile_of(name: str, tensors: Sequence[PlanTensor], shapes: dict[str, Shape]) -> int:
    """The last profile that takes the shapes of all inputs, as steps come after prompts.

    Raises `ShapeExceeded`.
    """
    inputs = [tensor for tensor in tensors if not tensor.output]
    for profile in reversed(range(len(inputs[0].ranges))):
        if all(_within(shapes[tensor.name], *tensor.ranges[profile]) for tensor in inputs):
            return profile
    raise ShapeExceeded(f"{name}: no profile of its plan takes {list(shapes[inputs[0].name])}")


def _within(shape: Shape, least: Shape, most: Shape) -> bool:
    return len(shape) == len(least) and all(
        low <= n <= high for low, n, high in zip(least, shape, most, strict=True)
    )
