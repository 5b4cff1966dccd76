"""manifest.json of a voice bundle: its types, and reading it with every fault told apart.

No thread of its own; `bundle.py` checks the files that a manifest lists, `bundle_write.py` writes it,
`manifest_limits.py` knows what limits must fit.
Nothing in a manifest depends on when or where it was built, so that the same inputs give the same bytes.
"""

from __future__ import annotations

import math
import stat
from pathlib import Path, PurePosixPath
from typing import Annotated

import msgspec
from msgspec import Meta

from edged.engine.api import TensorSpec
from edged.engine.select import TENSORRT, require
from edged.errors import (
    BundleError,
    BundleFamilyUnknown,
    BundleManifestInvalid,
    BundleMissing,
    BundleTooNew,
)
from edged.manifest_limits import check_limits

FORMAT = 1
FAMILIES = ("chattts", "hibari", "tone")
MANIFEST = "manifest.json"
PLAN = ".plan"  # ending of a network that TensorRT has compiled
DTYPES = ("float32", "float16", "int64", "int32", "int8", "uint8", "bool")
MAX_TENSOR_BYTES = 1 << 30  # one tensor of 1 GiB is a damaged manifest, not a voice for an edge box
MAX_MANIFEST_BYTES = 1 << 20

Name = Annotated[
    str,
    Meta(
        pattern="^[a-z0-9][a-z0-9._-]{0,63}$",
        description="a name of at most 64 small letters, digits and . _ -",
    ),
]
Text = Annotated[str, Meta(min_length=1, max_length=1000)]
Hash = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
Positive = Annotated[int, Meta(ge=1)]
Limit = Annotated[int, Meta(ge=1, le=1_000_000)]


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of the manifest."""


class Tensor(Record, frozen=True, kw_only=True, omit_defaults=True):
    """A tensor of an engine at its maximum shape. alias: see `TensorSpec`."""

    name: Text
    dtype: str
    shape: tuple[Positive, ...]
    alias: str = ""

    def spec(self) -> TensorSpec:
        return TensorSpec(self.name, self.dtype, self.shape, self.alias)


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


class VoiceInfo(Record, frozen=True, kw_only=True, omit_defaults=True):
    """What a client is told about a voice. languages: BCP 47 tags; ("*",) speaks any script.

    loudness_lufs: integrated loudness of its speech (EBU R128), which makes voices equally loud when played.
    """

    name: Name
    languages: Annotated[tuple[Text, ...], Meta(min_length=1)]
    description: Text
    gender: str = ""
    loudness_lufs: Annotated[float, Meta(ge=-70.0, le=10.0)] | None = None


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


class TensorRT(Record, frozen=True, kw_only=True):
    """What TensorRT plans were built with, and what they need of the machine that runs them.

    version: of TensorRT, "10.3.0"; capability: of the GPU, "8.7"; cuda: the newest that the
    driver there had, "12.6".
    device_mb: weights, activations and arenas of the daemon on the GPU. plugin: the data entry with the
    plugin library, "" for none. clocks: as they were set during the build. measured: figures of the
    precision check, by the names that `Manifest.thresholds` has.
    """

    version: Annotated[str, Meta(pattern=r"^\d+\.\d+(\.\d+){0,2}$")]
    capability: Annotated[str, Meta(pattern=r"^\d+\.\d+$")]
    cuda: Annotated[str, Meta(pattern=r"^\d+\.\d+$")]
    device: Text
    device_mb: Annotated[float, Meta(ge=0)]
    plugin: str = ""
    clocks: dict[str, str] = {}
    measured: dict[str, float] = {}


class Manifest(Record, frozen=True, kw_only=True, omit_defaults=True):
    """manifest.json. What a bundle does not have is not written: an earlier version reads the rest."""

    format: int
    name: Name
    version: Text
    family: str
    backend: str
    precision: Text
    sample_rate: Annotated[int, Meta(ge=8_000, le=48_000)]  # Hz
    voices: Annotated[tuple[VoiceInfo, ...], Meta(min_length=1)]
    engines: Annotated[tuple[EngineFile, ...], Meta(min_length=1)]
    data: tuple[File, ...]
    limits: dict[str, Limit]  # what the family needs to know: max_symbols, max_frames, ...
    licence: Licence
    provenance: dict[str, str]
    golden: Golden | None = None
    # How far the numbers may be from the checkpoint's, by measure, for `edged bundle verify --against`.
    thresholds: dict[str, float] = {}
    tensorrt: TensorRT | None = None  # exactly when that is the backend


class _Head(msgspec.Struct):
    """The part of every manifest, old or new, that says whether the rest can be understood."""

    format: int
    family: str = ""


def read_manifest(path: Path) -> Manifest:
    """The manifest of the bundle in this folder, checked by itself (no other file is opened)."""
    file = path / MANIFEST
    try:
        found = file.stat()
        if not stat.S_ISREG(found.st_mode):  # reading a pipe would wait for ever
            raise BundleManifestInvalid(f"{file}: not a regular file")
        if found.st_size > MAX_MANIFEST_BYTES:
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
    _check_backend(file, manifest)
    shapes = {
        (engine.name, tensor.name): tensor.shape
        for engine in manifest.engines
        for tensor in (*engine.inputs, *engine.outputs)
    }
    check_limits(file, manifest.family, manifest.limits, shapes)
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


def _check_backend(file: Path, manifest: Manifest) -> None:
    found = manifest.tensorrt
    if (manifest.backend == TENSORRT) != (found is not None):
        raise BundleManifestInvalid(
            f"{file}: the record tensorrt belongs to the backend {TENSORRT!r}, and this one is "
            f"{manifest.backend!r} {'with' if found else 'without'} it"
        )
    if found is None:
        return
    if found.plugin and found.plugin not in {entry.name for entry in manifest.data}:
        raise BundleManifestInvalid(f"{file}: the plugin {found.plugin!r} is not among the data files")
    if not any(engine.file.endswith(PLAN) for engine in manifest.engines):
        raise BundleManifestInvalid(f"{file}: has no plan ({PLAN}) for TensorRT")
