"""Runs finished graphs in tests: one thread, so that results do not depend on the machine's load."""

from __future__ import annotations

from pathlib import Path

import onnxruntime as ort


def session(model: Path | bytes) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    source = model if isinstance(model, bytes) else str(model)
    return ort.InferenceSession(source, options, providers=["CPUExecutionProvider"])
