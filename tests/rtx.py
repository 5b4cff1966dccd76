"""TensorRT-RTX, where tools/test has installed it: it compiles networks for GPUs on any processor."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDER = Path(os.environ.get("EDGED_RTX", ROOT / ".venv" / "rtx"))


def library() -> Any:
    """The module; skips the test where there is none."""
    if str(FOLDER) not in sys.path:
        sys.path.append(str(FOLDER))
    return pytest.importorskip(
        "tensorrt_rtx",
        reason=f"TensorRT-RTX is not in {FOLDER} (tools/test installs it)",
        exc_type=ImportError,
    )


def generation(sm: int) -> Any:
    """What tells the library's configuration for which GPU to compile."""
    capability = getattr(library().ComputeCapability, f"SM{sm}")

    def prepare(config: Any) -> None:
        config.num_compute_capabilities = 1
        config.set_compute_capability(capability, 0)

    return prepare
