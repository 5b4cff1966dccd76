"""The benchmark's pictures: step times, latency against streams, memory over time; one PNG each.

Needs matplotlib (extra `build`). Neighbour: `chattts.py` gives what it measured.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.common import percentile
from benchmarks.decoder import Decoder
from benchmarks.soak import Soak
from benchmarks.speech import Speech

SIZE, DPI = (8.0, 4.5), 120


def draw(
    folder: Path, steps: Mapping[str, Decoder], spoken: Mapping[str, Speech], soaks: Mapping[str, Soak]
) -> None:
    """Writes step_times.png, streams.png and memory.png."""
    folder.mkdir(parents=True, exist_ok=True)
    _save(_step_times(steps), folder / "step_times.png")
    _save(_streams(spoken), folder / "streams.png")
    _save(_memory(soaks), folder / "memory.png")


def _figure(columns: int = 1) -> tuple[Any, Any]:
    from matplotlib.figure import Figure  # no pyplot: it keeps state and looks for a display

    figure = Figure(figsize=SIZE, dpi=DPI, layout="constrained")
    return figure, figure.subplots(1, columns)


def _save(figure: Any, path: Path) -> None:
    figure.savefig(path)


def _step_times(steps: Mapping[str, Decoder]) -> Any:
    figure, panes = _figure(2)
    for pane, rows in zip(panes, (1, 4), strict=True):
        # The few steps that something else on the machine delayed would squeeze all others together.
        most = 1.3 * max(percentile(one.ms[rows], 0.95) for one in steps.values())
        for number, (name, one) in enumerate(steps.items()):
            colour = f"C{number}"
            label = f"{name}: median {statistics.median(one.ms[rows]):.2f} ms"
            pane.hist(one.ms[rows], bins=80, range=(0, most), alpha=0.6, color=colour, label=label)
            pane.axvline(one.floor_ms, color=colour, linestyle=":", label=f"{name}: memory floor")
            if rows in one.peer_medians:
                peer = statistics.median(one.peer_medians[rows])
                pane.axvline(peer, color=colour, linestyle="--", label=f"{name}: llama.cpp's median")
        pane.set_title(f"decoder step, {rows} stream{'s' if rows > 1 else ''}")
        pane.set_xlabel("ms")
        pane.set_ylabel("steps")
        pane.legend(fontsize=7)
    return figure


def _streams(spoken: Mapping[str, Speech]) -> Any:
    figure, (left, right) = _figure(2)
    for name, one in spoken.items():
        counts = sorted(one.by_streams)
        firsts = [[first for first, _ in one.by_streams[count]] for count in counts]
        factors = [statistics.median(rtf for _, rtf in one.by_streams[count]) for count in counts]
        middle = [statistics.median(values) for values in firsts]
        low = [m - min(values) for m, values in zip(middle, firsts, strict=True)]
        high = [max(values) - m for m, values in zip(middle, firsts, strict=True)]
        left.errorbar(counts, middle, [low, high], marker="o", capsize=3, label=name)
        right.plot(counts, factors, marker="o", label=name)
    left.set_title("first audio (median, range)")
    left.set_ylabel("ms")
    right.set_title("a job's seconds per second of its audio")
    right.axhline(1.0, color="grey", linestyle=":", label="real time")
    for pane in (left, right):
        pane.set_xlabel("streams at once")
        pane.set_xticks(counts)
        pane.set_ylim(bottom=0)
        pane.legend()
    return figure


def _memory(soaks: Mapping[str, Soak]) -> Any:
    figure, pane = _figure()
    for name, one in soaks.items():
        seconds, megabytes = zip(*one.memory, strict=True)
        pane.plot(seconds, megabytes, label=f"{name}: {one.growth_mb:+.2f} MB in {one.jobs} jobs")
    pane.set_title("resident memory while jobs run, four at a time")
    pane.set_xlabel("s")
    pane.set_ylabel("MB")
    pane.set_ylim(bottom=0)
    pane.legend()
    return figure
