"""The watchdog: memory against its budget, and systemd's sign of life while every thread gets on.

Main thread, about once a second. `pressure` decides when memory is too much and `footprint` measures it; this
module acts: it warns, has new jobs refused, trims the heap, and at last asks the service to end (`leave`), so
that systemd starts it afresh. WATCHDOG=1 is sent only while no thread is stuck in its round. Each action is
one line in the log, with the numbers.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence, Sized
from time import monotonic
from typing import Any, Protocol

from edged import log, settings
from edged.errors import PlanTooLarge
from edged.faults import Leak
from edged.footprint import Footprint, Usage, trim
from edged.pressure import Level, Pressure, Rules
from edged.threads import Pulse

logger = logging.getLogger("edged.watchdog")
SAMPLE_S = 1.0  # between two readings
STUCK_S = 15.0  # a round of a thread that takes longer is told, where systemd has no timeout of its own


class Manager(Protocol):
    """systemd, as `systemd.Notifier` speaks to it."""

    @property
    def watchdog_interval_s(self) -> float | None: ...

    def watchdog(self) -> bool: ...

    def status(self, text: str) -> bool: ...


class Clients(Protocol):
    """Admission: `over_budget` is why it takes no new jobs, "" when it does; `tickets` are the live ones."""

    over_budget: str

    @property
    def tickets(self) -> Sized: ...


class Watchdog:
    """measure: the memory; a figure below its argument need not be exact. givers: give memory back."""

    def __init__(
        self,
        budget_mb: float,
        rules: Rules,
        manager: Manager,
        measure: Callable[[float], Usage],
        givers: Sequence[Callable[[], None]],
        clients: Clients,
    ) -> None:
        self.budget_mb = budget_mb
        self.used_mb = 0.0  # at the last reading
        self.leave = False  # the memory stayed over the budget
        self._rules, self._manager = rules, manager
        self._measure, self._givers = measure, givers
        self._clients = clients
        self._pressure = Pressure(budget_mb, rules)
        self._exact_from_mb = (rules.high - rules.back) * budget_mb
        self._pulses: Callable[[], Mapping[str, Pulse]] = dict
        self._stuck = ""
        self._ready: Callable[[], str] = str
        self._next_look = self._next_feed = 0.0

    @property
    def state(self) -> str:
        """ok, high or full."""
        return self._pressure.level.name.lower()

    def check_room(self, beside_mb: float = 0.0) -> None:
        """Any thread, once voices are loaded; what can be spared is given back if much is in use. beside_mb:
        what they have on the GPU, which is measured only when they are in use. Raises `PlanTooLarge` when
        there is no room to work in: otherwise the daemon would come up, refuse every job and be restarted
        for ever."""
        most_mb = self._rules.full * self.budget_mb - beside_mb
        usage = self._measure(most_mb)
        if usage.mb >= most_mb:
            self._give_back()
            usage = self._measure(most_mb)
        if usage.mb >= most_mb:
            raise PlanTooLarge(
                f"the loaded service takes {usage.mb + beside_mb:.0f} MB, and service.memory_mb "
                f"{self.budget_mb:g} lets it work up to {most_mb + beside_mb:.0f}",
                f"load fewer or smaller voices, lower engine.slots, or raise service.memory_mb to "
                f"{math.ceil((usage.mb + beside_mb) / self._rules.high)} if the machine has that much",
            )
        self.used_mb = usage.mb + beside_mb

    def watch(self, pulses: Callable[[], Mapping[str, Pulse]], ready: Callable[[], str]) -> None:
        """From here, threads by their names are watched. ready: what systemd is told while all is well."""
        self._pulses, self._ready = pulses, ready

    def told(self) -> str:
        """Any thread: what systemd is told, as things are now."""
        if self._stuck:
            return f"stuck: {self._stuck}"
        share = f"{self.used_mb:.0f} of {self.budget_mb:g} MB"
        match self._pressure.level:
            case Level.FULL:
                return f"refusing new jobs: memory {share}"
            case Level.HIGH:
                return f"{self._ready()}; memory is high: {share}"
        return self._ready()

    def wait_s(self, now: float) -> float:
        """How long nothing is due."""
        due = self._next_look
        if self._manager.watchdog_interval_s:
            due = min(due, self._next_feed)
        return max(0.0, due - now)

    def tick(self, now: float) -> None:
        """What is due at this time (monotonic seconds), perhaps nothing."""
        interval_s = self._manager.watchdog_interval_s
        if now >= self._next_look:
            self._next_look = now + SAMPLE_S
            self._look(now)
            self._tell_stuck(now, interval_s or STUCK_S)
        if interval_s and now >= self._next_feed:
            self._next_feed = now + interval_s
            if not self._late(now, interval_s):
                self._manager.watchdog()

    # -- memory ---------------------------------------------------------------------------------

    def _look(self, now: float) -> None:
        exact_from_mb = 0.0 if self._pressure.level else self._exact_from_mb
        usage = self._measure(exact_from_mb)
        verdict = self._pressure.see(now, usage.mb)
        self.used_mb = usage.mb
        if verdict.level is not verdict.before:
            self._changed(verdict.level, verdict.before, usage)
        if verdict.trim:
            begin = monotonic()
            self._give_back()
            took_ms, after = (monotonic() - begin) * 1e3, self._measure(0.0)
            self._say(logging.INFO, "memory trimmed", after, before_mb=round(usage.mb, 1), took_ms=took_ms)
        if verdict.leave and not self.leave:
            self.leave = True
            self._manager.status(f"memory stayed over the budget ({usage.mb:.0f} MB): restart")
            self._say(
                logging.CRITICAL,
                "memory stayed over the budget: the live jobs may end, then a restart is asked for",
                usage,
                code="over_budget",
                full_s=round(self._pressure.full_s, 1),
                jobs=len(self._clients.tickets),
            )

    def _changed(self, level: Level, before: Level, usage: Usage) -> None:
        self._manager.status(self.told())
        if level is Level.FULL:
            self._clients.over_budget = f"the service uses {usage.mb:.0f} of {self.budget_mb:g} MB of memory"
            text = "memory is nearly used up: new jobs are refused"
            self._say(logging.ERROR, text, usage, code="over_budget", jobs=len(self._clients.tickets))
            return
        if before is Level.FULL:
            self._clients.over_budget = ""
            self._say(logging.INFO, "memory is no longer used up: new jobs are taken again", usage)
        if level is Level.HIGH and before is Level.OK:
            self._say(
                logging.WARNING, "memory is high", usage, code="memory_high", jobs=len(self._clients.tickets)
            )
        elif level is Level.OK and before is Level.HIGH:
            self._say(logging.INFO, "memory is no longer high", usage)

    def _give_back(self) -> None:
        for give in self._givers:
            give()

    def _say(self, severity: int, text: str, usage: Usage, code: str | None = None, **more: Any) -> None:
        log.event(
            logger,
            severity,
            text,
            code=code,
            phase="memory",
            used_mb=round(usage.mb, 1),
            budget_mb=self.budget_mb,
            percent=round(100 * usage.mb / self.budget_mb, 1),
            gpu_mb=round(usage.gpu_mb, 1) or None,
            **more,
        )

    # -- progress -------------------------------------------------------------------------------

    def _late(self, now: float, within_s: float) -> dict[str, float]:
        """Threads whose round has taken longer than that, with its seconds so far."""
        spent = {name: pulse.busy_s(now) for name, pulse in self._pulses().items()}
        return {name: seconds for name, seconds in spent.items() if seconds >= within_s}

    def _tell_stuck(self, now: float, within_s: float) -> None:
        late = self._late(now, within_s)
        names = ",".join(sorted(late))
        if names and names != self._stuck:
            log.event(
                logger,
                logging.CRITICAL,
                "a thread is stuck in its round: systemd gets no sign of life until it goes on",
                code="stuck",
                phase="progress",
                threads=names,
                busy_s=round(max(late.values()), 1),
                jobs=len(self._clients.tickets),
            )
        elif self._stuck and not names:
            log.event(
                logger,
                logging.WARNING,
                "the stuck thread goes on",
                code="stuck",
                phase="progress",
                threads=self._stuck,
            )
        if names != self._stuck:
            self._stuck = names
            self._manager.status(self.told())


def make_watchdog(
    config: settings.Settings, manager: Manager, clients: Clients, gpu_mb: Callable[[], float]
) -> Watchdog:
    """As the settings ask for it. gpu_mb: see `Footprint`."""
    budget_mb = config.service.memory_mb
    rules = Rules(lasting_s=config.service.over_budget_s)
    leak = Leak(config.faults, budget_mb, Footprint(gpu_mb).measure)
    return Watchdog(budget_mb, rules, manager, leak.measure, [leak.drop, trim], clients)
