"""The native decoder for a bundle: its builds, and the index of the weights that it shares with the network.

Build time only. `index` reads a finished network (8-bit cache, every matrix in small integers) and says where
its tensors lie; `built` runs the C compiler, `$CC` or `cc`. A bundle is whole without either: the
daemon then runs the network in ONNX Runtime, at about half the speed. Neighbours: `chattts/build.py` calls,
`edged/native` has the source, `edged/engine/decoder.py` loads the results.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from edged.engine import decoder_index
from edged.engine.decoder_index import Index, Sizes, Stored
from edged.errors import EngineError
from edged.native import SOURCE, Level

_FLAGS = ("-std=gnu11", "-O3", "-fno-math-errno", "-fPIC", "-shared", "-s")
_FILE = {"FLOAT": "float32", "FLOAT16": "float16", "INT8": "int8", "UINT8": "uint8"}


def wanted() -> str:
    """The command of the C compiler, as it was asked for."""
    return os.environ.get("CC", "") or "cc"


def compiler() -> tuple[str, ...]:
    """The same in its words, () when it is not there."""
    command = tuple(shlex.split(wanted()))
    return command if command and shutil.which(command[0]) else ()


@cache
def built(command: tuple[str, ...], level: Level) -> bytes:
    """The library; the same source gives the same bytes, so one that makes several bundles waits once.
    Raises `EngineError`."""
    with TemporaryDirectory(prefix="edged-decoder-") as folder:
        path = Path(folder) / "decoder.so"
        made = subprocess.run(
            [*command, *_FLAGS, *level.flags, str(SOURCE), "-o", str(path)],
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode or not path.is_file():
            lines = made.stderr.splitlines()
            first = next((line for line in lines if "error" in line), made.stderr.strip())
            raise EngineError(
                f"the native decoder for {level.name}: {first[:300]}", "see CC, or use --no-native"
            )
        return path.read_bytes()


def index(path: Path, weights: Path, sizes: Sizes) -> Index | None:
    """Of the network at `path`; None when the decoder cannot run it, as with matrices in fp32."""
    import onnx

    graph = onnx.load_model(str(path), load_external_data=False).graph
    bits: dict[str, int] = {}
    tensors: dict[str, Stored] = {}
    for part in _graphs(graph):
        for node in part.node:
            if node.op_type == "MatMulNBits":
                bits[node.input[1]] = next(a.i for a in node.attribute if a.name == "bits")
        for tensor in part.initializer:
            kind = _FILE.get(onnx.TensorProto.DataType.Name(tensor.data_type))
            if kind is not None:
                tensors[tensor.name] = _stored(tensor, kind, weights)
    wanted = list(_names(sizes))
    if any(name not in tensors for name in wanted):
        return None
    for name in ("emb_text.scales", "emb_code.scales"):
        if name in tensors:
            wanted.append(name)
    found = Index(
        format=decoder_index.FORMAT,
        sizes=sizes,
        tensors={name: tensors[name] for name in wanted},
        bits=dict(sorted(bits.items())),
    )
    return None if any(decoder_index.faults(found)) else found


def _matrices(sizes: Sizes) -> Iterator[str]:
    for layer in range(sizes.layers):
        yield from (f"layers.{layer}.{part}" for part in ("qkv", "out", "gate_up", "down"))
    yield from ("head_code", "head_text")


def _names(sizes: Sizes) -> Iterator[str]:
    """The tensors that the decoder needs, in the order in which it reads them."""
    yield from ("cosine", "sine", "emb_text", "emb_code")
    for name in _matrices(sizes):
        yield from (name, f"{name}.scales")
    for layer in range(sizes.layers):
        yield from (f"layers.{layer}.{part}_layernorm" for part in ("input", "post_attention"))
        yield from (f"past_{part}.{layer}.scales" for part in "kv")
    yield "norm"


def _graphs(graph: Any) -> Iterator[Any]:
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.name in ("then_branch", "else_branch"):
                yield from _graphs(attribute.g)


def _stored(tensor: Any, kind: str, weights: Path) -> Stored:
    shape = tuple(tensor.dims)
    external = {entry.key: entry.value for entry in tensor.external_data}
    if not external:
        return Stored(dtype=kind, shape=shape, data=bytes(tensor.raw_data))
    if external["location"] != weights.name:
        raise EngineError(f"{tensor.name} lies in {external['location']}, not in {weights.name}")
    return Stored(dtype=kind, shape=shape, offset=int(external.get("offset", 0)))
