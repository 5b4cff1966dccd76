"""What the daemon takes, read from outside: its memory every second, its wake-ups while nobody asks it.

Thread `soak-memory` for the readings; `slope` is arithmetic. Neighbour: `rig`, for the process.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep

import numpy as np
import numpy.typing as npt

from soaking.rig import Outage

EVERY_S = 1.0
STANDSTILL_S = 4.0  # between two readings
Z95 = 1.96  # two-sided, of a normal distribution
FEWEST = 10  # readings; of fewer no slope is told
BLOCK = 5  # readings
Column = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Reading:
    at: float  # monotonic seconds
    pid: int
    pss_kb: int


@dataclass(frozen=True)
class Slope:
    """KB a minute, with the ends of its 95 % interval."""

    kb_per_min: float
    low: float
    high: float
    readings: int

    @property
    def grows(self) -> bool:
        return self.low > 0


def slope(readings: Sequence[tuple[float, float]]) -> Slope | None:
    """Least squares through (seconds, KB); None while there are too few.

    What a process takes wavers, and moves in steps that last: a heap grows once and is used from then on. So
    the interval is the wider of two: of a line through readings that waver about it, of which neighbours are
    alike (as many count as would be independent), and of a walk with such steps and no direction.
    """
    if len(readings) < FEWEST:
        return None
    at, kb = (np.array(column, float) for column in zip(*readings, strict=True))
    minutes = (at - at.mean()) / 60
    spread = float((minutes**2).sum())
    if not spread:
        return None
    per_minute = float((minutes * (kb - kb.mean())).sum()) / spread
    rest = kb - kb.mean() - per_minute * minutes
    wide = max(_wavering(rest, spread), _walking(kb) / ((at[-1] - at[0]) / 60))
    return Slope(per_minute, per_minute - wide, per_minute + wide, len(readings))


def _quantile(freedom: float) -> float:
    """Two-sided 95 % of Student's t distribution, by its expansion about the normal one (Abramowitz and
    Stegun, 26.7.5); 2 % below the true one at 3 degrees of freedom."""
    z = Z95
    return (
        z
        + (z**3 + z) / (4 * freedom)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3)
    )


def _wavering(rest: Column, spread: float) -> float:
    """Half the interval of the slope of a line that leaves this rest."""
    scatter = float((rest**2).sum())
    if not scatter:
        return 0.0
    alike = min(0.999, max(0.0, float((rest[1:] * rest[:-1]).sum()) / scatter))
    independent = max(3.0, rest.size * (1 - alike) / (1 + alike))
    return _quantile(independent - 2) * math.sqrt(scatter / (independent - 2) / spread)


def _walking(kb: Column) -> float:
    """How far a walk gets by chance, in 95 % of cases, from its first reading to its last, with the steps of
    this one: they are few, so that what they tell of others is uncertain, too.

    A step that is taken back at once is no step, but wavering: what a step has in common with the next one is
    negative then, and takes away what the step itself would add.
    """
    blocks = np.array([block.mean() for block in np.array_split(kb, max(3, kb.size // BLOCK))])
    steps = np.diff(blocks)
    steps -= steps.mean()
    lasting = float((steps**2).sum()) + 2 * float((steps[1:] * steps[:-1]).sum())
    return _quantile(steps.size - 1) * math.sqrt(max(0.0, lasting) * steps.size / (steps.size - 1))


class Sampler:
    """Reads the proportional set size of the process that `pid` tells, until it is stopped.

    When it could not do that for a while, nobody else got anything done either: `standstills` notes it.
    """

    def __init__(self, pid: Callable[[], int], standstills: list[Outage]) -> None:
        self.readings: list[Reading] = []
        self._pid = pid
        self._standstills = standstills
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._main, name="soak-memory", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _main(self) -> None:
        last = monotonic()
        while not self._stop.wait(EVERY_S):
            now = monotonic()
            if now - last > STANDSTILL_S:
                self._standstills.append(Outage(last, now))
            last = now
            pid = self._pid()
            with suppress(OSError, ValueError, StopIteration):
                self.readings.append(Reading(monotonic(), pid, pss_kb(pid)))


def pss_kb(pid: int) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


# -- idle ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Idle:
    """cpu_pct: of one core. threads: (name, percent, wake-ups a second), the busiest first."""

    seconds: float
    cpu_pct: float
    wakeups_s: float
    threads: tuple[tuple[str, float, float], ...]


def idle(pid: int, seconds: float) -> Idle:
    """What a process takes in that time while nothing is asked of it; a wake-up ends a voluntary switch."""
    before, begin = _threads(pid), monotonic()
    sleep(seconds)
    after, passed = _threads(pid), monotonic() - begin
    rows = []
    for task, (name, ns, switches) in after.items():
        _, ns_then, switches_then = before.get(task, (name, 0, 0))
        rows.append((name, (ns - ns_then) / passed / 1e7, (switches - switches_then) / passed))
    rows.sort(key=lambda row: row[1:], reverse=True)
    return Idle(passed, sum(row[1] for row in rows), sum(row[2] for row in rows), tuple(rows))


def _threads(pid: int) -> dict[str, tuple[str, int, int]]:
    """Name, nanoseconds on a processor and voluntary switches of each thread."""
    found = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError):
            status = dict(line.split(":\t", 1) for line in (task / "status").read_text().splitlines())
            on_cpu = int((task / "schedstat").read_text().split()[0])
            found[task.name] = (status["Name"], on_cpu, int(status["voluntary_ctxt_switches"]))
    return found
