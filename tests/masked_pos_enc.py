"""The plugin's functions built for the processor, and the same layer by numpy alone.

tools/gpu_check uses the latter where pytest is not installed, so that is imported by what skips a test.
"""

from __future__ import annotations

import ctypes
import functools
import os
import shlex
import shutil
import subprocess
import tempfile
from ctypes import Structure, c_int32, c_void_p
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

TESTS = Path(__file__).resolve().parent
PLUGIN = TESTS.parent / "deploy/jetson/plugin"
MASKED = np.float32(-1.0e9)


class Call(Structure):
    """Field by field `edged::Call` of masked_pos_enc.h."""

    _fields_ = [
        *((name, c_void_p) for name in ("qkv", "keys", "values", "first", "cosine", "sine", "query", "mask")),
        *((name, c_int32) for name in ("rows", "steps", "heads", "width", "slots", "positions")),
        *((name, c_int32) for name in ("half_qkv", "half_cache")),
    ]


class Placed(NamedTuple):
    """What a layer's node makes; keys and values are written where they lie."""

    query: NDArray[Any]  # [B, heads, S, width]
    mask: NDArray[np.float32] | None  # [B, 1, S, P]


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="edged-test-plugin-")


def compile_cpp(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Skips the test where there is no C++ compiler."""
    import pytest

    command = shlex.split(os.environ.get("CXX", "") or "c++")
    if shutil.which(command[0]) is None:
        pytest.skip(f"no C++ compiler ({command[0]})")
    options = ("-std=c++17", "-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-I", PLUGIN)
    return subprocess.run(
        [*command, *map(str, options), *map(str, arguments)], capture_output=True, text=True, check=False
    )


@functools.cache
def library() -> ctypes.CDLL:
    import pytest

    path = Path(_folder().name) / "masked_pos_enc.so"
    made = compile_cpp("-shared", TESTS / "masked_pos_enc.cpp", "-o", path)
    if made.returncode and "_Float16" in made.stderr:
        pytest.skip("this C++ compiler has no 16-bit floating point numbers: g++ 12 or newer has")
    assert made.returncode == 0, made.stderr
    return ctypes.CDLL(str(path))


def place(
    qkv: NDArray[Any],
    keys: NDArray[Any],
    values: NDArray[Any],
    first: NDArray[np.int32],
    tables: tuple[NDArray[np.float32], NDArray[np.float32]],
    *,
    mask: bool = True,
) -> Placed:
    """qkv [B, S, 3 * heads * width]; keys and values [B, heads, P, width], written in place."""
    arrays = (qkv, keys, values, first, *tables)
    assert all(array.flags.c_contiguous for array in arrays)
    (rows, heads, slots, width), steps = keys.shape, qkv.shape[1]
    query = np.full((rows, heads, steps, width), np.nan, qkv.dtype)
    hidden = np.full((rows, 1, steps, slots), np.nan, np.float32) if mask else None
    call = Call(
        *(array.ctypes.data for array in (*arrays, query)),
        hidden.ctypes.data if hidden is not None else None,
        *(rows, steps, heads, width, slots, len(tables[0])),
        *(int(array.dtype == np.float16) for array in (qkv, keys)),
    )
    assert library().masked_pos_enc(ctypes.byref(call), None) == 0
    return Placed(query, hidden)


def expected(
    qkv: NDArray[Any],
    keys: NDArray[Any],
    values: NDArray[Any],
    first: NDArray[np.int32],
    tables: tuple[NDArray[np.float32], NDArray[np.float32]],
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[np.float32]]:
    """(query, keys, values, mask) as complex numbers make them, the caches as copies."""
    (rows, heads, slots, width), steps = keys.shape, qkv.shape[1]
    parts = qkv.astype(np.float32).reshape(rows, steps, 3, heads, width).transpose(2, 0, 3, 1, 4)
    keys, values = keys.copy(), values.copy()
    query = np.zeros((rows, heads, steps, width), qkv.dtype)
    position = first[:, None].astype(np.int64) + np.arange(steps)
    angle = tables[0] + 1j * tables[1]
    for row, step in np.ndindex(rows, steps):
        at = position[row, step]
        if not 0 <= at < min(slots, len(angle)):
            continue
        for part, to in ((parts[0], query[row, :, step]), (parts[1], keys[row, :, at])):
            vector = part[row, :, step]
            turned = (vector[:, : width // 2] + 1j * vector[:, width // 2 :]) * angle[at]
            to[:] = np.concatenate([turned.real, turned.imag], axis=1)
        values[row, :, at] = parts[2][row, :, step]
    seen = np.arange(slots) <= position[:, None, :, None]
    return query, keys, values, np.where(seen, np.float32(0), MASKED)
