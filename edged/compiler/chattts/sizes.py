"""Derives every size of a checkpoint from gpt/config.json and from the shapes in the files' headers.

CLI process only. Neighbours: `layout.py` (what the sizes then demand of every tensor), `checkpoint.py`.
A size is taken from one place only; where another tensor disagrees, the comparison with the layout says so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edged.compiler.chattts.layout import CODES, GPT_CONFIG, PARTS, Sizes, Stack, VocosSizes
from edged.errors import CheckpointConfig, CheckpointMissingFile, CheckpointMissingTensor, CheckpointShape

_MAX_LAYERS = 1024  # a number beyond any model keeps a damaged file from costing memory


@dataclass(frozen=True, slots=True)
class GptConfig:
    layers: int
    hidden: int
    heads: int
    head_dim: int
    intermediate: int
    rms_eps: float
    rope_theta: float
    max_positions: int
    counts: dict[str, int]  # token and codebook counts, where the file states them


def read_json(path: Path, label: str) -> dict[str, Any]:
    try:
        value = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        raise CheckpointMissingFile(f"{label}: no such file in {path.parent}") from None
    except OSError as error:
        raise CheckpointConfig(f"{label}: {error.strerror}", f"look at {path}") from error
    except (ValueError, RecursionError) as error:
        raise CheckpointConfig(f"{label}: not valid JSON: {error}") from error
    if not isinstance(value, dict):
        raise CheckpointConfig(f"{label}: not a JSON object")
    return value


def read_config(path: Path) -> GptConfig:
    """gpt/config.json; refuses variants of the architecture that the graphs do not build."""
    raw = read_json(path, GPT_CONFIG)
    hidden, heads = _whole(raw, "hidden_size"), _whole(raw, "num_attention_heads")
    head_dim = _whole(raw, "head_dim", hidden // heads)
    if head_dim * heads != hidden or head_dim % 2:
        raise CheckpointConfig(
            f"{GPT_CONFIG}: num_attention_heads {heads} of {head_dim} do not fit hidden_size {hidden}"
        )
    rope = raw.get("rope_parameters") or {}  # where newer versions of transformers keep it
    scaling = raw.get("rope_scaling") or rope
    kind = scaling.get("rope_type", scaling.get("type", "default")) if isinstance(scaling, dict) else scaling
    for key, value, supported in (
        ("model_type", raw.get("model_type", "llama"), "llama"),
        ("hidden_act", raw.get("hidden_act", "silu"), "silu"),
        ("attention_bias", raw.get("attention_bias", False), False),
        ("mlp_bias", raw.get("mlp_bias", False), False),
        ("num_key_value_heads", raw.get("num_key_value_heads") or heads, heads),
        ("rope_scaling", kind, "default"),
    ):
        if value != supported:
            raise CheckpointConfig(f"{GPT_CONFIG}: {key} is {value!r}; only {supported!r} is supported")
    theta = rope.get("rope_theta") if isinstance(rope, dict) else None
    counts = {
        key: _whole(raw, key)
        for key in ("num_audio_tokens", "num_text_tokens", "num_vq")
        if raw.get(key) is not None
    }
    return GptConfig(
        layers=_whole(raw, "num_hidden_layers", most=_MAX_LAYERS),
        hidden=hidden,
        heads=heads,
        head_dim=head_dim,
        intermediate=_whole(raw, "intermediate_size"),
        rms_eps=_positive(raw, "rms_norm_eps", 1e-6),
        rope_theta=_positive(raw if theta is None else rope, "rope_theta", 10_000.0),
        max_positions=_whole(raw, "max_position_embeddings"),
        counts=counts,
    )


def _whole(raw: Mapping[str, Any], key: str, default: int | None = None, most: int = 1 << 24) -> int:
    value = default if raw.get(key) is None else raw[key]
    if type(value) is not int or not 1 <= value <= most:
        what = "missing" if value is None else repr(value)
        raise CheckpointConfig(f"{GPT_CONFIG}: {key} is {what}; expected a whole number from 1 to {most}")
    return value


def _positive(raw: Mapping[str, Any], key: str, default: float) -> float:
    value = raw.get(key, default)
    if type(value) not in (int, float) or not 0 < value < 1e12:
        raise CheckpointConfig(f"{GPT_CONFIG}: {key} is {value!r}; expected a positive number")
    return float(value)


class Headers:
    """The shapes in the headers of all parts, by part and by name."""

    def __init__(self, shapes: Mapping[str, Mapping[str, tuple[int, ...]]]) -> None:
        self._shapes = shapes

    def size(self, part: str, name: str, axis: int, dims: int) -> int:
        """One dimension of a tensor that must be there with that many dimensions."""
        shape = self._shapes[part].get(name)
        if shape is None:
            raise CheckpointMissingTensor(f"{PARTS[part]}: tensor {name!r} is missing")
        if len(shape) != dims or shape[axis] < 1:
            raise CheckpointShape(f"{PARTS[part]}: tensor {name!r} has the shape {shape}")
        return shape[axis]

    def count(self, part: str, prefix: str) -> int:
        """How many different numbers follow the prefix. A gap among them shows later, as what is missing."""
        pattern = re.compile(re.escape(prefix) + r"\.(\d+)\.")
        found = {match[1] for match in map(pattern.match, self._shapes[part]) if match}
        return min(len(found), _MAX_LAYERS)


def derive(config: GptConfig, headers: Headers) -> Sizes:
    """All sizes. What they demand of each tensor is checked by the caller, with `layout.tensors`."""
    audio_tokens = headers.size("embed", "emb_code.0.weight", 0, 2)
    text_tokens = headers.size("embed", "emb_text.weight", 0, 2)
    codebooks = headers.count("embed", "emb_code")
    if audio_tokens != CODES + 1:
        raise CheckpointShape(
            f"{PARTS['embed']}: tensor 'emb_code.0.weight' has {audio_tokens} rows, "
            f"but the codes of the DVAE and the end token are {CODES + 1}"
        )
    for key, found in (
        ("num_audio_tokens", audio_tokens),
        ("num_text_tokens", text_tokens),
        ("num_vq", codebooks),
    ):
        stated = config.counts.get(key, found)
        if stated != found:
            raise CheckpointConfig(
                f"{GPT_CONFIG}: {key} is {stated}, but {PARTS['embed']} holds tensors for {found}"
            )
    groups = headers.count("dvae", "vq_layer.quantizer.rvqs")
    if groups == 0 or codebooks % groups:
        raise CheckpointShape(
            f"{PARTS['dvae']}: {groups} groups of 'vq_layer.quantizer.rvqs' do not share "
            f"{codebooks} codebooks evenly"
        )
    width = headers.size("dvae", "downsample_conv.0.weight", 0, 3)
    return Sizes(
        layers=config.layers,
        hidden=config.hidden,
        heads=config.heads,
        head_dim=config.head_dim,
        intermediate=config.intermediate,
        rms_eps=config.rms_eps,
        rope_theta=config.rope_theta,
        max_positions=config.max_positions,
        audio_tokens=audio_tokens,
        text_tokens=text_tokens,
        codebooks=codebooks,
        # A decoder step is two mel frames: each gets one half of its channels.
        decoder=_stack(headers, "decoder", "decoder", config.hidden // 2, config.hidden // 2),
        dvae_encoder=_stack(headers, "dvae", "encoder", width, 2 * width),
        dvae_decoder=_stack(headers, "dvae", "decoder", width, width),
        groups=groups,
        vocos=VocosSizes(
            hidden=headers.size("vocos", "backbone.embed.weight", 0, 3),
            intermediate=headers.size("vocos", "backbone.convnext.0.pwconv1.weight", 0, 2),
            layers=headers.count("vocos", "backbone.convnext"),
        ),
    )


def _stack(headers: Headers, part: str, at: str, inputs: int, outputs: int) -> Stack:
    return Stack(
        inputs=inputs,
        outputs=outputs,
        bottleneck=headers.size(part, f"{at}.conv_in.0.weight", 0, 3),
        hidden=headers.size(part, f"{at}.conv_in.2.weight", 0, 3),
        intermediate=headers.size(part, f"{at}.decoder_block.0.pwconv1.weight", 0, 2),
        layers=headers.count(part, f"{at}.decoder_block"),
    )


def listed(names: Iterable[str], most: int = 3) -> str:
    """'a', 'b', 'c' and 4 more"""
    ordered = list(names)
    text = ", ".join(repr(name) for name in ordered[:most])
    return f"{text} and {len(ordered) - most} more" if len(ordered) > most else text
