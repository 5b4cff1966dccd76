"""What the versions in a bundle store are called: NAME-VERSION-HASH. Leaf of `store`, without a thread."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from edged.errors import BundleMissing
from edged.manifest import MANIFEST, read_manifest

HASH_DIGITS = 12
LONGEST_VERSION = 32  # characters of it in the name
_VERSIONED = re.compile(rf"([a-z0-9][a-z0-9._-]*?)-([A-Za-z0-9.+_]{{1,32}})-([0-9a-f]{{{HASH_DIGITS}}})")


@dataclass(frozen=True, slots=True)
class Version:
    """An installed version. role: current, previous or empty."""

    path: Path
    name: str
    version: str
    role: str


def folder_name(path: Path) -> str:
    """The name for the bundle in a folder; the hash is the beginning of its manifest's SHA-256."""
    manifest = read_manifest(path)
    digest = hashlib.sha256((path / MANIFEST).read_bytes()).hexdigest()[:HASH_DIGITS]
    version = re.sub(r"[^A-Za-z0-9.+_]", "_", manifest.version)[:LONGEST_VERSION]
    return f"{manifest.name}-{version}-{digest}"


def parts(folder: str) -> tuple[str, str] | None:
    """Name and version of the bundle in a folder of the store; None for a folder of another kind."""
    match = _VERSIONED.fullmatch(folder)
    return (match[1], match[2]) if match else None


def chosen(versions: Sequence[Version], wanted: str) -> Version:
    """A version by its folder's name, by the beginning of one, or the only unused one of a bundle. Raises
    `BundleMissing` when there is none, or when several fit."""
    mine = [v for v in versions if v.name == wanted]
    fit = [v for v in versions if v.path.name.startswith(wanted)]
    for choice in ([v for v in fit if v.path.name == wanted], [v for v in mine if not v.role], mine, fit):
        if len(choice) == 1:
            return choice[0]
    several = ", ".join(v.path.name for v in mine or fit)
    if several:
        raise BundleMissing(f"{wanted!r} can be several versions", f"name one of: {several}")
    known = ", ".join(v.path.name for v in versions) or "none"
    raise BundleMissing(
        f"no version {wanted!r} is installed",
        f"installed: {known}; put one there with: edged bundle install ARCHIVE_OR_DIR",
    )
