"""Chooses the engine class for a backend. Loading thread only; neighbours: voices above, `ort.py` below."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from edged import settings
from edged.engine.api import Engine, TensorSpec
from edged.engine.buffers import Arena
from edged.errors import BundleBackendMismatch

BACKENDS = ("onnxruntime",)


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
    """Loads a network and allocates its buffers. `name` (default: the file's stem) prefixes them."""
    require(backend, path.name)
    from edged.engine.ort import OrtEngine  # 60 ms of import that `edged status` need not pay

    arena.weights(name or path.stem, weights_bytes(path))
    return OrtEngine(
        path,
        inputs,
        outputs,
        arena,
        name=name or path.stem,
        threads=threads(config.threads),
        spinning=config.spinning,
    )


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
