"""The memory plan: which memory the daemon holds or may take, as rows, as a table, and against a budget.

Pure functions over rows. Neighbours: `buffers.py` gives the rows of what was allocated; the voices predict
those of a bundle before it is loaded; the service logs them and the server shows them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from edged.engine.api import Shape, TensorSpec

Kind = Literal["buffer", "weights", "bound", "device"]
SMALL_MB = 0.1  # rows below this are told together, one line an engine
_NUMBERED = re.compile(r"(.*?)(\d+)")


@dataclass(frozen=True, slots=True)
class PlanRow:
    """One line of the memory plan.

    kind: `buffer` is allocated at start, `weights` are a file's (the runtime may keep them in another
    form), `bound` is the most that is taken while serving, `device` is memory of the GPU.
    rows: how many alike this line stands for.
    """

    name: str
    shape: Shape
    dtype: str
    megabytes: float  # 10**6 bytes
    kind: Kind = "buffer"
    rows: int = 1


def buffer_row(spec: TensorSpec, owner: str = "") -> PlanRow:
    return PlanRow(qualified(spec.name, owner), spec.shape, spec.dtype, spec.nbytes / 1e6)


def weights_row(name: str, nbytes: int) -> PlanRow:
    return PlanRow(f"{name}.weights", (nbytes,), "uint8", nbytes / 1e6, "weights")


def device_row(name: str, megabytes: float) -> PlanRow:
    """Everything that a bundle has on the GPU: weights, activations, buffers."""
    return PlanRow(f"{name}.device", (round(megabytes * 1e6),), "uint8", megabytes, "device")


def bound_row(setting: str, nbytes: int) -> PlanRow:
    """The most that is taken while serving, named for the setting that limits it."""
    return PlanRow(setting, (nbytes,), "uint8", nbytes / 1e6, "bound")


def qualified(name: str, owner: str) -> str:
    return f"{owner}.{name}" if owner else name


def total_mb(rows: Iterable[PlanRow]) -> float:
    return sum(row.megabytes for row in rows)


def joined(rows: Iterable[PlanRow]) -> list[PlanRow]:
    """Rows that differ in a last number only become one, and so do the small ones of an owner."""
    alike: dict[tuple[str, Shape, str, Kind], list[PlanRow]] = {}
    small: dict[tuple[str, Kind], list[PlanRow]] = {}
    for row in rows:
        match = _NUMBERED.fullmatch(row.name)
        stem = match[1] if match else row.name + "\0"
        alike.setdefault((stem, row.shape, row.dtype, row.kind), []).append(row)
    found = []
    for (stem, *_), group in alike.items():
        row = group[0]
        if len(group) > 1:
            numbers = sorted(int(r.name.removeprefix(stem)) for r in group)
            name = f"{stem}{numbers[0]}..{numbers[-1]}"
            row = replace(row, name=name, megabytes=total_mb(group), rows=len(group))
        if row.megabytes < SMALL_MB and "." in row.name:
            small.setdefault((row.name.rpartition(".")[0], row.kind), []).append(row)
        else:
            found.append(row)
    for (owner, kind), group in small.items():
        count = sum(row.rows for row in group)
        found.append(
            group[0]
            if count == 1
            else PlanRow(f"{owner}.* ({count} small)", (), "", total_mb(group), kind, count)
        )
    return sorted(found, key=lambda row: (-row.megabytes, row.name))


def shape_text(row: PlanRow) -> str:
    """4x12x1024x64, with how many there are of it in front: 20 x 4x12x1024x64."""
    shape = "" if row.kind != "buffer" else "x".join(map(str, row.shape))
    return f"{row.rows} x {shape}" if row.rows > 1 and shape else shape


def table(rows: Sequence[PlanRow], budget_mb: float) -> list[str]:
    """The plan as aligned lines: a heading, the rows, and their sum against the budget."""
    cells = [("name", "shape", "dtype", "MB", "kind")]
    cells += [(r.name, shape_text(r), r.dtype, f"{r.megabytes:.2f}", r.kind) for r in rows]
    cells.append(("total", "", "", f"{total_mb(rows):.2f}", f"of {budget_mb:g} MB (service.memory_mb)"))
    name, shape, dtype, size = (max(len(row[i]) for row in cells) for i in range(4))
    return [f"{a:<{name}}  {b:<{shape}}  {c:<{dtype}}  {d:>{size}}  {e}" for a, b, c, d, e in cells]
