"""The bundle compiler: makes voice bundles. Imported by the CLI only, never by the running daemon.

`build` is the entry; one module per family. Neighbours: `bundle_write.py` puts the files in place,
`voices/golden.py` records how the finished voice sounds.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, get_type_hints

import msgspec

from edged.bundle import FAMILIES
from edged.compiler.parts import Progress, silent
from edged.errors import BadValue, BundleFamilyUnknown, did_you_mean
from edged.words import describe


def build(family: str, out: Path, progress: Progress = silent, **options: Any) -> Path:
    """Builds a bundle of a family into the folder `out` and returns it. Options are the family's own.

    Raises `MissingExtra` when a package for it is absent, `BundleError` when it cannot be written, and
    what `check` raises.
    """
    check(family, options)
    return _builder(family)(out, progress, **options)


def check(family: str, options: Mapping[str, Any]) -> None:
    """Raises `BundleFamilyUnknown`, or `BadValue` for an option that the family does not have or take."""
    builder = _builder(family)
    parameters = inspect.signature(builder).parameters.values()
    known = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
    types = get_type_hints(builder, include_extras=True)
    for name, value in options.items():
        if name not in known:
            hint = did_you_mean(name, known) or f"the options are: {', '.join(known)}"
            raise BadValue(f"a bundle of family {family} has no option {name!r}", hint)
        if isinstance(value, Path):
            value = str(value)
        try:
            msgspec.convert(value, types[name])
        except msgspec.ValidationError:
            raise BadValue(f"{name}: expected {describe(types[name], name)}, got {value!r}", "") from None


def _builder(family: str) -> Callable[..., Path]:
    if family == "tone":
        from edged.compiler.tone import build as build_tone

        return build_tone
    if family == "hibari":
        from edged.compiler.hibari import build as build_hibari

        return build_hibari
    if family == "chattts":
        from edged.compiler.chattts.build import build as build_chattts

        return build_chattts
    known = f"the families are: {', '.join(FAMILIES)}"
    guess = did_you_mean(family, FAMILIES)
    raise BundleFamilyUnknown(f"no voice family {family!r}", f"{guess} {known}" if guess else known)
