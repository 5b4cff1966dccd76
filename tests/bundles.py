"""Bundles for tests, built by the real compiler."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from edged.compiler import build


def build_tone(out: Path, **options: Any) -> Path:
    return build("tone", out, **options)


def build_hibari(out: Path) -> Path:
    return build("hibari", out)
