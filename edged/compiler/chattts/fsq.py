"""Grouped residual finite scalar quantisation: features <-> codes.

Build time only. Each of G groups of channels is projected to four numbers, which are rounded to five
levels each, R times over: the second time what the first left over. Neighbours: `vocoder.py` (codes to
features), `encoder.py` (features to codes).

The rule has changed since the published weights were trained: `RULES` names both.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto

from edged.compiler.chattts import layout
from edged.compiler.chattts.layers import Net

LEVELS = layout.LEVELS[0]  # the same in all four dimensions
STAGES = 2  # R
PART = "dvae"
_SOFT = 1 + 1 / (LEVELS - 1)

# How much finer each stage is than the one before.
# "symmetric": vector_quantize_pytorch since 2025; "tanh": the versions of 2024.
RULES = {"symmetric": LEVELS, "tanh": LEVELS - 1}


def check(rule: str) -> None:
    if rule not in RULES:
        raise ValueError(f"rule {rule!r} is none of {tuple(RULES)}")


def groups(net: Net) -> int:
    count = 0
    while net.weights.has(PART, f"{_prefix(count)}.project_in.weight"):
        count += 1
    return count


def _prefix(group: int) -> str:
    return f"vq_layer.quantizer.rvqs.{group}"


def codebook(rule: str) -> np.ndarray[Any, np.dtype[np.float32]]:
    """[stages, codes, 4]: what each code of each stage stands for, -1..1 before the stage's scale."""
    place = LEVELS ** np.arange(4)
    levels = np.arange(layout.CODES)[:, None] // place % LEVELS
    values = (levels - LEVELS // 2) / (LEVELS // 2)
    return np.stack([values / RULES[rule] ** stage for stage in range(STAGES)]).astype(np.float32)


def decode(net: Net, codes: str, rule: str) -> str:
    """Codes [1, T, G * R] -> features [1, 1, G * T, channels], the groups of a step one after the other."""
    check(rule)
    g = net.graph
    tables = [g.weight(f"codes.{stage}", table) for stage, table in enumerate(codebook(rule))]
    parts = []
    columns = g.node("Split", [codes], groups(net) * STAGES, axis=2, num_outputs=groups(net) * STAGES)
    for group in range(groups(net)):
        pair = columns[group * STAGES : (group + 1) * STAGES]
        value, *finer = [g.node("Gather", [table, c]) for table, c in zip(tables, pair, strict=True)]
        for more in finer:
            value = g.node("Add", [value, more])  # [1, T, 1, 4]
        name = f"{_prefix(group)}.project_out"
        matrix = g.weight(f"{name}.weight", net.weights.tensor(PART, f"{name}.weight").T)
        bias = g.weight(f"{name}.bias", net.weights.tensor(PART, f"{name}.bias"))
        parts.append(g.node("Add", [g.node("MatMul", [value, matrix]), bias]))
    stacked = parts[0] if len(parts) == 1 else g.node("Concat", parts, axis=2)
    channels = net.weights.tensor(PART, f"{_prefix(0)}.project_out.bias").shape[0]
    return str(g.node("Reshape", [stacked, g.constant([1, 1, -1, channels])]))


def encode(net: Net, x: str, rule: str) -> str:
    """Features [1, 1, T, channels] -> codes int64 [1, G * R, T]."""
    check(rule)
    g = net.graph
    columns = []
    parts = g.node("Split", [x], groups(net), axis=3, num_outputs=groups(net))
    for group, part in enumerate([parts] if isinstance(parts, str) else parts):
        name = f"{_prefix(group)}.project_in"
        matrix = g.weight(f"{name}.weight", net.weights.tensor(PART, f"{name}.weight").T)
        bias = g.weight(f"{name}.bias", net.weights.tensor(PART, f"{name}.bias"))
        z = g.node("Add", [g.node("MatMul", [part, matrix]), bias])
        columns += _residual(net, z, rule)
    codes = g.node("Cast", [g.node("Concat", columns, axis=3)], to=TensorProto.INT64)
    codes = g.node("Reshape", [codes, g.constant([1, -1, len(columns)])])
    return str(g.node("Transpose", [codes], perm=[0, 2, 1]))


def _residual(net: Net, z: str, rule: str) -> list[str]:
    """The codes of every stage, as floats [1, 1, T, 1]."""
    g = net.graph
    place = g.constant(LEVELS ** np.arange(4)[:, None], "float32")
    if rule == "symmetric":
        soft = net.scalar(_SOFT)
        rest = g.node("Mul", [g.node("Tanh", [g.node("Div", [z, soft])]), soft])
    else:
        rest = _bound(net, z)
    found = []
    for stage in range(STAGES):
        scale = net.scalar(np.float32(RULES[rule]) ** -stage)
        fine = g.node("Div", [rest, scale])
        if rule == "symmetric":
            level = g.node("Clip", [fine, net.scalar(-1.0), net.scalar(1.0)])
            # In float32 the halves matter: these are the operations in the order that the rule has them.
            level = g.node("Mul", [g.node("Add", [level, net.scalar(1.0)]), net.scalar(LEVELS // 2)])
            level = g.node("Floor", [g.node("Add", [level, net.scalar(0.5)])])
        else:
            level = g.node("Add", [g.node("Round", [_bound(net, fine)]), net.scalar(LEVELS // 2)])
        found.append(g.node("MatMul", [level, place]))
        value = g.node("Sub", [g.node("Mul", [level, net.scalar(2 / (LEVELS - 1))]), net.scalar(1.0)])
        rest = g.node("Sub", [rest, g.node("Mul", [value, scale])])
    return found


def _bound(net: Net, z: str) -> str:
    """Into the range of the levels, a thousandth beyond them so that the outermost are reached."""
    g = net.graph
    reach = net.scalar((LEVELS - 1) * 1.001 / 2)
    return str(g.node("Mul", [g.node("Tanh", [z]), reach]))
