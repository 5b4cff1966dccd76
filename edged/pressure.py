"""When memory is high and what is to be done about it: a state machine of readings and their times.

Pure: no clock, no system call, no thread. Each level is a latch of its own: it closes after so many readings
in a row at or over its share of the budget, and opens after as many in a row below it by `back`. A spike
changes nothing, and a figure that wavers about a threshold does not make the daemon waver. Neighbour:
`watchdog` reads the memory and does what is found here.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Level(IntEnum):
    """high: it is worth a warning. full: no new jobs."""

    OK = 0
    HIGH = 1
    FULL = 2


@dataclass(frozen=True, slots=True)
class Rules:
    """Shares of the budget, readings in a row, seconds. lasting_s 0: it never gives up."""

    high: float = 0.80
    full: float = 0.90
    back: float = 0.05
    readings: int = 3
    lasting_s: float = 30.0  # how long new jobs are refused before it gives up
    trim_every_s: float = 10.0
    gap_s: float = 2.0  # the most that counts between two readings: in a longer one nobody looked


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one reading led to. trim: give back what can be spared; leave: it lasted, a fresh start is due."""

    level: Level
    before: Level
    trim: bool = False
    leave: bool = False


class _Latch:
    def __init__(self, share: float, rules: Rules) -> None:
        self.closed = False
        self._close_at, self._open_below, self._readings = share, share - rules.back, rules.readings
        self._over = self._under = 0

    def see(self, share: float) -> None:
        self._over = self._over + 1 if share >= self._close_at else 0
        self._under = self._under + 1 if share < self._open_below else 0
        if self._over >= self._readings:
            self.closed = True
        elif self._under >= self._readings:
            self.closed = False


class Pressure:
    """Fed with every reading, in order."""

    def __init__(self, budget_mb: float, rules: Rules) -> None:
        self.level = Level.OK
        self.full_s = 0.0  # how long it has been full
        self._budget_mb, self._rules = budget_mb, rules
        self._latches = (_Latch(rules.high, rules), _Latch(rules.full, rules))
        self._last: float | None = None
        self._trimmed_s = 0.0  # `full_s` at the last trim

    def see(self, now: float, used_mb: float) -> Verdict:
        """now: monotonic seconds."""
        rules, before = self._rules, self.level
        passed = 0.0 if self._last is None else min(max(0.0, now - self._last), rules.gap_s)
        self._last = now
        for latch in self._latches:
            latch.see(used_mb / self._budget_mb)
        # The lower latch is closed whenever the higher is: its thresholds are lower throughout.
        self.level = Level(sum(latch.closed for latch in self._latches))
        if self.level is not Level.FULL:
            self.full_s = 0.0
            return Verdict(self.level, before)
        entered = before is not Level.FULL
        self.full_s = 0.0 if entered else self.full_s + passed
        trim = entered or self.full_s - self._trimmed_s >= rules.trim_every_s
        if trim:
            self._trimmed_s = self.full_s
        return Verdict(self.level, before, trim, leave=0.0 < rules.lasting_s <= self.full_s)
