"""What a build was asked for, checked. CLI process only; for `build.py`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib.metadata import version
from typing import Literal, get_args

from edged.engine.select import TENSORRT
from edged.errors import BadValue, did_you_mean

Precision = Literal["fp32", "fp16", "int8", "int4"]
# By backend; the first is the default. A CPU gets its speed from small weights. On a GPU 16 bits are near
# enough to fp32 (51 dB at full size, where 8 bits have 24), and what a step reads of them, 0.45 GB, takes
# 7 ms at the 68 GB/s of an Orin Nano, of the 21 ms that a step may take. Computed: no GPU measured it.
PRECISIONS: dict[str, tuple[Precision, ...]] = {
    "onnxruntime": ("int4", "int8", "fp32"),
    TENSORRT: ("fp16", "int8", "int4", "fp32"),
}
Cache = Literal["float32", "float16", "int8"]
CACHES: tuple[Cache, ...] = get_args(Cache)
CACHE_8_BITS = (1, 27)  # the ONNX Runtime from which on a CPU runs a cache of 8 bits; 1.25 fails
OVERRIDES = get_args(Precision)  # fp16 is for the embedding tables, and for all matrices of TensorRT
# What the code head multiplies decides every draw, and is 2 % of the bytes of a step.
EXACT_HEAD = ("head_code", "fp32")
TABLES = ("emb_text", "emb_code", "head_text", "head_code")
PROMPT_PIECE = 48  # tokens of a prompt in one run: about as long as five steps of all slots
MAX_TEXT = 80  # tokens of an utterance's text: about 16 s of speech, which is what the cache holds


@dataclass(frozen=True)
class Options:
    """What a build was asked for. positions: of the cache, for prompt and speech of one utterance."""

    precision: Precision
    overrides: tuple[tuple[str, str], ...]
    positions: int
    slots: int
    kv: Cache
    extras: tuple[str, ...] = ()
    calibrated: bool = False
    backend: str = "onnxruntime"

    @property
    def max_text(self) -> int:
        return min(MAX_TEXT, self.positions // 4)

    @property
    def max_steps(self) -> int:
        return self.positions * 3 // 4

    def vocoder(self) -> tuple[str, tuple[str, ...]]:
        """(precision, patterns of layers that stay fp32). No 4-bit form: it is not bound by memory, and on a
        GPU no 8-bit form either."""
        keep = tuple(pattern for pattern, precision in self.overrides if precision == "fp32")
        small = "fp16" if self.backend == TENSORRT else "int8"
        return ("fp32" if self.precision == "fp32" else small), keep


def check(
    precision: str,
    overrides: Sequence[str],
    positions: int,
    slots: int,
    kv: str,
    extras: tuple[str, ...],
    calibrated: bool,
    backend: str = "onnxruntime",
) -> Options:
    """precision, kv: "" for the backend's default. Raises `BadValue`."""
    if not 64 <= positions <= 8192 or not 1 <= slots <= 64:
        raise BadValue(
            f"positions {positions}, slots {slots}", "choose 64 to 8192 positions and 1 to 64 slots"
        )
    chosen = _precision(precision, backend)
    if backend == TENSORRT and extras:
        raise BadValue(
            f"the backend {backend} has no engine for: {', '.join(extras)}",
            "enroll with a bundle for onnxruntime: the codes of a speaker are the same",
        )
    given = _overrides(overrides)
    if backend == TENSORRT:
        given = (EXACT_HEAD, *given)
    cache = _cache(kv, chosen, backend)
    return Options(chosen, given, positions, slots, cache, extras, calibrated, backend)


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


def _precision(precision: str, backend: str) -> Precision:
    choice = PRECISIONS[backend]
    for known in choice:
        if known == (precision or choice[0]):
            return known
    hint = did_you_mean(precision, choice) or f"choose one of {', '.join(choice)}"
    raise BadValue(f"no precision {precision!r} for {backend}", hint)


def _cache(kv: str, precision: Precision, backend: str) -> Cache:
    """ "" is the smallest that costs no accuracy worth mentioning beside that of the weights."""
    if backend == TENSORRT:
        wanted: Cache = "float32" if precision == "fp32" else "float16"
        if kv not in ("", wanted):
            raise BadValue(f"kv {kv}: TensorRT multiplies with the cache as it is", f"choose {wanted}")
        return wanted
    able = tuple(int(part) for part in version("onnxruntime").split(".")[:2]) >= CACHE_8_BITS
    if not kv:
        return "float32" if precision == "fp32" else "int8" if able else "float16"
    if kv == "int8" and not able:
        raise BadValue(
            "kv int8: this ONNX Runtime has no 8-bit cache",
            f"install onnxruntime {'.'.join(map(str, CACHE_8_BITS))} or newer, or choose float16",
        )
    for known in CACHES:
        if known == kv:
            return known
    raise BadValue(f"no cache type {kv!r}", did_you_mean(kv, CACHES) or f"choose one of {', '.join(CACHES)}")


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
