"""`tools/bench chattts`: every figure of a ChatTTS bundle, a column a precision, all in one run.

What each key means stands in tools/bench. Neighbours: `decoder.py`, `speech.py` and `soak.py` measure,
`material.py` makes what they need, `plots.py` draws.
"""

from __future__ import annotations

import statistics
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import decoder, llamacpp, material, plots, soak, speech
from benchmarks.common import THREADS, Say, daemon, machine, percentile, spread
from benchmarks.turns import Turns
from tests.reference import live


@dataclass(frozen=True)
class Options:
    """checkpoint: its folder, made there if absent; None: a temporary one. python: the peers' interpreter."""

    precisions: Sequence[str]
    python: str
    quick: bool = False
    peers: bool = False
    plots: Path | None = None
    checkpoint: Path | None = None
    jobs: int = 500

    @property
    def rounds(self) -> int:
        return 2 if self.quick else 6


def measure(options: Options, say: Say) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="edged-bench-") as private, ExitStack() as stack:
        folder = Path(private)
        source = material.checkpoint(options.checkpoint or folder / "checkpoint", say)
        natural, lasting, short = {}, {}, {}
        for name in options.precisions:
            say(f"building the {name} bundle")
            natural[name] = material.bundle(folder, source, name)
            lasting[name] = material.bounded(natural[name], folder / f"{name}-lasting", material.LASTING)
            short[name] = material.bounded(natural[name], folder / f"{name}-short", material.SHORT)
        peers = _llamacpp(folder, source, options, say)
        reference = _reference(source, options, stack, say)

        say("decoder steps" + (", in turn with llama.cpp" if peers else ""))
        buffer_mb = 256 if options.quick else 1024
        steps = decoder.measure(
            natural, peers, python=options.python, rounds=options.rounds, buffer_mb=buffer_mb, say=say
        )
        say("start to ready")
        starts: dict[str, list[float]] = {name: [] for name in natural}
        for _ in range(2 if options.quick else 5):
            for name, path in natural.items():
                with daemon(path) as started:
                    starts[name].append(started.ready_s)
        spoken = speech.measure(lasting, reference, options.quick, say)
        figures, soaks = {}, {}
        for name, path in short.items():
            say(f"{options.jobs} jobs, {soak.CLIENTS} at a time ({name})")
            soaks[name] = soak.measure(path, max(4, options.jobs // 10), options.jobs)
            say(f"allocations ({name})")
            large = soak.large_allocations(path, 8, 8 if options.quick else 24)
            figures[name] = _figures(steps[name], spoken[name], soaks[name], starts[name], large)
    if options.plots is not None:
        plots.draw(options.plots, steps, spoken, soaks)
    return figures


def _figures(
    steps: decoder.Decoder,
    spoken: speech.Speech,
    soaked: soak.Soak,
    starts: Sequence[float],
    large: int | None,
) -> dict[str, Any]:
    over = {rows: steps.over_peer(rows) for rows in decoder.ROWS}
    p99 = percentile(soaked.first_ms, 0.99)
    # A figure is the median of its spread: rounded once, so that the two never contradict each other.
    spreads = {
        "rtf_1": _spread(spoken.rtf, 4),
        "rtf_4": _spread(spoken.rtf_4, 4),
        "reference_rtf": _spread(spoken.reference_rtf, 3),
        "speedup": _spread(spoken.speedup, 3),
        "first_audio_ms": _spread(spoken.first_ms, 2),
        "ready_s": _spread(starts, 3),
    }
    figures = {name: values and values["median"] for name, values in spreads.items()}
    return {
        "rtf_1": figures["rtf_1"],
        "step_ms": _median(steps.ms[1]),
        "floor_ms": round(steps.floor_ms, 3),
        "step_over_floor": steps.over_floor["median"],
        "rtf_4": figures["rtf_4"],
        "reference_rtf": figures["reference_rtf"],
        "speedup": figures["speedup"],
        "over_llamacpp_1": over[1] and over[1]["median"],
        "over_llamacpp_4": over[4] and over[4]["median"],
        "first_audio_ms": figures["first_audio_ms"],
        "first_audio_p99_4_ms": round(p99, 1),
        "underruns": spoken.underruns,
        "rss_mb": round(soaked.rss_mb, 1),
        "growth_mb": round(soaked.growth_mb, 2),
        "large_allocations": large,
        "outside_engine_pct": _rounded(soaked.outside_engine_pct),
        "ready_s": figures["ready_s"],
        "machine": machine(),
        "spread": {
            **spreads,
            "audio_s": spread(spoken.lengths_s, 2),
            "step_ms": _range(steps.ms[1]),
            "step_4_ms": _range(steps.ms[4]),
            "step_over_floor": steps.over_floor,
            "llamacpp_ms": {rows: spread(ms, 3) for rows, ms in steps.peer_medians.items()} or None,
            "over_llamacpp_1": over[1],
            "over_llamacpp_4": over[4],
            "bandwidth_gb_s": spread(steps.rates, 2),
            "first_audio_4_ms": spread(soaked.first_ms, 1),
        },
        "by_streams": {
            count: {
                "first_audio_ms": _median([first for first, _ in values]),
                "job_rtf": _median([rtf for _, rtf in values]),
            }
            for count, values in spoken.by_streams.items()
        },
        "weight_mb": round(steps.weight_mb, 2),
        "least_slack_ms": spoken.least_slack_ms,
        "stream_s": spread([one.audio_s for one in spoken.long_takes], 1),
        "rss_ready_mb": round(soaked.rss_ready_mb, 1),
        "jobs": soaked.jobs,
        "threads": THREADS,
    }


def _spread(values: Sequence[float], digits: int) -> dict[str, float] | None:
    return spread(values, digits) if values else None


def _median(values: Sequence[float]) -> float | None:
    return _rounded(statistics.median(values)) if values else None


def _rounded(value: float | None) -> float | None:
    """Four figures, or three decimals of a large number."""
    return None if value is None else round(value, 4 if abs(value) < 1 else 3)


def _range(values: Sequence[float]) -> dict[str, float]:
    """Single steps have outliers: the tenth and ninetieth percentiles beside the median."""
    return {
        "p10": round(percentile(values, 0.1), 3),
        "median": round(statistics.median(values), 3),
        "p90": round(percentile(values, 0.9), 3),
    }


# -- peers ----------------------------------------------------------------------------------------


def _has(python: str, module: str) -> bool:
    code = f"import importlib.util as u, sys; sys.exit(u.find_spec({module!r}) is None)"
    return subprocess.run([python, "-c", code], check=False).returncode == 0


def _llamacpp(folder: Path, source: Path, options: Options, say: Say) -> Mapping[str, tuple[Path, str, Path]]:
    """By precision, what the measuring process is told."""
    if not options.peers:
        return {}
    missing = [name for name in ("llama_cpp", "gguf") if not _has(options.python, name)]
    if missing:
        say(f"llama.cpp is left out, not installed: {', '.join(missing)}; {llamacpp.INSTALL}")
        return {}
    kinds = {name: llamacpp.KINDS[name] for name in options.precisions if name in llamacpp.KINDS}
    return {name: (source, kind, folder / f"{kind}.gguf") for name, kind in kinds.items()}


def _reference(source: Path, options: Options, stack: ExitStack, say: Say) -> Turns | None:
    if not options.peers:
        return None
    missing = [name for name in live.PACKAGES if not _has(options.python, name)]
    if missing:
        say(f"the reference package is left out, not installed: {', '.join(missing)}; {live.INSTALL}")
        return None
    return stack.enter_context(Turns("reference", source, python=options.python))
