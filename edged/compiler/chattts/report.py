"""Writes what `verify.py` measured: report.json for machines, report.md and plots for people.

CLI process only. The plots need matplotlib (extra `build`); the rest does not.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

from edged.compiler.chattts.verify import Measured
from edged.compiler.parts import need

WORST = 12  # weights listed in report.md
_MEANING = {
    "min_weight_snr_db": "signal to noise of the worst weight, dB",
    "min_cache_snr_db": "signal to noise of keys and values in the worst layer, dB",
    "min_token_agreement": "codes drawn alike with the same noise, fraction",
    "max_kl": "divergence of the distribution of codes, mean, nats",
    "min_waveform_snr_db": "signal to noise of the worst waveform from the same hidden states, dB",
}


def rows(measured: Measured) -> list[tuple[str, str, str, str]]:
    """(figure, measured, threshold, verdict)."""
    verdicts = measured.verdicts()
    table = []
    for name, figure in measured.figures().items():
        limit = measured.thresholds.get(name)
        sign = "at least" if name.startswith("min_") else "at most"
        verdict = "" if name not in verdicts else "ok" if verdicts[name] else "FAILED"
        table.append((_MEANING[name], f"{figure:.4g}", "" if limit is None else f"{sign} {limit:g}", verdict))
    return table


def write(measured: Measured, folder: Path) -> list[Path]:
    """Fills the folder, which need not exist; returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    facts: dict[str, Any] = dataclasses.asdict(measured)
    facts |= {"figures": measured.figures(), "verdicts": measured.verdicts()}
    (folder / "report.json").write_text(json.dumps(facts, indent=2, ensure_ascii=False) + "\n", "utf-8")
    plots = _plots(measured, folder)
    (folder / "report.md").write_text(markdown(measured, plots), "utf-8")
    return [folder / "report.json", folder / "report.md", *plots]


def markdown(measured: Measured, plots: list[Path]) -> str:
    lines = [
        f"# Bundle {measured.bundle}, {measured.precision}, against its checkpoint",
        "",
        "The checkpoint is the one it was built from."
        if measured.same_checkpoint
        else "**The checkpoint is not the one it was built from: a file has another SHA-256.**",
        "",
        "| figure | measured | threshold | verdict |",
        "|---|---|---|---|",
        *(f"| {' | '.join(row)} |" for row in rows(measured)),
        "",
        f"Hidden states: {measured.hidden:.1f} dB. The most likely code is the same in "
        f"{measured.greedy:.1%} of all draws.",
        "",
        "## Worst weights",
        "",
        "| weight | bits | signal to noise, dB |",
        "|---|---|---|",
    ]
    worst = sorted(measured.weights, key=lambda name: measured.weights[name])[:WORST]
    lines += [f"| {name} | {measured.bits[name]} | {measured.weights[name]:.1f} |" for name in worst]
    lines += ["", "## Keys and values by layer", "", "| layer | keys, dB | values, dB |", "|---|---|---|"]
    for layer, (key, value) in enumerate(zip(measured.keys, measured.values, strict=True)):
        lines.append(f"| {layer} | {key:.1f} | {value:.1f} |")
    lines += ["", *(f"![{plot.stem}]({plot.name})" for plot in plots), ""]
    return "\n".join(lines)


def _plots(measured: Measured, folder: Path) -> list[Path]:
    need("matplotlib", "build", "a report with plots")
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    layers = list(range(len(measured.keys)))
    drawings: dict[str, tuple[str, str, list[tuple[str, Any, list[float]]]]] = {
        "weights": (
            "weight, in the order of the network",
            "signal to noise, dB",
            [(f"{bits} bits", *_numbered(measured, bits)) for bits in sorted(set(measured.bits.values()))],
        ),
        "cache": (
            "layer",
            "signal to noise, dB",
            [("keys", layers, measured.keys), ("values", layers, measured.values)],
        ),
        "divergence": (
            "step",
            "divergence, nats",
            [("mean over texts and codebooks", list(range(len(measured.divergence))), measured.divergence)],
        ),
    }
    files = []
    for name, (across, up, lines) in drawings.items():
        figure, axes = pyplot.subplots(figsize=(8, 4), layout="constrained")
        for label, x, y in lines:
            axes.plot(x, y, marker=".", linestyle="" if name == "weights" else "-", label=label)
        axes.set(xlabel=across, ylabel=up, title=f"{measured.bundle}, {measured.precision}")
        axes.grid(alpha=0.3)
        axes.legend()
        files.append(folder / f"{name}.png")
        figure.savefig(files[-1], dpi=100, metadata={"Software": None})
        pyplot.close(figure)
    return files


def _numbered(measured: Measured, bits: int) -> tuple[list[int], list[float]]:
    places = [n for n, name in enumerate(measured.weights) if measured.bits[name] == bits]
    values = list(measured.weights.values())
    return places, [values[place] for place in places]
