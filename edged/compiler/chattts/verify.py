"""How far a bundle is from the checkpoint it was built from: weights, tokens, sound, in numbers.

CLI process only. The checkpoint is built once more as fp32 in a temporary folder and both are compared.
Neighbours: `teach.py` runs the two networks, `stored.py` reads weights, `report.py` writes the results.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edged import settings
from edged.bundle import Bundle
from edged.compiler.chattts import teach
from edged.compiler.chattts.checkpoint import Checkpoint
from edged.compiler.chattts.gpt import build_gpt
from edged.compiler.chattts.options import PROMPT_PIECE
from edged.compiler.chattts.stored import StoredWeights
from edged.compiler.chattts.vocoder import build_vocoder
from edged.compiler.graph import Interface
from edged.compiler.parts import Progress, within
from edged.engine.buffers import Arena
from edged.engine.select import TENSORRT
from edged.errors import BundleError
from edged.voices.chattts.sound import whole
from edged.voices.chattts.voice import engine


@dataclass(frozen=True)
class Measured:
    """Everything measured. Names are those of the graphs' weights and layers."""

    bundle: str
    precision: str
    same_checkpoint: bool
    weights: dict[str, float]  # dB
    bits: dict[str, int]
    keys: list[float]  # dB, by layer
    values: list[float]
    hidden: float  # dB
    divergence: list[float]  # nats, by step, over texts and codebooks
    drawn: float  # fraction of codes drawn alike with the same noise
    greedy: float  # fraction of codes with the same most likely one
    waveforms: list[float]  # dB, by text
    thresholds: dict[str, float]

    def figures(self) -> dict[str, float]:
        """What the thresholds are compared with, by their names."""
        return {
            "min_weight_snr_db": min(self.weights.values()),
            "min_cache_snr_db": min(*self.keys, *self.values),
            "min_token_agreement": self.drawn,
            "max_kl": float(np.mean(self.divergence)),
            "min_waveform_snr_db": min(self.waveforms),
        }

    def verdicts(self) -> dict[str, bool]:
        figures = self.figures()
        # A manifest without a usable limit must not pass for one that was met.
        unlimited = {name: False for name in figures if name not in self.thresholds}
        return unlimited | {
            name: (figures[name] >= limit) if name.startswith("min_") else (figures[name] <= limit)
            for name, limit in self.thresholds.items()
            if name in figures
        }


def measure(bundle: Bundle, checkpoint: Path, progress: Progress) -> Measured:
    """Takes about a minute and 2 GB for a full-size bundle."""
    if bundle.manifest.family != "chattts":
        raise BundleError(
            f"{bundle.path}: only bundles of family chattts can be compared with a checkpoint", ""
        )
    if bundle.manifest.backend == TENSORRT:
        raise BundleError(
            f"{bundle.path}: plans cannot be read back",
            "they were compared with the checkpoint when they were built: see edged bundle verify",
        )
    with tempfile.TemporaryDirectory(prefix="edged-verify-") as folder, Checkpoint.open(checkpoint) as source:
        caches = sum(tensor.name.startswith("past_k") for tensor in bundle.engine("gpt").inputs)
        ours, theirs = (bundle.limit("hidden"), caches), (source.sizes.hidden, source.sizes.layers)
        if ours != theirs:
            raise BundleError(
                f"{bundle.path}: was built from a checkpoint of another size (width and layers {ours}, "
                f"here {theirs})",
                "compare it with the checkpoint it was built from",
            )
        gpt, vocoder = Path(folder) / "gpt.onnx", Path(folder) / "vocoder.onnx"
        rows = teach.prompts(bundle)
        positions = max(len(ids) for ids, _ in rows) + teach.STEPS
        made = build_gpt(
            source,
            gpt,
            positions=positions,
            slots=1,
            prompt=PROMPT_PIECE,
            progress=within(progress, 0.0, 0.25),
        )
        spoken = build_vocoder(source, vocoder, steps=teach.STEPS, progress=within(progress, 0.25, 0.3))
        recorded = {f"checkpoint {file}": digest for file, digest in source.fingerprint().items()}
        progress("weights", 0.3)
        weights, bits = _weights(gpt, bundle.engine_path("gpt"))
        more = _weights(vocoder, bundle.engine_path("vocoder"))
        weights, bits = weights | more[0], bits | more[1]
        compared = teach.compare(bundle, gpt, made, rows, within(progress, 0.4, 0.85))
        progress("waveforms", 0.85)
        waveforms = _waveforms(bundle, vocoder, spoken, compared.hiddens)
        progress("done", 1.0)
    facts = bundle.manifest.provenance
    return Measured(
        bundle=bundle.manifest.name,
        precision=bundle.manifest.precision,
        same_checkpoint=all(facts.get(name) == digest for name, digest in recorded.items()),
        weights=weights,
        bits=bits,
        keys=compared.keys,
        values=compared.values,
        hidden=compared.hidden,
        divergence=compared.divergence,
        drawn=compared.drawn,
        greedy=compared.greedy,
        waveforms=waveforms,
        thresholds=bundle.manifest.thresholds,
    )


def _weights(reference: Path, built: Path) -> tuple[dict[str, float], dict[str, int]]:
    expected, found = StoredWeights(reference), StoredWeights(built)
    common = [name for name in expected.names() if found.has(name)]
    return (
        {name: teach.snr_db(expected.value(name), found.value(name)) for name in common},
        {name: found.bits(name) for name in common},
    )


# -- sound --------------------------------------------------------------------------------------


def _waveforms(
    bundle: Bundle, path: Path, interface: Interface, hiddens: list[NDArray[np.float32]]
) -> list[float]:
    """The same hidden states through both vocoders."""
    built = engine(bundle, "vocoder", settings.Engine(), Arena())
    try:
        with teach.loaded(path, interface, "reference") as original:
            return [teach.snr_db(whole(original, hidden), whole(built, hidden)) for hidden in hiddens]
    finally:
        built.close()
