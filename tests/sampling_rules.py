"""The sampling rules of ChatTTS in numpy, one row at a time: what the network's sampling must equal.

Written from the published order of operations: temperature, repetition penalty over a window, nucleus,
top-k, no end, softmax. A test marked `reference` holds it against the reference's own classes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Row:
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 20
    penalty: float = 1.0
    ban_end: bool = False


def processed(scores: Floats, history: NDArray[np.int64], row: Row, end: int) -> Floats:
    """Scores [V] of one codebook after all rules; -inf where a token cannot be drawn."""
    z = scores.astype(np.float32) / np.float32(row.temperature)
    counts = np.bincount(history[history >= 0], minlength=len(z))
    alpha = np.power(np.float32(row.penalty), counts.astype(np.float32))
    z = np.where(z < 0, z * alpha, z / alpha).astype(np.float32)
    order = np.argsort(z, kind="stable")  # ascending
    odds = softmax(z[order])
    below = np.cumsum(odds.astype(np.float64)).astype(np.float32)
    gone = below <= np.float32(1.0 - row.top_p)
    gone[-3:] = False
    z[order[gone]] = -np.inf
    kept = min(max(row.top_k, 3), len(z))
    z[z < np.sort(z)[-kept]] = -np.inf
    if row.ban_end:
        z[end] = -np.inf
    return z


def softmax(z: Floats) -> Floats:
    e = np.exp(z - z.max())
    return (e / e.sum(dtype=np.float32)).astype(np.float32)


def probabilities(scores: Floats, history: NDArray[np.int64], row: Row, end: int) -> Floats:
    return softmax(processed(scores, history, row, end))


def drawn(probs: Floats, uniform: float) -> tuple[int, float]:
    """The token that a number in [0, 1) draws, best first, and how near the number is to a border."""
    order = np.argsort(-probs, kind="stable")
    reached = np.cumsum(probs[order].astype(np.float64))
    at = min(int(np.searchsorted(reached, uniform, side="right")), len(order) - 1)
    return int(order[at]), float(np.abs(reached - uniform).min())
