"""Bundles built once for the whole test session, and voices opened from them."""

from __future__ import annotations

import functools
import importlib.util
import shutil
import tempfile
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec
import pytest

from edged import settings
from edged.bundle import Bundle, TensorRT, read_manifest
from edged.bundle_write import describe, write_manifest
from edged.compiler import build
from edged.engine.buffers import Arena
from edged.voices.api import Voice
from edged.voices.load import open_bundle


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="edged-test-bundles-")


@functools.cache
def tone(rate: int = 24_000, work: int = 0, max_symbols: int = 160) -> Path:
    """A tone bundle; `work` makes it slow."""
    name = "tone" if (rate, work, max_symbols) == (24_000, 0, 160) else f"tone-{rate}-{work}-{max_symbols}"
    out = Path(_folder().name) / name
    return build("tone", out, rate=rate, work=work, max_symbols=max_symbols, name=name)


@functools.cache
def tone_of(lufs: float) -> Path:
    """The tone bundle, which says that its voice is so loud."""
    out = Path(_folder().name) / f"tone{lufs}"
    shutil.copytree(tone(), out)
    manifest = read_manifest(out)
    voices = tuple(msgspec.structs.replace(voice, loudness_lufs=lufs) for voice in manifest.voices)
    write_manifest(out, msgspec.structs.replace(manifest, voices=voices))
    return out


TENSORRT = TensorRT(version="10.3.0", capability="8.7", cuda="12.6", device="Orin", device_mb=400.0)
NO_NETWORK = b"no network, and no plan that TensorRT could read either\n"


def for_tensorrt(source: Path, out: Path, plan: bytes = NO_NETWORK, record: TensorRT = TENSORRT) -> Path:
    """A copy of a bundle that says it was built for TensorRT; its plans hold these bytes."""
    shutil.copytree(source, out)
    manifest = read_manifest(out)
    engines = []
    for entry in manifest.engines:
        file = str(PurePosixPath(entry.file).with_suffix(".plan"))
        (out / entry.file).unlink()
        (out / file).write_bytes(plan)
        digest, size = describe(out, file)
        engines.append(msgspec.structs.replace(entry, file=file, sha256=digest, bytes=size))
    write_manifest(
        out,
        msgspec.structs.replace(manifest, backend="tensorrt", engines=tuple(engines), tensorrt=record),
    )
    return out


@functools.cache
def hibari() -> Path:
    """The built-in English voice; skips the test where its package is not installed."""
    for module in ("hibari", "onnx"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"the package {module} is not installed (extra voice-en)")
    return build("hibari", Path(_folder().name) / "hibari")


def build_chattts(out: Path, checkpoint: Path, **options: Any) -> Path:
    return build("chattts", out, **{"checkpoint": checkpoint, "precision": "fp32", **options})


@functools.cache
def voice(path: Path) -> Voice:
    """An opened, warm voice. One per bundle for the session: do not close it."""
    (opened,) = open_bundle(Bundle.load(path), settings.Engine(), Arena())
    opened.warm_up()
    return opened
