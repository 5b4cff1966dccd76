"""A plan held against the manifest before it is used: a wrong address or shape would corrupt memory.

Loading thread; pure. Neighbours: `trt_open.py` calls it, `trt_runtime.py` reads the plan.
"""

from __future__ import annotations

from edged.engine.api import TensorSpec
from edged.engine.request import Request
from edged.engine.trt_runtime import NativeEngine, PlanTensor
from edged.errors import EngineError

_REBUILD = "rebuild the bundle on this machine: edged bundle build ... --backend tensorrt"


def check(request: Request, native: NativeEngine) -> None:
    """Names, directions, types, shapes, and how far the profiles reach. Raises `EngineError`."""
    path = request.path
    found = {tensor.name: tensor for tensor in native.tensors}
    inputs = {spec.name for spec in request.inputs}
    declared = {spec.name: spec for spec in (*request.inputs, *request.outputs)}
    if set(found) != set(declared):
        raise EngineError(
            f"{path}: has tensors {sorted(found)}, its manifest says {sorted(declared)}", _REBUILD
        )
    for name, spec in declared.items():
        tensor = found[name]
        if tensor.output is (name in inputs) or tensor.dtype != spec.dtype or not _fits(tensor, spec):
            kind = "output" if tensor.output else "input"
            raise EngineError(
                f"{path}: {kind} {name!r} is {tensor.dtype}{list(tensor.shape)}, its manifest says "
                f"{'input' if name in inputs else 'output'} {spec.dtype}{list(spec.shape)}",
                _REBUILD,
            )
        _reached(request, tensor, spec)
        _placed(request, tensor, spec)


def _fits(tensor: PlanTensor, spec: TensorSpec) -> bool:
    if len(tensor.shape) != len(spec.shape):
        return False
    return all(n in (-1, most) for n, most in zip(tensor.shape, spec.shape, strict=True))


def _reached(request: Request, tensor: PlanTensor, spec: TensorSpec) -> None:
    if tensor.output:
        return
    for axis, most in enumerate(spec.shape):
        if axis == 0 and spec.name in request.resident:
            continue  # its rows may be used one by one
        reach = max((largest[axis] for _, largest in tensor.ranges), default=0)
        if reach < most:
            raise EngineError(
                f"{request.path}: its profiles take {tensor.name!r} up to {reach} in dimension {axis}, "
                f"its manifest says {most}",
                _REBUILD,
            )


def _placed(request: Request, tensor: PlanTensor, spec: TensorSpec) -> None:
    resident = spec.name in request.resident
    if tensor.host and (tensor.output or resident):
        raise EngineError(f"{request.path}: {tensor.name!r} must lie on the device, but does not", _REBUILD)
    if spec.alias and not (resident and spec.alias in request.resident):
        raise EngineError(f"{request.path}: {tensor.name!r} is written in place, but does not stay there")
