"""Chooses the engine class for a backend, and the native decoder where a bundle has one for this processor.

Loading thread only; neighbours: voices above, `ort.py`, `decoder.py` and `trt.py` below.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path

from edged import native, settings
from edged.engine.api import Engine, TensorSpec
from edged.engine.buffers import Arena
from edged.engine.failures import UNLOADABLE, unloadable
from edged.engine.request import Decoder, Request
from edged.errors import BundleBackendMismatch, EngineError
from edged.log import event as log_event

log = logging.getLogger("edged.engine")
TENSORRT = "tensorrt"
BACKENDS = ("onnxruntime", TENSORRT)


def threads(wanted: int) -> int:
    """0 means one thread a core, at most two: a third gains little on a one-pass voice."""
    return wanted or min(2, len(os.sched_getaffinity(0)))


def load(
    path: Path,
    backend: str,
    inputs: Sequence[TensorSpec],
    outputs: Sequence[TensorSpec],
    arena: Arena,
    config: settings.Engine,
    *,
    name: str = "",
) -> Engine:
    """Loads one network and allocates its buffers. `name` (default: the file's stem) prefixes them."""
    request = Request(name or path.stem, path, inputs, outputs)
    return open_engines([request], backend, arena, config)[0]


def open_engines(
    requests: Sequence[Request], backend: str, arena: Arena, config: settings.Engine
) -> list[Engine]:
    """All engines of a bundle, in order: a device must know the sizes of all before it allocates once.

    Raises `EngineError` or `BundleBackendMismatch`, and then leaves nothing open.
    """
    for request in requests:
        require(backend, request.path.name)
    if backend == TENSORRT:  # `preflight` has found what native code will need
        try:
            from edged.engine.trt_open import open_engines as open_on_device
        except UNLOADABLE as error:  # a package without its module, or that without its libraries
            raise unloadable(error) from error

        return list(open_on_device(requests, arena, config))
    for request in requests:
        arena.weights(request.name, weights_bytes(request.path))
    opened: list[Engine] = []
    try:
        for request in requests:
            opened.append(_open(request, arena, config))
    except BaseException:
        for engine in reversed(opened):
            engine.close()
        raise
    return opened


def _open(request: Request, arena: Arena, config: settings.Engine) -> Engine:
    if request.decoder is not None and config.native:
        found = _decoder(request.decoder, request.inputs, request.outputs, arena, config, request.name)
        if found:
            return found
    from edged.engine.ort import OrtEngine  # 60 ms of import that `edged status` need not pay

    return OrtEngine(
        request.path,
        request.inputs,
        request.outputs,
        arena,
        name=request.name,
        threads=threads(config.threads),
        spinning=config.spinning,
    )


def _decoder(
    files: Decoder,
    inputs: Sequence[TensorSpec],
    outputs: Sequence[TensorSpec],
    arena: Arena,
    config: settings.Engine,
    name: str,
) -> Engine | None:
    level = native.best(files.libraries.keys())
    if not level:
        log.info("%s: no native decoder for this processor, ONNX Runtime is used", name)
        return None
    from edged.engine.decoder import DecoderEngine, open_library

    try:
        library = open_library(files.libraries[level])
    except EngineError as error:  # as one built for a newer C library
        text = f"{name}: ONNX Runtime is used, at about half the speed: {error}"
        log_event(log, logging.WARNING, text, code="native_unusable")
        return None
    engine = DecoderEngine(
        library,
        files.index,
        files.weights,
        inputs,
        outputs,
        arena,
        name=name,
        threads=threads(config.threads),
        huge_pages=config.huge_pages,
    )
    log.info("%s: native decoder %s", name, level)
    return engine


def weights_bytes(path: Path) -> int:
    """The size of a network's file and of the file of its weights beside it, as far as they are there."""
    files = (path, path.with_name(f"{path.name}.data"))
    return sum(file.stat().st_size for file in files if file.is_file())


def require(backend: str, what: str) -> None:
    """Refuses a backend that this version cannot run."""
    if backend not in BACKENDS:
        raise BundleBackendMismatch(
            f"{what} is built for {backend!r}; this version of edged runs {', '.join(BACKENDS)} only"
        )
