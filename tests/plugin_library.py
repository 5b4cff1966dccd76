"""Plugin libraries with a registry that takes each plugin once, as that of TensorRT does; for tests."""

from __future__ import annotations

import os
from pathlib import Path

from tests.masked_pos_enc import compile_cpp

_REGISTRY = """
static bool taken;
extern "C" bool register_creator() { return !taken && (taken = true); }
"""
_PLUGIN = """
extern "C" bool register_creator();
static bool registered = register_creator();
extern "C" int edged_plugin_version() { return registered ? %(version)d : -%(version)d; }
extern "C" int build() { return %(build)d; }
"""


def library(path: Path, source: str, *arguments: str | Path) -> Path:
    text = path.with_suffix(".cpp")
    text.write_text(source)
    made = compile_cpp("-shared", text, "-o", path, *arguments)
    assert made.returncode == 0, made.stderr
    return path


def registry(folder: Path) -> Path:
    """In the place of libnvinfer."""
    return library(folder / "libregistry.so", _REGISTRY)


def plugin(path: Path, registry: Path, version: int = 1, build: int = 1) -> Path:
    """build: makes another file of the same plugin."""
    folder = Path(os.path.abspath(registry.parent))
    source = _PLUGIN % {"version": version, "build": build}
    return library(path, source, registry, f"-Wl,-rpath,{folder}")
