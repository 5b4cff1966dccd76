"""TensorRT that cannot be imported: what is missing, and what to do about it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from edged.errors import remedies

ROOT = Path(__file__).resolve().parent.parent
OPEN = """
from edged import settings
from edged.engine import select
from edged.engine.buffers import Arena
from edged.errors import EdgedError
try:
    select.open_engines([], select.TENSORRT, Arena(), settings.Engine())
except EdgedError as error:
    print(error.code, error)
"""
BUILD = """
from edged.compiler import trt
from edged.engine import cuda, preflight
from edged.errors import EdgedError
preflight.look = cuda.binding = lambda: None
try:
    trt.tensorrt()
except EdgedError as error:
    print(error.code, error)
"""


def told(folder: Path, module: str, code: str) -> str:
    """What is said with such a module `tensorrt`, or none."""
    if module:
        (folder / "tensorrt.py").write_text(module)
    env = {**os.environ, "PYTHONPATH": f"{ROOT}:{folder}"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.parametrize("code", [OPEN, BUILD], ids=["open", "build"])
@pytest.mark.parametrize(
    "module",
    [
        "raise ImportError('libnvinfer.so.10: cannot open shared object file')",
        "raise OSError('libcudart.so.12: cannot open shared object file')",
        "raise RuntimeError('the CUDA driver does not fit')",
        "import missing_part",
    ],
)
def test_what_is_there_but_broken_is_to_be_reinstalled(tmp_path: Path, module: str, code: str) -> None:
    said = told(tmp_path, module, code)
    if "missing_part" in module and code is BUILD:
        assert said.startswith("missing_extra")
        assert "'missing_part'" in said
        return
    assert said.startswith("tensorrt_missing TensorRT cannot be loaded: ")
    assert "reinstall it" in said


@pytest.mark.skipif("tensorrt" in sys.modules, reason="TensorRT is installed")
def test_what_is_not_there_is_to_be_installed(tmp_path: Path) -> None:
    assert remedies.install("tensorrt") in told(tmp_path, "", OPEN)
    assert told(tmp_path, "", BUILD).startswith("missing_extra")
