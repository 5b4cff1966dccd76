"""How much memory the process takes: its PSS, what of it was swapped out, and what it has on the GPU.

Main thread; `watchdog` asks once a second. PSS counts a page that n processes share as 1/n, so the parts of
several services add up to the machine. Reading it walks the page tables, 3 ms for 160 MB and more for more;
the resident size, which is never less, is a counter. So the exact figure is read only where it matters.
"""

from __future__ import annotations

import ctypes
import gc
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

KB = 1024 / 1e6  # what the kernel writes as kB, in MB
SLACK_MB = 4.0  # the kernel sums its counters over processors now and then only
ARENAS = 2
_M_ARENA_MAX = -8  # of malloc.h
_LINE = re.compile(r"^(Pss|SwapPss|VmRSS|VmSwap):\s+(\d+) kB$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Usage:
    """MB. exact: process_mb is the PSS; otherwise it is the resident size, which is no less."""

    process_mb: float
    gpu_mb: float = 0.0
    exact: bool = True

    @property
    def mb(self) -> float:
        return self.process_mb + self.gpu_mb


class Footprint:
    """gpu_mb: GPU memory of this process that is not in its PSS; where GPU and processor share their memory
    (Jetson) that is only what the kernel does not count for the process already. None: there is no GPU."""

    def __init__(self, gpu_mb: Callable[[], float] | None = None, proc: Path = Path("/proc/self")) -> None:
        self._gpu_mb = gpu_mb
        self._status, self._rollup = proc / "status", proc / "smaps_rollup"

    def measure(self, enough_below_mb: float = 0.0) -> Usage:
        """Below that the resident size will do."""
        gpu_mb = 0.0 if self._gpu_mb is None else self._gpu_mb()
        resident_mb = _sum(self._status, "VmRSS", "VmSwap")
        if resident_mb + gpu_mb + SLACK_MB < enough_below_mb:
            return Usage(resident_mb, gpu_mb, exact=False)
        try:
            return Usage(_sum(self._rollup, "Pss", "SwapPss"), gpu_mb)
        except OSError:  # hidden by the service manager, or a kernel before 4.14
            return Usage(resident_mb, gpu_mb, exact=False)


def few_arenas() -> None:
    """From here on the threads share so many heaps, where each new one would get its own.

    Every reload brings new threads and networks, and each heap keeps a part of what was in it for good: with
    glibc's eight heaps a core, memory grew more and for longer with the first thirty reloads.
    """
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        libc.mallopt(_M_ARENA_MAX, ARENAS)


def trim() -> None:
    """Collects what Python holds in cycles, forgets compiled patterns, gives free heap back to the kernel."""
    re.purge()
    gc.collect()
    libc = ctypes.CDLL(None)
    if hasattr(libc, "malloc_trim"):  # glibc; it looks through the heaps of all threads
        libc.malloc_trim(ctypes.c_size_t(0))


def _sum(path: Path, *names: str) -> float:
    found = dict(_LINE.findall(path.read_text("ascii", "replace")))
    return sum(int(found.get(name, 0)) for name in names) * KB
