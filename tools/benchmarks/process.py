"""What a running daemon costs: processor time by kind of thread, and memory over time.

From outside, through /proc and the daemon's `stats`. Neighbours: `chattts.py`.
"""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.common import Daemon

_TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Cpu:
    """Processor seconds of a daemon since its start. helpers: of the engines' further threads; engine: of the
    engine thread inside the engines' calls, None where the daemon does not tell."""

    total: float
    helpers: float
    engine: float | None

    def outside_pct(self, before: Cpu) -> float | None:
        """Share of the time since `before` that was spent outside the engines' calls."""
        if self.engine is None or before.engine is None:
            return None
        spent = self.total - before.total
        inside = self.helpers - before.helpers + self.engine - before.engine
        return 100.0 * (spent - inside) / spent if spent > 0 else 0.0


def cpu(running: Daemon) -> Cpu:
    """Threads of ONNX Runtime are those that bear the process's own name, the first one excepted: edged names
    its threads, and so does ZeroMQ. Those of the native decoder are numbered."""
    engine = getattr(running.client.stats(), "engine_cpu_s", None)
    tasks = Path(f"/proc/{running.pid}/task")
    own = (tasks / str(running.pid) / "comm").read_text()
    total = helpers = 0.0
    for task in tasks.iterdir():
        try:
            name = (task / "comm").read_text()
            fields = (task / "stat").read_text().rpartition(")")[2].split()
        except FileNotFoundError:  # the thread has ended
            continue
        spent = (int(fields[11]) + int(fields[12])) / _TICK
        total += spent
        if (name == own and task.name != str(running.pid)) or name.startswith("edged-engine-"):
            helpers += spent
    return Cpu(total, helpers, engine)


class MemoryWatch:
    """Reads a daemon's resident memory a few times a second until it is stopped."""

    def __init__(self, running: Daemon, every_s: float = 0.25) -> None:
        self.begin = time.perf_counter()
        self.readings: list[tuple[float, float]] = []  # seconds, MB
        self._running, self._every_s = running, every_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while True:
            self.readings.append((time.perf_counter() - self.begin, self._running.rss_mb()))
            if self._stop.wait(self._every_s):
                return

    def stop(self) -> list[tuple[float, float]]:
        self._stop.set()
        self._thread.join()
        return self.readings
