"""What every benchmark needs: a real daemon on a private socket, readings of its process, spreads, texts.

No measurement of its own. Neighbours: `default.py` and `chattts.py` and the modules beside them.
"""

from __future__ import annotations

import os
import platform
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from edged.client import Client

Say = Callable[[str], None]

THREADS = 2
READY_WITHIN_S = 60
ROOT = Path(__file__).resolve().parents[2]
WORDS = (
    "pump line gate belt motor sensor tank valve alarm door truck shift batch level pressure north south "
    "has been stopped started opened closed checked and is now at with before after please warning normal"
).split()


@dataclass(frozen=True)
class Daemon:
    """A started daemon. ready_s: from process start to READY."""

    endpoint: str
    client: Client
    ready_s: float
    pid: int

    def rss_mb(self) -> float:
        return float(psutil.Process(self.pid).memory_info().rss) / 1e6


@contextmanager
def daemon(bundle: Path, env: dict[str, str] | None = None) -> Iterator[Daemon]:
    """A daemon with this bundle on a private socket."""
    with tempfile.TemporaryDirectory(prefix="edged-bench-") as private:
        endpoint = f"ipc://{private}/edged.sock"
        config = Path(private, "edged.yaml")
        config.write_text(
            f"listen: {{endpoint: {endpoint}}}\nvoices: {{bundles: [{bundle}]}}\n"
            f"engine: {{threads: {THREADS}}}\naudio: {{enabled: false}}\nlog: {{level: warning}}\n"
        )
        notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        notify.bind(f"{private}/notify")
        notify.settimeout(READY_WITHIN_S)
        begin = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-m", "edged", "serve", "--config", str(config)],
            env={**environment(), "NOTIFY_SOCKET": f"{private}/notify", **(env or {})},
        )
        try:
            while b"READY=1" not in notify.recv(4096):
                pass
            ready = time.perf_counter() - begin
            with Client(endpoint, timeout_s=60.0) as client:
                yield Daemon(endpoint, client, ready, process.pid)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)
            notify.close()


def environment() -> dict[str, str]:
    """As an installed daemon has it: compiled modules are kept between starts."""
    return {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}


def varied(count: int, seed: int, shortest: int = 3, longest: int = 40) -> Iterator[str]:
    """Sentences of so many words."""
    chance = random.Random(seed)
    for _ in range(count):
        yield " ".join(chance.choices(WORDS, k=chance.randint(shortest, longest))).capitalize() + "."


def spread(values: Sequence[float], digits: int = 5) -> dict[str, float]:
    low, middle, high = min(values), statistics.median(values), max(values)
    return {"min": round(low, digits), "median": round(middle, digits), "max": round(high, digits)}


def percentile(values: Sequence[float], q: float) -> float:
    """Nearest rank."""
    ordered = sorted(values)
    return ordered[max(0, -(-round(q * len(ordered) * 1e6) // 10**6) - 1)]


def machine() -> str:
    model = platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    return f"{model}, {os.cpu_count()} cores, Python {platform.python_version()}"
