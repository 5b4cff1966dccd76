"""The decoder step of every precision beside the memory's floor and llama.cpp, in turn.

Neighbours: `step.py` and `llamacpp.py` measure in processes of their own, `floor.py` in this one.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import llamacpp
from benchmarks.common import Say, spread
from benchmarks.floor import Bandwidth, weight_bytes
from benchmarks.turns import Lost, Turns
from edged.bundle import Bundle

ROWS = (1, 4)


@dataclass(frozen=True)
class Decoder:
    """Milliseconds of single steps by number of rows, and by-round ratios to the peer's."""

    ms: dict[int, list[float]]
    medians: dict[int, list[float]]  # a round
    peer_medians: dict[int, list[float]]
    weight_mb: float
    rates: list[float] = field(repr=False, default_factory=list)  # GB/s, the best of each round

    @property
    def floor_ms(self) -> float:
        return self.weight_mb / statistics.median(self.rates)

    @property
    def over_floor(self) -> dict[str, float]:
        """Spread of a round's step over the floor of the same round: the memory of a shared machine is now
        fast, now slow."""
        return spread(
            [ms * rate / self.weight_mb for ms, rate in zip(self.medians[1], self.rates, strict=True)], 3
        )

    def over_peer(self, rows: int) -> dict[str, float] | None:
        """Spread of the ratio over the rounds; None without a peer."""
        theirs = self.peer_medians.get(rows)
        return spread([a / b for a, b in zip(self.medians[rows], theirs, strict=True)], 3) if theirs else None


def measure(
    bundles: Mapping[str, Path],
    peers: Mapping[str, Sequence[object]],
    *,
    python: str,
    rounds: int,
    buffer_mb: int,
    say: Say,
) -> dict[str, Decoder]:
    """peers: what llama.cpp's process is told, by precision; python: the interpreter that has it."""
    bandwidth, rates = Bandwidth(buffer_mb), []
    ms: dict[str, dict[int, list[float]]] = {name: defaultdict(list) for name in bundles}
    mine: dict[str, dict[int, list[float]]] = {name: defaultdict(list) for name in bundles}
    theirs: dict[str, dict[int, list[float]]] = {name: defaultdict(list) for name in bundles}
    with ExitStack() as stack:
        ours = {name: stack.enter_context(Turns("step", path)) for name, path in bundles.items()}
        for turn in ours.values():
            turn(rows=max(ROWS))  # warms it up
        other = {}
        for name, told in peers.items():
            try:
                turn = stack.enter_context(Turns("llamacpp", *told, python=python))
                turn(rows=max(ROWS))
                other[name] = turn
            except Lost as lost:
                say(f"{name} without llama.cpp: {lost} ; {llamacpp.INSTALL}")
        for _ in range(rounds):
            rates.append(max(bandwidth.read() for _ in range(3)))
            for rows in ROWS:
                for name in bundles:
                    values = ours[name](rows=rows)["ms"]
                    ms[name][rows] += values
                    mine[name][rows].append(statistics.median(values))
                    if name in other:
                        theirs[name][rows].append(statistics.median(other[name](rows=rows)["ms"]))
    return {
        name: Decoder(
            dict(ms[name]),
            dict(mine[name]),
            dict(theirs[name]),
            weight_bytes(Bundle.load(path, verify=False).engine_path("gpt")) / 1e6,
            rates,
        )
        for name, path in bundles.items()
    }
