"""Small integers for weights: which matrix gets which precision, and how it is rounded.

Build time only, numpy only. Neighbours: `gpt.py` asks `Plan` for every matrix, `dialect.py` writes the
result into a network, `calibrate.py` measures the sensitivities that rounding better than nearest needs.

All grids are symmetric with positive scales, because TensorRT's 4-bit weights know no zero point.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edged.errors import BadValue

Floats = NDArray[np.float32]
Bytes = NDArray[np.uint8]
Sensitivity = Mapping[str, Floats]  # name of a matrix -> X.T @ X [K, K] of the values it multiplies

PRECISIONS = ("fp32", "fp16", "int8", "int4")
# Columns that share a scale. At 4 bits on a full-size random network (signal to noise of the weights,
# divergence of the code distributions from fp32, time of a step against 128): 128 with chosen scales
# 19.9 dB, 0.180 nat, 1.00; 64 chosen 20.5 dB, 0.164, 1.12; 64 nearest 19.4 dB, 0.200, 1.12; 32 chosen
# 21.3 dB, 1.2-1.3 and 18 MB more. At 8 bits 128 costs no time against 256 and gives 0.6 dB.
BLOCK = {4: 128, 8: 128}
_DAMPING = 0.01  # of the mean sensitivity, added to all: keeps the inverse tame
_CLIPS = np.linspace(0.72, 1.0, 9)  # candidate scales as parts of the one that clips nothing
_PIECE = 1 << 15  # numbers looked at together: they and their errors stay in the cache of a core

# By base precision, over the names emb_text, emb_code, head_text, head_code, layers.N.qkv, layers.N.out,
# layers.N.gate_up and layers.N.down. The last pattern that matches counts.
_DEFAULTS: dict[str, tuple[tuple[str, str], ...]] = {
    "fp32": (("*", "fp32"),),
    "fp16": (("*", "fp16"), ("head_code", "fp32")),
    "int8": (("*", "int8"), ("emb_*", "fp16")),
    # The code head is 1 % of the weights and decides every draw; a text embedding in int8 saves 16 MB.
    "int4": (("*", "int4"), ("head_code", "int8"), ("emb_text", "int8"), ("emb_code", "fp16")),
}


@dataclass(frozen=True)
class Blocks:
    """A matrix [N, K] as small integers with one scale for every `block` columns of a row."""

    bits: int  # 4 or 8
    block: int
    codes: NDArray[np.int8]  # [N, K], -8..7 or -128..127
    scales: Floats  # [N, K / block]

    def dense(self) -> Floats:
        """The matrix that the integers stand for."""
        blocks = self.codes.astype(np.float32).reshape(*self.scales.shape, self.block)
        dense: Floats = (blocks * self.scales[..., None]).reshape(self.codes.shape)
        return dense

    def packed(self) -> Bytes:
        """The layout of MatMulNBits: [N, K / block, bytes of a block], unsigned, the lower half first."""
        unsigned: Bytes = self.codes.view(np.uint8) + np.uint8(1 << (self.bits - 1))
        if self.bits == 4:
            unsigned = (unsigned[:, 0::2] & np.uint8(15)) | (unsigned[:, 1::2] << np.uint8(4))
        return unsigned.reshape(*self.scales.shape, -1)

    def packed_columns(self) -> Bytes:
        """[K, N] row by row with two 4-bit numbers a byte: the raw data of an INT4 tensor."""
        nibbles = np.ascontiguousarray(self.codes.T).view(np.uint8).reshape(-1)
        packed: Bytes = (nibbles[0::2] & np.uint8(15)) | (nibbles[1::2] << np.uint8(4))
        return packed


@dataclass(frozen=True)
class Table:
    """An embedding table as stored; with scales [V, 1] its values are integers."""

    values: NDArray[Any]
    scales: Floats | None = None


@dataclass(frozen=True)
class Plan:
    """What becomes of every matrix and table of the GPT."""

    precision: str
    overrides: tuple[tuple[str, str], ...] = ()
    sensitivity: Sensitivity | None = None
    block: int | None = None  # columns that share a scale, instead of BLOCK
    half: bool = False  # for TensorRT: products may be fp16, and 8-bit matrices have one scale a row

    def __post_init__(self) -> None:
        if self.precision not in _DEFAULTS:
            raise BadValue(f"precision {self.precision!r}", f"choose one of {', '.join(_DEFAULTS)}")
        for pattern, precision in self.overrides:
            if precision not in PRECISIONS:
                raise BadValue(f"precision {precision!r} of {pattern!r}", f"choose one of {PRECISIONS}")

    def of(self, name: str) -> str:
        found = "fp32"
        for pattern, precision in (*_DEFAULTS[self.precision], *self.overrides):
            if fnmatchcase(name, pattern):
                found = precision
        return found

    def matrix(self, name: str, weight: Floats) -> NDArray[np.floating] | Blocks:
        """A matrix [N, K] ready for a network."""
        precision = self.of(name)
        if precision == "fp32":
            return weight
        if precision == "fp16" and self.half:
            return weight.astype(np.float16)
        if precision == "fp16":
            raise BadValue(f"precision 'fp16' of {name!r}", "matrices are fp32, int8 or int4; tables any")
        bits = int(precision.removeprefix("int"))
        sensitivity = self.sensitivity.get(name) if self.sensitivity is not None and bits == 4 else None
        if bits == 8 and self.half:
            return quantised(weight, bits, weight.shape[1], whole=True)
        return quantised(weight, bits, self.block or BLOCK[bits], sensitivity)

    def table(self, name: str, table: Floats) -> Table:
        """An embedding table: one scale a row, as rows are looked up whole. int4 counts as int8."""
        precision = self.of(name)
        if precision == "fp32":
            return Table(table)
        if precision == "fp16":
            return Table(table.astype(np.float16))
        blocks = quantised(table, 8, table.shape[1], whole=True)
        return Table(blocks.codes, blocks.scales)


def quantised(
    weight: Floats, bits: int, block: int, sensitivity: Floats | None = None, *, whole: bool = False
) -> Blocks:
    """Rounds a matrix [N, K]. With a sensitivity, errors made so far are made up for in later columns
    (GPTQ); without, each number goes to its nearest. `whole`: one scale a row, whatever K."""
    columns = weight.shape[1]
    if not whole:
        block = min(block, columns & -columns)  # the largest power of two that divides K
    if sensitivity is not None:
        return _compensated(weight, bits, block, sensitivity)
    blocks = weight.reshape(len(weight), -1, block)
    scales = _scales(blocks, bits, None)
    codes = _rounded(blocks, scales[..., None], bits)
    return Blocks(bits, block, codes.reshape(weight.shape), scales)


def nearest(weight: Floats, bits: int, block: int) -> Blocks:
    """The plainest rounding, scales from the largest number of a block: what others are measured against."""
    blocks = weight.reshape(len(weight), -1, block)
    scales = _full(blocks, bits)
    return Blocks(bits, block, _rounded(blocks, scales[..., None], bits).reshape(weight.shape), scales)


def _full(blocks: Floats, bits: int) -> Floats:
    """The scale of each block that clips nothing."""
    largest = np.abs(blocks).max(-1) / np.float32((1 << (bits - 1)) - 1)
    scales: Floats = np.maximum(largest, np.float32(1e-30))  # a block of zeros needs one too
    return scales


def _rounded(values: Floats, scales: Floats, bits: int) -> NDArray[np.int8]:
    half = 1 << (bits - 1)
    codes: NDArray[np.int8] = np.clip(np.rint(values / scales), -half, half - 1).astype(np.int8)
    return codes


def _scales(blocks: Floats, bits: int, weights: Floats | None) -> Floats:
    """The scale [...] of each block [..., n] with the least squared error, weighted by column.

    Clipping the largest number costs less than coarser steps for all others; worth 1.0-1.3 dB at 4 bits,
    nothing at 8.
    """
    full = _full(blocks, bits)
    if bits == 8:
        return full
    chosen = full.reshape(-1)
    flat = blocks.reshape(len(chosen), -1)
    count = max(1, _PIECE // flat.shape[1])
    for start in range(0, len(flat), count):
        piece = slice(start, start + count)
        chosen[piece] = _best(flat[piece], chosen[piece], bits, weights)
    return full


def _best(blocks: Floats, full: Floats, bits: int, weights: Floats | None) -> Floats:
    """The best of the candidates for some blocks [M, n] that `full` [M] does not clip."""
    half = np.float32(1 << (bits - 1))
    best = np.full(full.shape, np.inf, np.float32)
    chosen: Floats = full.copy()
    for clip in _CLIPS[::-1]:
        scales = full * np.float32(clip)
        error = blocks / scales[:, None]
        np.rint(error, out=error)
        np.clip(error, -half, half - 1, out=error)
        error *= scales[:, None]
        error -= blocks
        error *= error
        loss = error.sum(1) if weights is None else error @ weights
        better = loss < best
        best[better], chosen[better] = loss[better], scales[better]
    return chosen


def _compensated(weight: Floats, bits: int, block: int, sensitivity: Floats) -> Blocks:
    """GPTQ: column after column, the error of each is spread over the columns still to be rounded, in the
    proportions by which the measured inputs let them stand in for one another."""
    rows, columns = weight.shape
    inverse = _inverse_factor(sensitivity)
    importance = (1.0 / np.diagonal(inverse) ** 2).astype(np.float32)
    left = weight.T.astype(np.float32)  # [K, N]: a column of the matrix lies together; a copy
    codes = np.empty((columns, rows), np.int8)
    scales = np.empty((columns // block, rows), np.float32)
    for start in range(0, columns, block):
        part = slice(start, start + block)
        scales[start // block] = scale = _scales(left[part].T, bits, importance[part])
        errors = np.empty((block, rows), np.float32)
        end = start + block
        for n, column in enumerate(range(start, end)):
            codes[column] = _rounded(left[column], scale, bits)
            errors[n] = (left[column] - codes[column] * scale) / inverse[column, column]
            left[column + 1 : end] -= inverse[column, column + 1 : end, None] * errors[n]
        left[end:] -= inverse[part, end:].T @ errors
    return Blocks(bits, block, np.ascontiguousarray(codes.T), np.ascontiguousarray(scales.T))


def _inverse_factor(sensitivity: Floats) -> Floats:
    """U with U.T @ U the inverse of the damped sensitivity."""
    damped = sensitivity.astype(np.float64)
    mean = float(np.diagonal(damped).mean()) or 1.0
    damped[np.diag_indices_from(damped)] += _DAMPING * mean
    factor: Floats = np.linalg.cholesky(np.linalg.inv(damped)).T.astype(np.float32)
    return factor
