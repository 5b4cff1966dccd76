"""What tools/soak does to a daemon while it is asked for speech, and what must come of each.

The thread that calls `step`, one change at a time. A change that turns out otherwise than it must is a fault,
in words. Neighbours: `rig` has the daemon and the commands; `clients` asks all the while.
"""

from __future__ import annotations

import random
import signal
import tarfile
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from time import monotonic, sleep
from typing import Any

from soaking.memory import EVERY_S, STANDSTILL_S
from soaking.rig import BAD, VERSIONS, Outage, Outcome, Rig, within

TRY_AGAIN = 5  # exit code: jobs of the voices before are not done yet, or another command has the store
TAKES = ("reload", "sighup", "activate", "rollback")  # what --exchanges counts
CHANGES = (*TAKES, *TAKES, "config", "bad_config", "install", "prune", "bad_bundle")
OUTAGES = ("kill", "kill_in_activation", "pressure")
RESTARTING = (*OUTAGES, "kill", *TAKES)
PRESSURE_MB = 600  # service.memory_mb while memory is short on purpose
PRESSURE_S = 40.0


class Exchanges:
    """times: seconds of each kind of change; recovery_s: from a kill -9 to the first audio."""

    def __init__(self, rig: Rig, seed: int) -> None:
        self.counts: Counter[str] = Counter()
        self.times: dict[str, list[float]] = defaultdict(list)
        self.recovery_s: list[float] = []
        self.try_again = 0
        self.stood_still = 0  # commands in a standstill of the machine
        self.pressure: Counter[str] = Counter()
        self.faults: list[str] = []
        self.chance = random.Random(f"{seed} exchanges")
        self.last = 0.0  # when the last change had ended
        self._deck: list[str] = []
        self._rig = rig
        self._settings: dict[str, dict[str, Any]] = {}

    @property
    def taken(self) -> int:
        return sum(self.counts[kind] for kind in TAKES)

    def step(self, kinds: Sequence[str]) -> str:
        """Makes one of these changes, and checks that the store is sound after it.

        They come in any order, but none comes again before all were there: a short run has some of each.
        """
        if not set(self._deck) & set(kinds):
            self._deck = list(kinds)
        kind = self.chance.choice([kind for kind in self._deck if kind in kinds])
        self._deck.remove(kind)
        act: Callable[[], None] = getattr(self, f"_{kind}")
        act()
        wrong = self._rig.unsound()
        if wrong:
            self.faults.append(f"after {kind}: {wrong}")
        self.last = monotonic()
        self.counts[kind] += 1
        return kind

    def _stood_still(self, seconds: float) -> bool:
        """Whether the machine did in the last so many seconds; times say nothing then, and may be longer."""
        sleep(0.0 if seconds < STANDSTILL_S else 2 * EVERY_S)  # until it has been noticed
        return within(self._rig.standstills, monotonic() - seconds - 2 * EVERY_S, monotonic())

    def _check(self, kind: str, outcome: Outcome, codes: Sequence[int] = (0,)) -> bool:
        """Whether it did what it should; the only other ending that is no fault is "try again"."""
        if self._stood_still(outcome.seconds):
            self.stood_still += 1
        else:
            self.times[kind].append(outcome.seconds)
        if outcome.code in codes:
            return True
        if outcome.code == TRY_AGAIN:
            self.try_again += 1
        else:
            self.faults.append(f"{kind} ended with {outcome.code}: {outcome.complaint}")
        return False

    # -- while the daemon stays -------------------------------------------------------------------

    def _reload(self) -> None:
        self._check("reload", self._rig.run("reload", "--json"))

    def _sighup(self) -> None:
        assert self._rig.process
        self._rig.process.send_signal(signal.SIGHUP)

    def _target(self) -> str:
        current = self._rig.store.current(self._rig.name)
        there = [folder for v in VERSIONS if (folder := self._rig.folder(v)) and folder != current]
        if not there:
            self._install()
            return self._target()
        return self.chance.choice(there)

    def _activate(self) -> None:
        target = self._target()
        outcome = self._rig.run("bundle", "activate", target, "--json")
        if self._check("activate", outcome):
            self._spoken("activate", outcome, target)

    def _rollback(self) -> None:
        target = self._rig.store.previous(self._rig.name)
        if not target:
            return self._activate()
        outcome = self._rig.run("bundle", "rollback", self._rig.name, "--json")
        if self._check("rollback", outcome):
            self._spoken("rollback", outcome, target)
        return None

    def _spoken(self, kind: str, outcome: Outcome, target: str) -> None:
        daemon, current = outcome.told.get("daemon"), self._rig.store.current(self._rig.name)
        waited = daemon == "does not answer" and self._stood_still(outcome.seconds)
        if (daemon != "speaks with it now" and not waited) or current != target:
            self.faults.append(f"{kind} of {target}: daemon: {daemon}; in use: {current}")

    def _config(self) -> None:
        """Settings that change at once, and some for which the voices are loaded anew."""
        chance = self.chance
        self._settings = chance.choice(
            (
                {"limits": {"jobs": chance.randint(32, 64)}},
                {"audio": {"volume": chance.choice((0.5, 1.0))}},
                {"stream": {"chunk_ms": chance.randint(100, 500)}},
                {"engine": {"threads": chance.choice((1, 2))}},
                {"service": {"drain_s": chance.choice((5.0, 10.0))}},
                {},
            )
        )
        self._rig.configure(**self._settings)
        self._check("config", self._rig.run("reload", "--json"))

    def _bad_config(self) -> None:
        """It is refused, by name of what is wrong; so is what a bundle command asks the daemon meanwhile."""
        self._rig.configure(**{**self._settings, "limits": {"jobs": 0}})
        try:
            self._check("bad_config", self._rig.run("reload", "--json"), codes=(2,))
            if self.chance.random() < 0.5:
                before, target = self._rig.store.current(self._rig.name), self._target()
                outcome = self._rig.run("bundle", "activate", "--no-trial", target, "--json")
                if self._check("bad_config_activate", outcome, codes=(2,)):
                    self._kept("a refused activation", before)
        finally:
            self._rig.configure(**self._settings)

    def _kept(self, what: str, before: str) -> None:
        current = self._rig.store.current(self._rig.name)
        if current != before:
            self.faults.append(f"{what} left {current} in use, before it was {before}")

    def _install(self) -> None:
        source = self._rig.sources[self.chance.choice(VERSIONS)]
        if self.chance.random() < 0.5:
            archive = self._rig.directory / "incoming.tar"
            with tarfile.open(archive, "w") as tar:
                tar.add(source, arcname=source.name)
            source = archive
        self._check("install", self._rig.run("bundle", "install", str(source), "--json"))

    def _prune(self) -> None:
        keep = str(self.chance.randint(0, 1))
        self._check("prune", self._rig.run("bundle", "prune", self._rig.name, "--keep", keep, "--json"))

    def _bad_bundle(self) -> None:
        outcome = self._rig.run("bundle", "install", str(self._rig.sources[BAD]), "--json")
        if not self._check("install", outcome):
            return
        before = self._rig.store.current(self._rig.name)
        refused = self._rig.run("bundle", "activate", str(outcome.told["installed"]), "--json")
        if self._check("bad_bundle", refused, codes=(1,)):
            self._kept("a refused bundle", before)

    # -- while it goes and comes again ------------------------------------------------------------

    def _kill(self) -> None:
        with self._rig.outage(signal.SIGKILL) as outage:
            pass
        self._recovered(outage)

    def _recovered(self, outage: Outage) -> None:
        seconds = self._rig.first_audio() - outage.begin
        if not self._stood_still(seconds):
            self.recovery_s.append(seconds)

    def _kill_in_activation(self) -> None:
        """The daemon goes at any time while a command works on the store and waits for it."""
        begin = monotonic()
        command = self._rig.begin("bundle", "activate", self._target(), "--json")
        usual = max(self.times["activate"], default=2.0)
        sleep(self.chance.random() * usual)
        with self._rig.outage(signal.SIGKILL) as outage:
            pass
        self._recovered(outage)
        # 1: the daemon went with the new bundle, and the one before is in use again; 3: it went while it was
        # asked; 5: it was starting.
        self._check("kill_in_activation", self._rig.finish(command, begin), codes=(0, 1, 3, TRY_AGAIN))

    def _pressure(self) -> None:
        """A daemon that leaks what it can spare: it refuses new jobs, gives back, and takes them again."""
        rig = self._rig
        leak = {"leak_mb": 100.0, "leak_to_percent": 97, "leak_is_cache": True}
        rig.configure(service={"memory_mb": PRESSURE_MB}, faults=leak)
        with rig.outage(signal.SIGTERM):
            pass
        mark = rig.log.stat().st_size
        until = monotonic() + PRESSURE_S
        lines = ("new jobs are refused", "memory trimmed", "new jobs are taken again")
        seen = ""
        while monotonic() < until and not all(line in seen for line in lines):
            sleep(0.5)
            seen = rig.log.read_bytes()[mark:].decode(errors="replace")
        self.pressure.update(line for line in lines if line in seen)
        self.faults += [
            f"memory was short, and nothing in the log about: {x}" for x in lines if x not in seen
        ]
        rig.configure(**self._settings)
        with rig.outage(signal.SIGTERM):
            pass
