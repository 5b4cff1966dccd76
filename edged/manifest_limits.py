"""What the limits of a voice family must fit: the tensors that its voices fill. No thread of its own.

Neighbour: `manifest.py` calls it when a manifest is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from edged.errors import BundleManifestInvalid

# What each limit of a family must fit, as its voices fill the tensors: engine, tensor, axis, and how much of
# the limit one element holds. A limit above a tensor would fail on the first long sentence, not at start.
_FITTING: dict[str, dict[str, tuple[tuple[str, str, int, int], ...]]] = {
    "tone": {
        "max_symbols": (("tone", "symbols", 1, 1),),
        "max_frames": (("tone", "index", 1, 1), ("tone", "offset", 1, 1), ("tone", "samples", 1, 1)),
        "max_batch": tuple(
            ("tone", name, 0, 1) for name in ("symbols", "index", "offset", "span", "samples")
        ),
    },
    "hibari": {
        "max_symbols": (
            ("encoder", "ids", 1, 1),
            ("encoder", "text", 2, 1),
            ("encoder", "prosody", 2, 1),
            ("encoder", "durations", 0, 1),
            ("decoder", "text", 2, 1),
            ("decoder", "prosody", 2, 1),
        ),
        "max_frames": (
            ("decoder", "index", 0, 2),  # a step is two frames
            ("decoder", "spectra", 1, 1),
            ("decoder", "f0", 1, 1),
        ),
        "max_letters": (("oov", "chars", 1, 1),),
    },
}


def check_limits(
    file: Path, family: str, limits: Mapping[str, int], shapes: Mapping[tuple[str, str], tuple[int, ...]]
) -> None:
    """shapes: by engine and tensor. Raises `BundleManifestInvalid` with the name of the file."""
    for limit, places in _FITTING.get(family, {}).items():
        value = limits.get(limit)
        if value is None:
            raise BundleManifestInvalid(f"{file}: the limit {limit} is missing")
        for engine, tensor, axis, each in places:
            shape = shapes.get((engine, tensor), ())
            if axis >= len(shape):
                raise BundleManifestInvalid(f"{file}: {engine}.{tensor} is missing or of the wrong shape")
            if value > shape[axis] * each:
                raise BundleManifestInvalid(
                    f"{file}: the limit {limit} is {value}, but {engine}.{tensor} of shape {list(shape)} "
                    f"holds {shape[axis] * each}"
                )
