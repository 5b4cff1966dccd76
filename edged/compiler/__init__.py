"""The bundle compiler: makes voice bundles. Imported by the CLI only, never by the running daemon.

`build` is the entry; one module per family. Neighbours: `bundle_write.py` puts the files in place,
`voices/golden.py` records how the finished voice sounds.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from edged.bundle import FAMILIES
from edged.compiler.parts import Progress
from edged.errors import BundleFamilyUnknown, did_you_mean


def silent(phase: str, fraction: float) -> None:
    """A progress callback that tells nobody."""


def build(family: str, out: Path, progress: Progress = silent, **options: Any) -> Path:
    """Builds a bundle of a family into the folder `out` and returns it. Options are the family's own.

    Raises `MissingExtra` when a package for it is absent, `BundleError` when it cannot be written.
    """
    if family == "tone":
        from edged.compiler.tone import build as build_tone

        return build_tone(out, progress, **options)
    if family == "hibari":
        from edged.compiler.hibari import build as build_hibari

        return build_hibari(out, progress, **options)
    raise BundleFamilyUnknown(f"no voice family {family!r}", did_you_mean(family, FAMILIES))
