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


def check_precision(manifest: Manifest) -> None:
    """Before a bundle is taken into use. TensorRT chooses its arithmetic when it builds, so its figures were
    measured then, on the device; a network of ONNX Runtime is compared by `edged bundle verify --against`.
    """
    if manifest.tensorrt is not None:
        judge(manifest.name, manifest.tensorrt.measured, manifest.thresholds)
