"""The voice bundle: a folder with a manifest, engines and data, checked in full before it is used.

    NAME/manifest.json   format 1, see `manifest.py`
    NAME/engines/*.onnx  networks with the maximum shapes of their tensors; *.plan: compiled by TensorRT
    NAME/data/*          tables of the frontend
    NAME/LICENSE, NOTICE

No thread of its own: read by the loading thread and the CLI. `bundle_write.py` writes bundles. Each
fault has its own error class with a hint, and is found before any large buffer is allocated.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from edged.errors import (
    BundleError,
    BundleFileMissing,
    BundleFileTruncated,
    BundleHashMismatch,
    BundleManifestInvalid,
    BundleMissing,
    BundleNotAPlan,
)
from edged.manifest import (
    FAMILIES,
    FORMAT,
    MANIFEST,
    PLAN,
    EngineFile,
    File,
    Golden,
    Licence,
    Manifest,
    Tensor,
    TensorRT,
    VoiceInfo,
    read_manifest,
)

__all__ = [
    "FAMILIES",
    "FORMAT",
    "MANIFEST",
    "Bundle",
    "EngineFile",
    "File",
    "Golden",
    "Licence",
    "Manifest",
    "Tensor",
    "TensorRT",
    "VoiceInfo",
    "find",
    "installed",
    "read_manifest",
    "sha256",
]


_ONNX_VERSION = 0x08  # first byte of an ONNX file: the field with its version follows


@dataclass(frozen=True, slots=True)
class Bundle:
    """A checked bundle on disk."""

    path: Path
    manifest: Manifest

    @classmethod
    def load(cls, path: Path, verify: bool = True) -> Bundle:
        """Reads and checks a bundle; with `verify` the content of every file is hashed too."""
        manifest = read_manifest(path)
        bundle = cls(path, manifest)
        files = [*manifest.engines, *manifest.data]
        for entry in files:
            bundle._check_size(entry)
        for engine in manifest.engines:
            bundle._check_plan(engine)
        if verify:
            with ThreadPoolExecutor(max_workers=min(4, len(files))) as pool:
                for entry, digest in zip(files, pool.map(bundle._digest, files), strict=True):
                    if digest != entry.sha256:
                        raise BundleHashMismatch(f"{path / entry.file}: the content was changed")
        return bundle

    def engine(self, name: str) -> EngineFile:
        for entry in self.manifest.engines:
            if entry.name == name:
                return entry
        raise BundleManifestInvalid(f"{self.path}: has no engine {name!r}")

    def engine_path(self, name: str) -> Path:
        return self.path / self.engine(name).file

    def data_path(self, name: str) -> Path:
        for entry in self.manifest.data:
            if entry.name == name:
                return self.path / entry.file
        raise BundleManifestInvalid(f"{self.path}: has no data file {name!r}")

    def limit(self, name: str) -> int:
        if name not in self.manifest.limits:
            raise BundleManifestInvalid(f"{self.path}: has no limit {name!r}")
        return self.manifest.limits[name]

    def _check_size(self, entry: File) -> None:
        file = self.path / entry.file
        root = self.path.resolve()
        if root not in file.resolve().parents:
            raise BundleManifestInvalid(f"{self.path}: {entry.file!r} leads out of the bundle")
        try:
            size = file.stat().st_size
        except (FileNotFoundError, NotADirectoryError):
            raise BundleFileMissing(f"{file}: no such file") from None
        except OSError as error:
            raise BundleError(f"{file}: {error.strerror}") from error
        if not file.is_file():
            raise BundleFileMissing(f"{file}: not a regular file")
        if size < entry.bytes:
            raise BundleFileTruncated(f"{file}: {size} bytes of {entry.bytes}")
        if size > entry.bytes:
            raise BundleHashMismatch(f"{file}: {size} bytes instead of {entry.bytes}")

    def _check_plan(self, engine: EngineFile) -> None:
        """A plan is made of the GPU's own code: what is none is told before TensorRT reads it."""
        if not engine.file.endswith(PLAN):
            return
        file = self.path / engine.file
        try:
            with file.open("rb") as stream:
                head = stream.read(2)
        except OSError as error:
            raise BundleError(f"{file}: {error.strerror}") from error
        if len(head) < 2 or (head[0] == _ONNX_VERSION and head[1] < 0x20):
            what = "empty" if len(head) < 2 else "an ONNX file"
            raise BundleNotAPlan(f"{file}: is {what}, not a TensorRT plan")

    def _digest(self, entry: File) -> str:
        try:
            return sha256(self.path / entry.file)
        except OSError as error:
            raise BundleError(f"{self.path / entry.file}: {error.strerror}") from error


def sha256(file: Path) -> str:
    """SHA-256 of a file in hex; releases the GIL while hashing."""
    digest = hashlib.sha256()
    block = bytearray(1 << 18)
    view = memoryview(block)
    with file.open("rb", buffering=0) as stream:
        while count := stream.readinto(block):
            digest.update(view[:count])
    return digest.hexdigest()


def installed(directories: Iterable[Path]) -> Iterator[Path]:
    """Folders that hold a manifest, by name within each directory; an earlier directory hides a later."""
    seen: set[str] = set()
    for directory in directories:
        try:
            entries = sorted(os.scandir(directory), key=lambda entry: entry.name)
        except OSError:
            continue  # a search directory need not exist
        for entry in entries:
            path = Path(entry.path)
            hidden = entry.name.startswith(".") or entry.name in seen  # "." marks an unfinished build
            if not hidden and (path / MANIFEST).is_file():
                seen.add(entry.name)
                yield path


def find(name: str, directories: Iterable[Path]) -> Path:
    """The folder of a bundle by name; a name with a slash is a path of its own."""
    if "/" in name:
        path = Path(name).expanduser()
        if (path / MANIFEST).is_file():
            return path
        raise BundleMissing(f"{path}: no bundle there ({MANIFEST} is missing)")
    searched = list(directories)
    found = {path.name: path for path in installed(searched)}
    if name in found:
        return found[name]
    near = get_close_matches(name, found, n=1)
    suggestion = f"; did you mean {near[0]!r}?" if near else ""
    places = ", ".join(str(d) for d in searched) or "nowhere"
    raise BundleMissing(f"voice bundle {name!r} is not installed (searched {places}){suggestion}")
