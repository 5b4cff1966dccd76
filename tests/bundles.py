"""Bundles built once for the whole test session, and voices opened from them."""

from __future__ import annotations

import functools
import importlib.util
import tempfile
from pathlib import Path
from typing import Any

import pytest

from edged import settings
from edged.bundle import Bundle
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
