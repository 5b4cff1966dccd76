"""Where the weights of the native decoder lie, and its sizes: a small file beside the network's own.

Written by the compiler from the finished network, read by the loading thread. The large tensors stay in
the network's weight file, which ONNX Runtime and the decoder share; the small ones, such as gains of norms,
are in here. Neighbours: `decoder.py` loads by it, `edged/compiler/native.py` writes it.
"""

from __future__ import annotations

import math
from pathlib import Path

import msgspec
import numpy as np

from edged.errors import EngineError

FORMAT = 1


class Sizes(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Of the model; the names are those of `struct model`."""

    layers: int
    hidden: int
    inner: int
    heads: int
    width: int
    positions: int
    codebooks: int
    audio_tokens: int
    text_tokens: int
    text_width: int
    speaker_token: int
    end_text: int
    history: int
    epsilon: float


class Stored(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tensor: at `offset` of the weight file, or, when that is negative, `data` itself."""

    dtype: str
    shape: tuple[int, ...]
    offset: int = -1
    data: bytes = b""

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize


class Index(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """tensors: by the names of the network's initializers. bits: of each matrix."""

    format: int
    sizes: Sizes
    tensors: dict[str, Stored]
    bits: dict[str, int]


def write(path: Path, index: Index) -> None:
    path.write_bytes(msgspec.msgpack.encode(index))


def read(path: Path) -> Index:
    """Raises `EngineError`."""
    try:
        index = msgspec.msgpack.decode(path.read_bytes(), type=Index)
    except (OSError, msgspec.MsgspecError) as error:
        raise EngineError(f"{path}: {error}", "copy the bundle again or rebuild it") from error
    if index.format != FORMAT:
        raise EngineError(f"{path}: format {index.format}, this version reads {FORMAT}", "rebuild the bundle")
    for name, tensor in index.tensors.items():
        if tensor.offset < 0 and len(tensor.data) != tensor.nbytes:
            raise EngineError(f"{path}: {name!r} has {len(tensor.data)} bytes of {tensor.nbytes}")
    return index
