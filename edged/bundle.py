"""The voice bundle: a folder with a manifest, engines and data, checked in full before it is used.

    NAME/manifest.json   format 1, described by `Manifest` below
    NAME/engines/*.onnx  networks with the maximum shapes of their tensors
    NAME/data/*          tables of the frontend
    NAME/LICENSE, NOTICE

No thread of its own: read by the loading thread and the CLI. `bundle_write.py` writes bundles. Each
fault has its own error class with a hint, and is found before any large buffer is allocated. Nothing
in a manifest depends on when or where it was built, so that the same inputs give the same bytes.
"""

from __future__ import annotations

import difflib
import hashlib
import math
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated

import msgspec
from msgspec import Meta

from edged.engine.api import TensorSpec
from edged.engine.select import require
from edged.errors import (
    BundleError,
    BundleFamilyUnknown,
    BundleFileMissing,
    BundleFileTruncated,
    BundleHashMismatch,
    BundleManifestInvalid,
    BundleMissing,
    BundleTooNew,
)

FORMAT = 1
FAMILIES = ("hibari", "tone")
MANIFEST = "manifest.json"
DTYPES = ("float32", "float16", "int64", "int32", "int8", "uint8", "bool")
MAX_TENSOR_BYTES = 1 << 30  # one tensor of 1 GiB is a damaged manifest, not a voice for an edge box
MAX_MANIFEST_BYTES = 1 << 20

Name = Annotated[str, Meta(pattern="^[a-z0-9][a-z0-9._-]{0,63}$")]
Text = Annotated[str, Meta(min_length=1, max_length=1000)]
Hash = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
Positive = Annotated[int, Meta(ge=1)]


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of the manifest."""


class Tensor(Record, frozen=True, kw_only=True):
    """A tensor of an engine at its maximum shape."""

    name: Text
    dtype: str
    shape: tuple[Positive, ...]

    def spec(self) -> TensorSpec:
        return TensorSpec(self.name, self.dtype, self.shape)


class File(Record, frozen=True, kw_only=True):
    """A file of the bundle; `file` is relative to the folder, with forward slashes."""

    name: Name
    file: Text
    sha256: Hash
    bytes: Annotated[int, Meta(ge=0)]


class EngineFile(File, frozen=True, kw_only=True):
    """A network. The engine layer allocates its tensors at exactly these shapes."""

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]


class VoiceInfo(Record, frozen=True, kw_only=True):
    """What a client is told about a voice. languages: BCP 47 tags; ("*",) speaks any script."""

    name: Name
    languages: Annotated[tuple[Text, ...], Meta(min_length=1)]
    description: Text
    gender: str = ""


class Licence(Record, frozen=True, kw_only=True):
    """SPDX expressions."""

    code: Text
    weights: Text


class Golden(Record, frozen=True, kw_only=True):
    """A reference utterance and a coarse fingerprint of its audio, see `edged.voices.golden`.

    The fingerprint survives the different rounding of another CPU: length in samples within
    `samples_within`, level per frequency band in dB within `bands_within_db`.
    """

    text: Text
    speed: float
    seed: int
    samples: Positive
    samples_within: int
    bands_db: tuple[float, ...]
    bands_within_db: float


class Manifest(Record, frozen=True, kw_only=True):
    """manifest.json."""

    format: int
    name: Name
    version: Text
    family: str
    backend: str
    precision: Text
    sample_rate: Annotated[int, Meta(ge=8_000, le=192_000)]  # Hz
    voices: Annotated[tuple[VoiceInfo, ...], Meta(min_length=1)]
    engines: Annotated[tuple[EngineFile, ...], Meta(min_length=1)]
    data: tuple[File, ...]
    limits: dict[str, Positive]  # what the family needs to know: max_symbols, max_frames, ...
    licence: Licence
    provenance: dict[str, str]
    golden: Golden | None = None


class _Head(msgspec.Struct):
    """The part of every manifest, old or new, that says whether the rest can be understood."""

    format: int
    family: str = ""


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


def read_manifest(path: Path) -> Manifest:
    """The manifest of the bundle in this folder, checked by itself (no other file is opened)."""
    file = path / MANIFEST
    try:
        if file.stat().st_size > MAX_MANIFEST_BYTES:
            raise BundleManifestInvalid(f"{file}: larger than {MAX_MANIFEST_BYTES} bytes")
        raw = file.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise BundleMissing(f"{path}: no bundle there ({MANIFEST} is missing)") from None
    except OSError as error:
        raise BundleError(f"{file}: {error.strerror}") from error
    try:
        head = msgspec.json.decode(raw, type=_Head)
        if head.format > FORMAT:
            raise BundleTooNew(f"{path}: format {head.format}; this version reads up to {FORMAT}")
        if head.format != FORMAT:
            raise BundleManifestInvalid(f"{file}: unknown format {head.format}")
        if head.family not in FAMILIES:
            raise BundleFamilyUnknown(f"{path}: voice family {head.family!r} is unknown")
        manifest = msgspec.json.decode(raw, type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BundleManifestInvalid(f"{file}: {error}") from error
    require(manifest.backend, str(path))
    _check_entries(file, manifest)
    return manifest


def _check_entries(file: Path, manifest: Manifest) -> None:
    entries: list[File] = [*manifest.engines, *manifest.data]
    for names in (
        [e.name for e in manifest.engines],
        [d.name for d in manifest.data],
        [e.file for e in entries],
    ):
        if len(set(names)) != len(names):
            raise BundleManifestInvalid(f"{file}: an entry is listed twice")
    for entry in entries:
        relative = PurePosixPath(entry.file)
        if relative.is_absolute() or ".." in relative.parts or "\0" in entry.file:
            raise BundleManifestInvalid(f"{file}: {entry.file!r} leads out of the bundle")
    for engine in manifest.engines:
        for tensor in (*engine.inputs, *engine.outputs):
            if tensor.dtype not in DTYPES or not tensor.shape:
                raise BundleManifestInvalid(
                    f"{file}: {engine.name}.{tensor.name} has no usable type or shape"
                )
            if math.prod(tensor.shape) * 8 > MAX_TENSOR_BYTES:
                raise BundleManifestInvalid(f"{file}: {engine.name}.{tensor.name} would need over 1 GiB")


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
    near = difflib.get_close_matches(name, found, n=1)
    suggestion = f"; did you mean {near[0]!r}?" if near else ""
    places = ", ".join(str(d) for d in searched) or "nowhere"
    raise BundleMissing(f"voice bundle {name!r} is not installed (searched {places}){suggestion}")
