"""The weights of the native decoder in memory, as its structures name them.

Read by the loading thread, then only by the decoder's own threads. Matrices that every step reads lie
together, on huge pages where there are some; tables, of which a few rows are read, stay in the file, mapped.
Neighbours: `decoder_index.py` says where they lie, `decoder.py` hands the addresses to the library.
"""

from __future__ import annotations

import mmap
from collections.abc import Mapping
from contextlib import suppress
from ctypes import Structure, c_int32, c_void_p
from io import FileIO
from pathlib import Path

import numpy as np

from edged.engine.decoder_index import Index, Stored
from edged.errors import EngineError

ALIGNMENT = 64  # bytes, of every tensor in memory
_KINDS = {"float32": 0, "float16": 1, "int8": 2}  # of tables, as model.h numbers them


class Matrix(Structure):
    _fields_ = [
        ("codes", c_void_p),
        ("scales", c_void_p),
        *((name, c_int32) for name in ("rows", "columns", "block", "bits")),
    ]


class Table(Structure):
    _fields_ = [("values", c_void_p), ("scales", c_void_p), ("rows", c_int32), ("kind", c_int32)]


def _looked_up(name: str) -> bool:
    """A few rows at a time, or only by the refine stage."""
    return name.startswith(("emb_", "head_text"))


class Weights:
    """Keeps the memory as long as it lives. Raises `EngineError`."""

    def __init__(self, index: Index, path: Path, huge_pages: bool) -> None:
        self._index = index
        self._addresses: dict[str, int] = {}
        held = [name for name, tensor in index.tensors.items() if tensor.offset < 0 or not _looked_up(name)]
        self.nbytes = sum(-(-index.tensors[name].nbytes // ALIGNMENT) * ALIGNMENT for name in held)
        memory = mmap.mmap(-1, self.nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        if huge_pages and hasattr(mmap, "MADV_HUGEPAGE"):
            with suppress(OSError):  # a kernel without them
                memory.madvise(mmap.MADV_HUGEPAGE)
        self._memory = np.frombuffer(memory, np.uint8)
        try:
            with path.open("rb", buffering=0) as file:
                self._read(file, {name: index.tensors[name] for name in held})
                self._file = np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)
        except (OSError, EOFError, ValueError) as error:
            raise EngineError(f"{path}: {error}", "copy the bundle again or rebuild it") from error
        for name in index.tensors.keys() - held:
            tensor = index.tensors[name]
            if tensor.offset + tensor.nbytes > self._file.size:
                raise EngineError(f"{path}: too short for {name!r}", "copy the bundle again or rebuild it")
            self._addresses[name] = int(self._file.ctypes.data) + tensor.offset

    def _read(self, file: FileIO, tensors: Mapping[str, Stored]) -> None:
        """Reads, instead of mapping and copying: mapped pages would count as memory of the process."""
        at = 0
        for name, tensor in tensors.items():
            place = self._memory[at : at + tensor.nbytes]
            if tensor.offset < 0:
                place[:] = np.frombuffer(tensor.data, np.uint8)
            else:
                file.seek(tensor.offset)
                if file.readinto(place.data) != tensor.nbytes:
                    raise EOFError(f"too short for {name!r}")
            self._addresses[name] = int(place.ctypes.data)
            at += -(-tensor.nbytes // ALIGNMENT) * ALIGNMENT

    def address(self, name: str) -> int:
        try:
            return self._addresses[name]
        except KeyError:
            raise EngineError(f"the decoder's index lacks {name!r}", "rebuild the bundle") from None

    def matrix(self, name: str) -> Matrix:
        """codes [N, K / block, bytes of a block]."""
        bits = self._index.bits[name]
        codes, scales = self.address(name), self.address(f"{name}.scales")
        rows, blocks, size = self._index.tensors[name].shape
        block = size * 8 // bits
        return Matrix(codes, scales, rows, blocks * block, block, bits)

    def table(self, name: str) -> Table:
        tensor = self._index.tensors[name]
        scales = self.address(f"{name}.scales") if tensor.dtype == "int8" else 0
        return Table(self.address(name), scales, tensor.shape[0], _KINDS[tensor.dtype])
