"""The real bindings of several versions of TensorRT, as tools/test_bindings prepares them."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
PREPARED = Path(os.environ.get("EDGED_TEST_BINDINGS", ROOT / ".venv" / "bindings"))
VERSIONS = ("10.3.0", "10.13.3.9", "11.4.0.106")


def unavailable(version: str) -> str:
    """Why they cannot be used, "" when they can."""
    if not (PREPARED / version / "tensorrt.py").exists():
        return f"no bindings of TensorRT {version} in {PREPARED}: run tools/test_bindings"
    return ""


def load(version: str) -> Any:
    """The module, of this version for the rest of the process; nothing else finds the package."""
    folder = str(PREPARED / version)
    sys.path.insert(0, folder)
    try:
        return importlib.import_module("tensorrt")
    finally:
        sys.path.remove(folder)
