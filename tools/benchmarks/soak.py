"""Many short jobs on one daemon, four at a time: memory, processor time, first audio, large allocations.

Neighbours: `process.py` reads the daemon from outside, the preloaded allocator (tools/alloc_probe.py) from
inside.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import alloc_probe

from benchmarks.common import Daemon, daemon, varied
from benchmarks.process import MemoryWatch, cpu
from benchmarks.streams import Ask, together

CLIENTS = 4


@dataclass(frozen=True)
class Soak:
    """rss_mb: the highest reading; growth_mb: from right before the jobs to right after."""

    jobs: int
    rss_ready_mb: float
    rss_mb: float
    growth_mb: float
    outside_engine_pct: float | None
    first_ms: list[float] = field(repr=False)
    memory: list[tuple[float, float]] = field(repr=False)


def plans(jobs: int, seed: int) -> Sequence[Sequence[Ask]]:
    """Texts of 3 to 12 words, shared out among the clients."""
    asked = [(text, seed * 1000 + n) for n, text in enumerate(varied(jobs, seed, shortest=3, longest=12))]
    return [asked[at::CLIENTS] for at in range(CLIENTS)]


def measure(bundle: Path, warm_up: int, jobs: int) -> Soak:
    with daemon(bundle) as running:
        ready = running.rss_mb()
        together(running.endpoint, plans(warm_up, seed=1))
        watch = MemoryWatch(running)
        before_mb, before = running.rss_mb(), cpu(running)
        takes = together(running.endpoint, plans(jobs, seed=2))
        after, after_mb = cpu(running), running.rss_mb()
        memory = watch.stop()
    return Soak(
        jobs,
        ready,
        max(mb for _, mb in memory),
        after_mb - before_mb,
        after.outside_pct(before),
        [one.first_ms for row in takes for one in row],
        memory,
    )


def large_allocations(bundle: Path, warm_up: int, jobs: int) -> int | None:
    """Allocations of 64 KiB and more on the engine thread during the jobs; None without a C compiler."""
    with tempfile.TemporaryDirectory(prefix="edged-bench-") as folder:
        counts = Path(folder, "counts")
        try:
            library = alloc_probe.build(Path(folder))
        except alloc_probe.ProbeUnavailable:
            return None

        def after(running: Daemon, count: int, seed: int) -> int:
            together(running.endpoint, plans(count, seed))
            seen = alloc_probe.read(counts).get("edged-engine", alloc_probe.Counts())
            return seen.heap + seen.maps

        with daemon(bundle, alloc_probe.environment(library, counts)) as running:
            before = after(running, warm_up, 3)
            return after(running, jobs, 4) - before
