"""What the versions in a bundle store are called: NAME-VERSION-HASH. Leaf of `store`, without a thread."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

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
