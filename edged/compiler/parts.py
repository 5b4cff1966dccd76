"""What every family's builder shares: optional imports, file entries, provenance, the golden utterance.

CLI process only. Neighbours: `tone.py` and `hibari.py` use it, `bundle_write.py` does the writing,
`loudness.py` measures.
"""

from __future__ import annotations

import dataclasses
import platform
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import msgspec

from edged import __version__, settings
from edged.bundle import Bundle, EngineFile, File, Golden, Manifest, Tensor
from edged.bundle_write import describe, write_manifest
from edged.compiler import loudness
from edged.engine.api import TensorSpec
from edged.engine.buffers import Arena
from edged.engine.plan import total_mb
from edged.errors import MissingExtra
from edged.job import Params
from edged.voices import golden
from edged.voices.load import open_bundle

Progress = Callable[[str, float], None]  # (phase, fraction of the whole)


def silent(phase: str, fraction: float) -> None:
    """A progress callback that tells nobody."""


def need(module: str, extra: str, purpose: str) -> Any:
    """Imports an optional dependency or says which extra brings it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtra(module.partition(".")[0], extra, purpose) from error


def provenance(*packages: str, **facts: str) -> dict[str, str]:
    """What the bundle was built from. No times and no paths: the same inputs give the same bytes."""
    found = {"edged": __version__, "python": ".".join(platform.python_version_tuple()[:2]), **facts}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "unknown"
    return dict(sorted(found.items()))


def within(progress: Progress, begin: float, end: float) -> Progress:
    """A part's own progress as a stretch of the whole."""
    return lambda phase, fraction: progress(phase, begin + (end - begin) * fraction)


def file_entry(root: Path, name: str, file: str) -> File:
    digest, size = describe(root, file)
    return File(name=name, file=file, sha256=digest, bytes=size)


def engine_entry(
    root: Path, name: str, file: str, inputs: list[TensorSpec], outputs: list[TensorSpec]
) -> EngineFile:
    digest, size = describe(root, file)
    return EngineFile(
        name=name, file=file, sha256=digest, bytes=size, inputs=_tensors(inputs), outputs=_tensors(outputs)
    )


def _tensors(specs: list[TensorSpec]) -> tuple[Tensor, ...]:
    return tuple(Tensor(**dataclasses.asdict(spec)) for spec in specs)


def finish(root: Path, manifest: Manifest, text: str, *, within_s: float, within_db: float) -> Golden:
    """Writes the manifest, speaks the golden utterance with the new bundle, and records it there, with the
    loudness of each voice.

    This is also the proof that the bundle can be loaded, speaks at its maximum shapes, and asks for no more
    memory then. What a bundle for a GPU has there is recorded as well.
    """
    write_manifest(root, manifest)
    bundle = Bundle.load(root)
    arena = Arena()
    voices = open_bundle(bundle, settings.Engine(), arena)
    voice = voices[0]
    try:
        for one in voices:
            one.warm_up()
        arena.seal()
        recorded = golden.record(
            voice,
            text,
            samples_within=round(within_s * manifest.sample_rate),
            bands_within_db=within_db,
        )
        measure = loudness.meter()
        lufs = {
            one.card.name: measure(golden.speak(one, text, Params()), manifest.sample_rate) for one in voices
        }
    finally:
        for one in voices:
            one.close()
    record = manifest.tensorrt
    if record is not None:
        used = total_mb(row for row in arena.plan() if row.kind == "device")
        record = msgspec.structs.replace(record, device_mb=round(used, 1))
    infos = tuple(
        msgspec.structs.replace(info, loudness_lufs=lufs.get(info.name)) for info in manifest.voices
    )
    write_manifest(root, msgspec.structs.replace(manifest, voices=infos, golden=recorded, tensorrt=record))
    return recorded
