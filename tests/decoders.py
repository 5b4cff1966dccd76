"""Builds of the native decoder, and the structures that its tests talk to it with."""

from __future__ import annotations

import ctypes
import functools
import tempfile
from ctypes import Structure, c_float, c_int, c_int64, c_void_p
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from edged import native
from edged.compiler.native import built, compiler
from edged.engine import decoder, decoder_weights


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="edged-test-decoders-")


@functools.cache
def library(name: str) -> ctypes.CDLL:
    """One build, by the name of its level; "plain" is without any vector instructions. Skips the test where
    there is no compiler, or the processor cannot run it."""
    if not compiler():
        pytest.skip("no C compiler (cc)")
    levels = {level.name: level for level in native.levels()}
    level = levels.get(name, native.Level("plain", "", frozenset(), ()))
    if name != "plain" and native.best([name]) != name:
        pytest.skip(f"this processor cannot run {name}")
    path = Path(_folder().name) / f"{name}.so"
    path.write_bytes(built(compiler(), level))
    return decoder.open_library(path)


NAMES = ("plain", *(level.name for level in native.LEVELS))


def multiply(
    built: ctypes.CDLL, codes: NDArray[np.uint8], scales: NDArray[np.float32], bits: int, x: NDArray[Any]
) -> NDArray[np.float32]:
    """codes [N, K / block, bytes of a block], x [tokens, K] -> [tokens, N]."""
    rows, blocks, size = codes.shape
    block = size * 8 // bits
    matrix = decoder_weights.Matrix(codes.ctypes.data, scales.ctypes.data, rows, blocks * block, block, bits)
    y = np.full((len(x), rows), np.nan, np.float32)
    work = np.zeros(9 * x.size, np.uint8)
    built.decoder_multiply(
        ctypes.byref(matrix),
        c_void_p(x.ctypes.data),
        len(x),
        c_void_p(y.ctypes.data),
        c_void_p(work.ctypes.data),
    )
    return y


class Rules(Structure):
    _fields_ = [
        *((name, c_float) for name in ("temperature", "top_p", "penalty", "uniform")),
        ("top_k", c_int64),
        ("ban", c_int),
        ("greedy", c_int),
        ("history", c_void_p),
        ("seen", c_int),
        ("stride", c_int),
    ]


def draw(
    built: ctypes.CDLL, scores: NDArray[np.float32], width: int, history: NDArray[np.int64], **rules: Any
) -> int:
    """One draw from scores [count]; history [n]."""
    scores = scores.copy()
    told = Rules(history=history.ctypes.data, seen=len(history), stride=1, **rules)
    values, where = np.zeros(len(scores) + 16, np.float32), np.zeros(len(scores) + 16, np.int32)
    return int(
        built.decoder_draw(
            c_void_p(scores.ctypes.data),
            len(scores),
            width,
            ctypes.byref(told),
            c_void_p(values.ctypes.data),
            c_void_p(where.ctypes.data),
        )
    )
