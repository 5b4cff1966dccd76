"""Whether a bundle's numbers are near enough to its checkpoint's: figures against thresholds. Leaf data.

The compiler measures (`edged.compiler`), the manifest keeps the figures beside their thresholds, and whoever
takes a bundle into use asks here. No thread, no arrays. Names say what a threshold means: `min_...` at least,
`max_...` at most.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from edged.errors import BundleInaccurate
from edged.manifest import Manifest

UNMEASURED = "build it anew on this machine, which measures it: edged bundle build ... --backend tensorrt"


@dataclass(frozen=True, slots=True)
class Verdict:
    """One figure. measured: None where the bundle has none; limit: None where nothing was demanded."""

    name: str
    measured: float | None
    limit: float | None

    @property
    def passed(self) -> bool:
        """A figure or limit that is missing or no number must not pass for one that was met."""
        if self.measured is None or self.limit is None or not math.isfinite(self.limit):
            return False
        if self.name.startswith("min_"):
            return self.measured >= self.limit
        return self.measured <= self.limit

    def __str__(self) -> str:
        measured = "not measured" if self.measured is None else f"{self.measured:.4g}"
        if self.limit is None:
            return f"{self.name}: {measured}, without a threshold"
        sign = "at least" if self.name.startswith("min_") else "at most"
        return f"{self.name}: {measured}, {sign} {self.limit:g} is wanted"


def verdicts(measured: Mapping[str, float], thresholds: Mapping[str, float]) -> list[Verdict]:
    """Of every figure that was measured or demanded."""
    names = dict.fromkeys((*thresholds, *measured))
    return [Verdict(name, measured.get(name), thresholds.get(name)) for name in names]


def judge(what: str, measured: Mapping[str, float], thresholds: Mapping[str, float]) -> None:
    """Raises `BundleInaccurate` with every figure that is missing or beyond its threshold."""
    found = verdicts(measured, thresholds)
    if not found:
        raise BundleInaccurate(f"{what}: its precision was never measured", UNMEASURED)
    failed = [verdict for verdict in found if not verdict.passed]
    if failed:
        told = "; ".join(map(str, failed))
        unknown = any(verdict.measured is None for verdict in failed)
        raise BundleInaccurate(f"{what}: {told}", UNMEASURED if unknown else None)


# What is measured of every bundle for TensorRT, and the loosest threshold of it that means anything: that of
# 4-bit weights. A manifest can ask for more, not for less, and can leave none of them out.
LOOSEST = {
    "min_hidden_snr_db": 3.0,
    "max_logit_error": 10.0,
    "max_kl": 0.3,
    "min_token_agreement": 0.12,
    "min_waveform_snr_db": 40.0,
}


def check_precision(manifest: Manifest) -> None:
    """Before a bundle is taken into use. TensorRT chooses its arithmetic when it builds, so its figures were
    measured then, on the device; a network of ONNX Runtime is compared by `edged bundle verify --against`.
    """
    if manifest.tensorrt is not None:
        judge(manifest.name, manifest.tensorrt.measured, demanded(manifest.thresholds))


def demanded(thresholds: Mapping[str, float]) -> dict[str, float]:
    """The thresholds of a bundle for TensorRT that count, no looser than `LOOSEST`. Without any, none."""
    if not thresholds:
        return {}
    found = dict(thresholds)
    for name, loosest in LOOSEST.items():
        limit = found.get(name, loosest)
        stricter = max if name.startswith("min_") else min
        found[name] = stricter(limit, loosest) if math.isfinite(limit) else limit
    return found
