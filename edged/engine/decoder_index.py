"""Where the weights of the native decoder lie, and its sizes: a small file beside the network's own.

Written by the compiler from the finished network, read by the loading thread. The large tensors stay in
the network's weight file, which ONNX Runtime and the decoder share; the small ones, such as gains of norms,
are in here. Neighbours: `decoder.py` loads by it, `edged/compiler/native.py` writes it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
import numpy as np

from edged.engine.api import Shape, TensorSpec
from edged.errors import EngineError

FORMAT = 1
LANES = 16  # numbers that the source works on at a time
WIDEST = 8 * LANES  # of a head
MOST = 2**24  # of any count: three times as many, and the products with bytes, stay within 32 bits
_TABLES = ("float32", "float16", "int8")


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
    wrong = next(faults(index), "")
    if wrong:
        raise EngineError(f"{path}: {wrong}", "copy the bundle again or rebuild it")
    return index


def misfits(sizes: Sizes, inputs: Mapping[str, TensorSpec], outputs: Mapping[str, TensorSpec]) -> list[str]:
    """The tensors of a call that are not as the source takes them."""
    wanted = _interface(sizes, max(1, next((spec.shape[0] for spec in inputs.values() if spec.shape), 1)))
    found = {**outputs, **inputs}
    wrong = [name for name in found if name not in wanted and not name.startswith("present_")]
    for name, (dtype, shape) in wanted.items():
        spec = found.get(name)
        have = spec.shape if spec is not None and spec.dtype == dtype else ()
        if len(have) != len(shape) or any(n not in (0, m) for n, m in zip(shape, have, strict=True)):
            wrong.append(name)
    if not wrong and found["ids"].shape[1] != found["text"].shape[1]:
        wrong.append("text")
    return wrong


def _interface(sizes: Sizes, rows: int) -> dict[str, tuple[str, Shape]]:
    """Element type and shape of each tensor; 0: any."""
    books = sizes.codebooks
    wanted: dict[str, tuple[str, Shape]] = {
        "ids": ("int64", (rows, 0, books)),
        "text": ("int64", (rows, 0)),
        "speaker": ("float32", (rows, sizes.hidden)),
        "lengths": ("int32", (rows,)),
        "refine": ("bool", (1,)),
        "uniform": ("float32", (rows, books)),
        "history": ("int64", (rows, sizes.history, books)),
        "codes": ("int64", (rows, books)),
        "hidden": ("float32", (rows, sizes.hidden)),
    }
    wanted |= dict.fromkeys(("last", "top_k", "ban_end", "greedy", "end"), ("int64", (rows,)))
    wanted |= dict.fromkeys(("temperature", "top_p", "penalty"), ("float32", (rows,)))
    cache = (rows, sizes.heads, sizes.positions, sizes.width)
    for layer in range(sizes.layers):
        wanted |= {f"past_{part}.{layer}": ("int8", cache) for part in "kv"}
    return wanted


def faults(index: Index) -> Iterator[str]:
    """What would make the source read or write where it must not: it trusts what it is told. Take only the
    first: each takes for granted that there were none before."""
    sizes, tensors = index.sizes, index.tensors
    for name, size in msgspec.structs.asdict(sizes).items():
        if name == "epsilon":
            if not 0 < size < 1:
                yield f"{name} of {size}"
        elif not (0 if name in ("speaker_token", "end_text") else 1) <= size <= MOST:
            yield f"{name} of {size}"
    if sizes.hidden != sizes.heads * sizes.width or sizes.width > WIDEST:
        yield f"{sizes.heads} heads of {sizes.width} for {sizes.hidden} channels"
    for name in ("hidden", "inner", "width"):
        if getattr(sizes, name) % LANES:
            yield f"{name} of {getattr(sizes, name)}, not a multiple of {LANES}"
    if max(sizes.text_width, sizes.speaker_token + 1, sizes.end_text + 1) > sizes.text_tokens:
        yield f"more than {sizes.text_tokens} text tokens"
    for name, tensor in tensors.items():
        if tensor.dtype not in (*_TABLES, "uint8") or not all(0 < n <= MOST for n in tensor.shape):
            yield f"{name!r} of {tensor.dtype} {list(tensor.shape)}"
        if tensor.offset < 0 and len(tensor.data) != tensor.nbytes:
            yield f"{name!r} has {len(tensor.data)} bytes of {tensor.nbytes}"
        if tensor.offset > 0 and tensor.offset % np.dtype(tensor.dtype).itemsize:
            yield f"{name!r} at {tensor.offset}"
    if sizes.layers > len(tensors):
        yield f"{sizes.layers} layers of {len(tensors)} tensors"
    for name, (rows, columns) in _matrices(sizes).items():
        yield from _faults_of_matrix(index, name, rows, columns)
    books = sizes.codebooks * sizes.audio_tokens
    for name, rows in (("emb_text", sizes.text_tokens), ("emb_code", books)):
        yield from _differs(tensors, name, (rows, sizes.hidden), *_TABLES)
        if tensors[name].dtype == "int8":
            yield from _differs(tensors, f"{name}.scales", (rows, 1))
    for name in ("cosine", "sine"):
        yield from _differs(tensors, name, (sizes.positions, sizes.width // 2))
    for layer in range(sizes.layers):
        for part in ("input", "post_attention"):
            yield from _differs(tensors, f"layers.{layer}.{part}_layernorm", (sizes.hidden,))
        for part in "kv":
            yield from _differs(tensors, f"past_{part}.{layer}.scales", (1, sizes.heads, 1, sizes.width))
    yield from _differs(tensors, "norm", (sizes.hidden,))


def _matrices(sizes: Sizes) -> dict[str, tuple[int, int]]:
    """Rows and columns of each matrix."""
    hidden, inner = sizes.hidden, sizes.inner
    layer = {
        "qkv": (3 * hidden, hidden),
        "out": (hidden, hidden),
        "gate_up": (2 * inner, hidden),
        "down": (hidden, inner),
    }
    return {
        **{f"layers.{n}.{part}": shape for n in range(sizes.layers) for part, shape in layer.items()},
        "head_code": (sizes.codebooks * sizes.audio_tokens, hidden),
        "head_text": (sizes.text_tokens, hidden),
    }


def _faults_of_matrix(index: Index, name: str, rows: int, columns: int) -> Iterator[str]:
    bits, tensor = index.bits.get(name), index.tensors.get(name)
    if bits not in (4, 8):
        yield f"{name!r} has {bits} bits"
    elif tensor is None:
        yield f"the decoder's index lacks {name!r}"
    elif len(tensor.shape) != 3 or tensor.dtype != "uint8":
        yield f"{name!r} of {tensor.dtype} {list(tensor.shape)}"
    else:
        block = tensor.shape[2] * 8 // bits
        if block % LANES or (tensor.shape[0], tensor.shape[1] * block) != (rows, columns):
            yield f"{name!r} of {bits} bits {list(tensor.shape)}, not {[rows, columns]}"
        yield from _differs(index.tensors, f"{name}.scales", (rows, tensor.shape[1]))


def _differs(tensors: Mapping[str, Stored], name: str, shape: Shape, *dtypes: str) -> Iterator[str]:
    tensor = tensors.get(name)
    if tensor is None:
        yield f"the decoder's index lacks {name!r}"
    elif tensor.shape != shape or tensor.dtype not in (dtypes or ("float32",)):
        yield f"{name!r} of {tensor.dtype} {list(tensor.shape)}, not {list(shape)}"
