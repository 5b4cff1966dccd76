"""Chooses the engine class for a backend, and the native decoder where a bundle has one for this processor.

Loading thread only; neighbours: voices above, `ort.py` and `decoder.py` below.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from edged import native, settings
from edged.engine.api import Engine, TensorSpec
from edged.engine.buffers import Arena
from edged.errors import BundleBackendMismatch, EngineError
from edged.log import event as log_event

log = logging.getLogger("edged.engine")
TENSORRT = "tensorrt"
BACKENDS = ("onnxruntime", TENSORRT)


@dataclass(frozen=True, slots=True)
class Decoder:
    """The files of a native decoder. libraries: by the name of their level, see `edged.native`."""

    index: Path
    weights: Path
    libraries: Mapping[str, Path]


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
    decoder: Decoder | None = None,
) -> Engine:
    """Loads a network and allocates its buffers. `name` (default: the file's stem) prefixes them.

    decoder: what can run instead of the network, where the processor and the settings allow it.
    """
    require(backend, path.name)
    if backend == TENSORRT:
        raise BundleBackendMismatch(f"{path.name}: this version of edged checks TensorRT bundles only")
    arena.weights(name or path.stem, weights_bytes(path))
    found = decoder and config.native and _decoder(decoder, inputs, outputs, arena, config, name or path.stem)
    if found:
        return found
    from edged.engine.ort import OrtEngine  # 60 ms of import that `edged status` need not pay

    return OrtEngine(
        path,
        inputs,
        outputs,
        arena,
        name=name or path.stem,
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
