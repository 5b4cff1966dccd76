"""Random ChatTTS checkpoints for tests, and ways to spoil a copy of one."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edged.compiler.chattts.random_checkpoint import TINY, make_checkpoint
from edged.compiler.chattts.tensorfile import Tensor, TensorFile, write

Tensors = dict[str, NDArray[np.float32]]


def tiny(out: Path, **options: Any) -> Path:
    return make_checkpoint(out, TINY, **options)


def copied(checkpoint: Path, out: Path) -> Path:
    """A copy that may be changed."""
    return Path(shutil.copytree(checkpoint, out))


def tensors_of(path: Path) -> Tensors:
    """Every tensor of a file as float32, by the name it is stored under."""
    file = TensorFile(path, path.name)
    try:
        return {name: file.read(name) for name in file.entries}
    finally:
        file.close()


def rewrite(path: Path, change: Callable[[Tensors], object], dtype: str = "F32") -> None:
    """Changes the tensors of a file."""
    tensors = tensors_of(path)
    change(tensors)
    write(path, [Tensor(n, v.shape, dtype, lambda v=v: v) for n, v in tensors.items()])


def rewrite_json(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))


def rewrite_header(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Changes the header of a safetensors file and leaves its data."""
    raw = path.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + length])
    change(header)
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + raw[8 + length :])
