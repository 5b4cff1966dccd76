"""Whether a ChatTTS manifest has the tensors that its voices use, and limits that fit them.

Loading thread, before an engine is loaded. What does not fit would fail in the warm-up, or on the
first long sentence, by an error that names neither. Neighbours: `voice.py` asks before it opens a bundle;
the compiler leaves the same room in a prompt.
"""

from __future__ import annotations

from edged.bundle import Bundle
from edged.engine.api import Shape
from edged.errors import BundleManifestInvalid

CONTROLS = 4  # tokens of a code prompt besides the texts: [Stts] [spk_emb] [speed_N] [Ptts]
# Limits that say what the network is, and where it says it itself: engine, tensor, axis.
_SAME = {
    "codebooks": (("gpt", "ids", 2), ("gpt", "codes", 1)),
    "hidden": (("gpt", "speaker", 1), ("gpt", "hidden", 1), ("vocoder", "hidden", 2)),
}
# What every engine has, with the number of its axes.
_AXES = {
    "gpt": {
        **dict.fromkeys(("ids", "history"), 3),
        **dict.fromkeys(("text", "speaker", "uniform", "codes", "hidden"), 2),
        **dict.fromkeys(("lengths", "last", "refine", "ban_end", "greedy", "end"), 1),
        **dict.fromkeys(("temperature", "top_p", "top_k", "penalty"), 1),
    },
    "vocoder": {"hidden": 3, "samples": 2},
}


def check(bundle: Bundle) -> None:
    """Raises `BundleManifestInvalid`, which names the tensor, and the limit where it is one."""
    for engine, tensors in _AXES.items():
        for tensor, axes in tensors.items():
            if len(_shape(bundle, engine, tensor)) != axes:
                raise _missing(bundle, engine, tensor)
    for entry in bundle.manifest.engines:
        if any(len(t.shape) != 4 for t in entry.inputs if t.name.startswith(("past_k", "past_v"))):
            raise _missing(bundle, entry.name, "past_...")
    for limit, places in _SAME.items():
        value = bundle.limit(limit)
        for engine, tensor, axis in places:
            size = _size(bundle, engine, tensor, axis)
            if value != size:
                raise _invalid(bundle, limit, value, f"{engine}.{tensor} has {size} in axis {axis}")
    cache = next((t.name for t in bundle.engine("gpt").inputs if t.name.startswith("past_")), "past_k.0")
    positions = _size(bundle, "gpt", cache, 2)
    piece = bundle.limit("prompt_piece")
    most = min(positions, _size(bundle, "gpt", "ids", 1))
    if piece > most:
        raise _invalid(bundle, "prompt_piece", piece, f"one run takes {most} tokens at most")
    prompt, text = bundle.limit("max_prompt"), bundle.limit("max_text")
    if prompt >= positions:
        raise _invalid(bundle, "max_prompt", prompt, f"the cache holds {positions} tokens, speech included")
    if text + CONTROLS > prompt:
        told = f"a prompt holds {prompt} tokens (max_prompt), {CONTROLS} of which are controls"
        raise _invalid(bundle, "max_text", text, told)


def _size(bundle: Bundle, engine: str, tensor: str, axis: int) -> int:
    shape = _shape(bundle, engine, tensor)
    if axis >= len(shape):
        raise _missing(bundle, engine, tensor)
    return shape[axis]


def _shape(bundle: Bundle, engine: str, tensor: str) -> Shape:
    """() where it is not there."""
    entry = bundle.engine(engine)
    return next((t.shape for t in (*entry.inputs, *entry.outputs) if t.name == tensor), ())


def _missing(bundle: Bundle, engine: str, tensor: str) -> BundleManifestInvalid:
    return BundleManifestInvalid(f"{bundle.path}: {engine}.{tensor} is missing or of the wrong shape")


def _invalid(bundle: Bundle, limit: str, value: int, told: str) -> BundleManifestInvalid:
    return BundleManifestInvalid(f"{bundle.path}: the limit {limit} is {value}, but {told}")
