"""The contexts of a TensorRT engine: a profile, a stream, activation memory and shapes each.

A run takes the context that has the wanted shapes already, so that steps and pieces of a prompt in turn
cost no rebinding. Where none has, one is bound anew: one without recorded steps before any that has some,
and of these the one that was not used for longest. Loading thread until READY, then the engine thread.
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
    """key: what is bound to it; fresh: its next run is the first one with that; used: when it last ran;
    records: whether its runs may be recorded."""

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
        self.records = graphs
        self.key: Hashable = None
        self.fresh = True
        self.used = first
        self._shapes: dict[str, Shape] = {}
        self._addresses: dict[str, int] = {}

    def bind(self, key: Hashable, shapes: dict[str, Shape], addresses: dict[str, int]) -> None:
        """Tells TensorRT what differs from before. Raises `EngineError`."""
        self.key = None
        other_shapes = {name: shape for name, shape in shapes.items() if self._shapes.get(name) != shape}
        moved = {name: at for name, at in addresses.items() if self._addresses.get(name) != at}
        if other_shapes or moved:
            self.fresh = True
            self._graphs.forget()  # what was recorded of other shapes and addresses is void
        for name, shape in other_shapes.items():
            self._native.shape(name, shape)
            self._shapes[name] = shape
        for name, address in moved.items():
            self._native.address(name, address)
            self._addresses[name] = address
        self.key = key

    @property
    def recorded(self) -> bool:
        """Whether there are recordings, which binding something else would cost."""
        return self._graphs.recorded > 0

    def seal(self) -> None:
        """Records no more."""
        self._graphs.seal()

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
            self.fresh = True  # whatever it did, the next run is a plain one
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


def choose(contexts: Sequence[Context], profiles: Sequence[int], key: Hashable) -> Context:
    """The one that has what is wanted, or the one to bind it to. profiles: of these, the last is the best."""
    able = [context for context in contexts if context.profile in profiles]
    return min(
        able,
        key=lambda each: (
            each.key != key,
            each.recorded,
            not each.records,
            -each.profile,
            each.used,
        ),
    )


def profiles_of(name: str, tensors: Sequence[PlanTensor], shapes: dict[str, Shape]) -> list[int]:
    """The profiles that take the shapes of all inputs. Raises `ShapeExceeded` where there is none."""
    inputs = [tensor for tensor in tensors if not tensor.output]
    found = [
        profile
        for profile in range(len(inputs[0].ranges))
        if all(_within(shapes[tensor.name], *tensor.ranges[profile]) for tensor in inputs)
    ]
    if not found:
        raise ShapeExceeded(f"{name}: no profile of its plan takes {list(shapes[inputs[0].name])}")
    return found


def _within(shape: Shape, least: Shape, most: Shape) -> bool:
    return len(shape) == len(least) and all(
        low <= n <= high for low, n, high in zip(least, shape, most, strict=True)
    )
