"""Checks of the Python packages that voices for TensorRT need. Main thread.

TensorRT is not imported, as without a driver its first use ends the process; pycuda is, which loads the
driver's library and does not begin with it. Neighbours: `findings` runs them, `machine` looks for the GPU.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress

import msgspec

from edged.bundle import MANIFEST, find
from edged.doctor.findings import Case, Finding, State
from edged.doctor.machine import installed
from edged.doctor.setup import speaks_instead
from edged.engine import cuda, preflight
from edged.errors import BundleError, EdgedError, MissingExtra
from edged.paths import bundle_directories
from edged.settings import Settings

OLDEST, FIRST_UNKNOWN = (10, 3), (12,)


class _Backend(msgspec.Struct):
    backend: str = ""


def wanted(settings: Settings) -> list[str]:
    """Configured bundles that are for TensorRT, by what their manifests say, which may be wrong otherwise."""
    names = []
    for name in settings.voices.bundles:
        with suppress(BundleError, OSError, msgspec.DecodeError):
            manifest = find(name, bundle_directories(settings.voices.directory)) / MANIFEST
            if msgspec.json.decode(manifest.read_bytes(), type=_Backend).backend == "tensorrt":
                names.append(name)
    return names


def packages(case: Case) -> Iterator[Finding]:
    """TensorRT and pycuda, where a configured bundle needs them. With a fallback it speaks without."""
    names = wanted(case.settings)
    if not names:
        return
    purpose = f"the voice bundle {names[0]}"
    missing: State = "warning" if speaks_instead(case.settings) else "failed"
    version = preflight.tensorrt_version()
    if not version:
        yield Finding.of("TensorRT", MissingExtra("tensorrt", "tensorrt", purpose), missing)
    elif not OLDEST <= _numbers(version) < FIRST_UNKNOWN:
        remedy = "install TensorRT 10.3 to 11 (JetPack 6 and 7 bring one of them)"
        yield Finding("TensorRT", "warning", f"{version} was never tried with this version", remedy)
    else:
        yield Finding("TensorRT", "ok", version)
    try:
        cuda.binding()
    except EdgedError as error:
        yield Finding.of("pycuda", error, missing)
    else:
        yield Finding("pycuda", "ok", installed(("pycuda",))["pycuda"] or "of unknown version")


def _numbers(version: str) -> tuple[int, ...]:
    """(10, 3, 0) of 10.3.0.post1."""
    leading = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(number) for number in leading[0].split(".")) if leading else ()
