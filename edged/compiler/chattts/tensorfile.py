"""One safetensors file: its header checked in full at open, its tensors read one by one as float32.

CLI process only. Neighbours: `checkpoint.py` reads through it, `random_checkpoint.py` writes through it.
The format is read here rather than by the safetensors package because that one gives no bfloat16 without
torch, and maps the file into memory, which counts every page that was touched as ours.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edged.errors import CheckpointDamaged, CheckpointDtype, CheckpointMissingFile

ITEM_BYTES = {"F32": 4, "F16": 2, "BF16": 2}  # the element types a checkpoint may use
_MAX_HEADER = 100_000_000  # the limit that the safetensors package sets
_LFS = b"version https://git-lfs"


@dataclass(frozen=True, slots=True)
class Entry:
    """Where one tensor lies in its file."""

    dtype: str
    shape: tuple[int, ...]
    start: int  # byte offset in the file
    size: int  # bytes


class TensorFile:
    """An open file. `label` is how messages name it, relative to the checkpoint."""

    def __init__(self, path: Path, label: str) -> None:
        self.path = path
        self.label = label
        try:
            self._handle = os.open(path, os.O_RDONLY)
        except (FileNotFoundError, NotADirectoryError):
            raise CheckpointMissingFile(f"{label}: no such file in {path.parent}") from None
        except OSError as error:
            raise CheckpointDamaged(f"{label}: {error.strerror}", f"look at {path}") from error
        try:
            self.entries = self._read_header()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def read(self, name: str) -> NDArray[np.float32]:
        """A tensor's values, widened to float32 in memory of the caller's own."""
        entry = self.entries[name]
        raw = np.empty(entry.size, np.uint8)
        try:
            self._fill(raw.data, entry.start)
        except OSError as error:
            raise CheckpointDamaged(f"{self.label}: {name}: {error.strerror}") from error
        values = _widen(raw, entry.dtype).reshape(entry.shape)
        if not np.isfinite(values).all():
            raise CheckpointDamaged(f"{self.label}: tensor {name!r} holds NaN or infinite values")
        return values

    def _fill(self, view: memoryview, start: int) -> None:
        done = 0
        while done < len(view):  # one read returns 2 GiB at most
            count = os.preadv(self._handle, [view[done:]], start + done)
            if count == 0:
                raise CheckpointDamaged(f"{self.label}: the file became shorter while it was read")
            done += count

    def _read_header(self) -> dict[str, Entry]:
        size = os.fstat(self._handle).st_size
        first = os.pread(self._handle, 64, 0)
        if first.startswith(_LFS):
            raise CheckpointDamaged(
                f"{self.label}: only a Git LFS pointer, not the weights", "fetch them with: git lfs pull"
            )
        if len(first) < 8:
            raise CheckpointDamaged(f"{self.label}: {size} bytes are no safetensors file")
        length = int.from_bytes(first[:8], "little")
        if length > _MAX_HEADER:
            raise CheckpointDamaged(f"{self.label}: not a safetensors file")
        if 8 + length > size:
            raise CheckpointDamaged(f"{self.label}: ends within its header")
        raw = bytearray(length)
        self._fill(memoryview(raw), 8)
        try:
            header = json.loads(raw)
        except (ValueError, RecursionError) as error:
            raise CheckpointDamaged(f"{self.label}: the header is not JSON: {error}") from error
        if not isinstance(header, dict):
            raise CheckpointDamaged(f"{self.label}: the header is not a JSON object")
        header.pop("__metadata__", None)
        entries = {name: self._entry(name, fields, 8 + length) for name, fields in header.items()}
        self._check_cover(entries, 8 + length, size)
        return entries

    def _entry(self, name: str, fields: Any, base: int) -> Entry:
        try:
            dtype, shape, (start, end) = fields["dtype"], tuple(fields["shape"]), fields["data_offsets"]
            numbers = [*shape, start, end]
            if any(type(number) is not int or number < 0 for number in numbers) or type(dtype) is not str:
                raise ValueError
        except (TypeError, KeyError, ValueError):
            raise CheckpointDamaged(f"{self.label}: tensor {name!r} has no valid entry") from None
        if dtype not in ITEM_BYTES:
            raise CheckpointDtype(f"{self.label}: tensor {name!r} has the element type {dtype}")
        if end - start != math.prod(shape) * ITEM_BYTES[dtype]:
            raise CheckpointDamaged(f"{self.label}: tensor {name!r} has {end - start} bytes for {shape}")
        return Entry(dtype, shape, base + start, end - start)

    def _check_cover(self, entries: Mapping[str, Entry], start: int, size: int) -> None:
        """The tensors must fill the file without gap or overlap, as the format demands."""
        place = start
        for name, entry in sorted(entries.items(), key=lambda item: (item[1].start, item[1].size)):
            if entry.start != place:
                raise CheckpointDamaged(f"{self.label}: tensor {name!r} is not where it should be")
            place += entry.size
            if place > size:
                raise CheckpointDamaged(f"{self.label}: cut off at {size} bytes, within tensor {name!r}")
        if place != size:
            raise CheckpointDamaged(f"{self.label}: {size - place} bytes belong to no tensor")


def _widen(raw: NDArray[np.uint8], dtype: str) -> NDArray[np.float32]:
    if dtype == "F32":
        return raw.view("<f4")
    if dtype == "F16":
        return raw.view("<f2").astype(np.float32)
    # bfloat16 is the upper half of a float32.
    wide = raw.view("<u2").astype(np.uint32)
    wide <<= np.uint32(16)
    return wide.view(np.float32)


def _narrow(values: NDArray[np.float32], dtype: str) -> NDArray[Any]:
    if dtype == "F32":
        return np.ascontiguousarray(values, "<f4")
    if dtype == "F16":
        return values.astype("<f2")
    bits = np.ascontiguousarray(values, "<f4").view("<u4")
    half = np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))  # round to nearest, ties to even
    upper: NDArray[Any] = ((bits + half) >> np.uint32(16)).astype("<u2")
    return upper


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor to write; `make` is called when its turn comes, so that only one is held at a time."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    make: Callable[[], NDArray[np.float32]]


def write(path: Path, tensors: Iterable[Tensor]) -> None:
    """Writes a safetensors file; tensors come in order of their name."""
    ordered = sorted(tensors, key=lambda tensor: tensor.name)
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}  # transformers refuses a file without it
    place = 0
    for tensor in ordered:
        size = math.prod(tensor.shape) * ITEM_BYTES[tensor.dtype]
        header[tensor.name] = {
            "dtype": tensor.dtype,
            "shape": list(tensor.shape),
            "data_offsets": [place, place + size],
        }
        place += size
    raw = json.dumps(header, separators=(",", ":")).encode()
    raw += b" " * (-len(raw) % 8)  # the data starts at a multiple of eight bytes
    with path.open("wb") as stream:
        stream.write(len(raw).to_bytes(8, "little"))
        stream.write(raw)
        for tensor in ordered:
            values = tensor.make()
            if values.shape != tensor.shape:
                raise ValueError(f"{tensor.name}: made {values.shape} instead of {tensor.shape}")
            stream.write(_narrow(values, tensor.dtype).data)
