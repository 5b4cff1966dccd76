"""What a build was asked for, checked. CLI process only; for `build.py`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal, get_args

from edged.errors import BadValue, did_you_mean

Precision = Literal["fp32", "int8", "int4"]
PRECISIONS: tuple[Precision, ...] = get_args(Precision)
OVERRIDES = (*PRECISIONS, "fp16")  # fp16 is for the embedding tables
TABLES = ("emb_text", "emb_code", "head_text", "head_code")
MAX_TEXT = 80  # tokens of an utterance's text: about 16 s of speech, which is what the cache holds


@dataclass(frozen=True)
class Options:
    """What a build was asked for. positions: of the cache, for prompt and speech of one utterance."""

    precision: Precision
    overrides: tuple[tuple[str, str], ...]
    positions: int
    slots: int
    extras: tuple[str, ...] = ()
    calibrated: bool = False

    @property
    def max_text(self) -> int:
        return min(MAX_TEXT, self.positions // 4)

    @property
    def max_steps(self) -> int:
        return self.positions * 3 // 4

    def vocoder(self) -> tuple[str, tuple[str, ...]]:
        """(precision, patterns of layers that stay fp32). No 4-bit form: it is not bound by memory."""
        keep = tuple(pattern for pattern, precision in self.overrides if precision == "fp32")
        return ("fp32" if self.precision == "fp32" else "int8"), keep


def check(
    precision: str,
    overrides: Sequence[str],
    positions: int,
    slots: int,
    extras: tuple[str, ...],
    calibrated: bool,
) -> Options:
    """Raises `BadValue`."""
    if not 64 <= positions <= 8192 or not 1 <= slots <= 64:
        raise BadValue(
            f"positions {positions}, slots {slots}", "choose 64 to 8192 positions and 1 to 64 slots"
        )
    return Options(_precision(precision), _overrides(overrides), positions, slots, extras, calibrated)


def check_overrides(overrides: Sequence[tuple[str, str]], layers: int) -> None:
    """Raises `BadValue` for a pattern that matches no layer."""
    parts = ("qkv", "out", "gate_up", "down")
    names = [*TABLES, *(f"layers.{layer}.{part}" for layer in range(layers) for part in parts)]
    for pattern, _ in overrides:
        sound = pattern.startswith(("decoder.", "dvae.", "vocos."))  # layers of the vocoder
        if not sound and not any(fnmatchcase(name, pattern) for name in names):
            raise BadValue(
                f"override {pattern!r} matches no layer",
                f"the layers are {', '.join(TABLES)}, layers.0 to layers.{layers - 1}, each with "
                f"{', '.join(parts)}; and decoder.* and vocos.*",
            )


def _precision(precision: str) -> Precision:
    for known in PRECISIONS:
        if known == precision:
            return known
    hint = did_you_mean(precision, PRECISIONS) or f"choose one of {', '.join(PRECISIONS)}"
    raise BadValue(f"no precision {precision!r}", hint)


def _overrides(given: Sequence[str]) -> tuple[tuple[str, str], ...]:
    pairs = []
    for text in given:
        pattern, equals, precision = text.partition("=")
        if not (equals and pattern and precision in OVERRIDES):
            raise BadValue(
                f"override {text!r}",
                f"expected PATTERN=PRECISION, such as 'layers.0.*=int8'; one of {', '.join(OVERRIDES)}",
            )
        pairs.append((pattern, precision))
    return tuple(pairs)
