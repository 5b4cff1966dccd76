"""Writes a checkpoint of the published layout with random weights, for tests and benchmarks.

Run by `tools/make_checkpoint` and by the tests. Neighbours: `layout.py` says what is written,
`tensorfile.py` writes it. Every tensor has a random stream of its own, from the seed and its name.

The weights mean nothing, but their scale is that of a trained model: activations keep their size through
all layers, attention looks back, every residual branch matters, codes vary, and a generation ends after
some tens to hundreds of steps. What is wrong in a graph therefore shows in its output.
"""

from __future__ import annotations

import json
import math
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edged.bundle_write import building
from edged.compiler.chattts import layout
from edged.compiler.chattts.layout import Sizes, Stack, VocosSizes
from edged.compiler.chattts.random_tokenizer import write_tokenizer
from edged.compiler.chattts.tensorfile import Tensor, write

FULL = Sizes(
    layers=20,
    hidden=768,
    heads=12,
    head_dim=64,
    intermediate=3072,
    rms_eps=1e-6,
    rope_theta=10_000.0,
    max_positions=4096,
    audio_tokens=626,
    text_tokens=21_178,
    codebooks=4,
    decoder=Stack(384, 384, 128, 512, 2048, 12),
    dvae_encoder=Stack(512, 1024, 128, 256, 1024, 12),
    dvae_decoder=Stack(512, 512, 128, 256, 1024, 12),
    groups=2,
    vocos=VocosSizes(512, 1536, 8),
)
TINY = Sizes(
    layers=2,
    hidden=64,
    heads=4,
    head_dim=16,
    intermediate=256,
    rms_eps=1e-6,
    rope_theta=10_000.0,
    max_positions=4096,
    audio_tokens=626,
    text_tokens=512,
    codebooks=4,
    decoder=Stack(32, 32, 16, 64, 256, 2),
    dvae_encoder=Stack(48, 96, 16, 32, 128, 2),
    dvae_decoder=Stack(48, 48, 16, 32, 128, 2),
    groups=2,
    vocos=VocosSizes(64, 192, 2),
)
SIZES = {"tiny": TINY, "full": FULL}
DTYPES = {"fp32": "F32", "fp16": "F16", "bf16": "BF16"}

# Logits have about this standard deviation. At temperature 0.3 and top-p 0.7 some ten of 626 codes stay.
LOGIT_STD = 1.0
# The end tokens' logits relative to the others', which is what sets the length of a generation.
END_OF_SPEECH_STD = 1.0
END_OF_TEXT_STD = 2.0

# Standard deviation of a weight matrix times the root of its inputs, by the end of its name.
_GAINS = (
    (r"gpt:.*\.(q|k)_proj\.weight", 1.3),  # scores of about 1.7: attention prefers some tokens to others
    (r"gpt:.*\.(o|down)_proj\.weight", 0.06),  # a layer adds about half of what an embedding measures
    (r"dvae:vq_layer\..*\.project_out\.weight", 1.4),
    (r".*\.(conv_in\.0|downsample_conv\.\d|pwconv1)\.weight", math.sqrt(2)),  # before a GELU
)


@dataclass(frozen=True)
class _Recipe:
    sizes: Sizes
    seed: int
    layer_scale: float

    def tensor(self, part: str, name: str, shape: tuple[int, ...]) -> NDArray[np.float32]:
        generator = np.random.default_rng([self.seed, zlib.crc32(f"{part}:{name}".encode())])

        def normal(mean: float, deviation: float) -> NDArray[np.float32]:
            values = generator.standard_normal(shape, np.float32)
            values *= np.float32(deviation)
            values += np.float32(mean)
            return values

        if name == "coef":  # scales the decoders' output to log mel, so it is positive
            return generator.uniform(2.0, 6.0, shape).astype(np.float32)
        if re.search(r"decoder_block\.\d+\.weight$|\.gamma$", name):
            return normal(self.layer_scale, 0.1 * self.layer_scale)
        if re.search(r"norm\.weight$", name):
            return normal(1.0, 0.1)
        if name.startswith("head.out."):
            return _spectrum_head(name, normal, generator)
        if name.endswith(".bias"):
            return normal(0.0, 0.1)
        if name.startswith("emb_"):  # a step's embedding is the sum over the codebooks
            return normal(0.0, 0.02 if name.startswith("emb_code") else 0.04)
        if name.startswith("head_"):
            return self._head(name, normal)
        gain = next((g for pattern, g in _GAINS if re.fullmatch(pattern, f"{part}:{name}")), 1.0)
        return normal(0.0, gain / math.sqrt(math.prod(shape[1:])))

    def _head(self, name: str, normal: Callable[[float, float], NDArray[np.float32]]) -> NDArray[np.float32]:
        if name.endswith("original1"):
            return normal(0.0, 0.02)
        magnitudes = normal(LOGIT_STD, 0.1 * LOGIT_STD)
        if name.startswith("head_code"):
            magnitudes[-1] = END_OF_SPEECH_STD
        else:
            first = self.sizes.text_tokens - len(layout.CONTROL_TOKENS)
            magnitudes[first + layout.CONTROL_TOKENS.index("[Ebreak]")] = END_OF_TEXT_STD
        return magnitudes


def _spectrum_head(
    name: str, normal: Callable[[float, float], NDArray[np.float32]], generator: np.random.Generator
) -> NDArray[np.float32]:
    """Log magnitudes that fall towards high frequencies, then phases of all values."""
    values = normal(0.0, 1.0)
    half = len(values) // 2
    if name.endswith("weight"):
        root = math.sqrt(values.shape[1])
        values[:half] *= np.float32(0.7 / root)
        values[half:] *= np.float32(2.0 / root)
    else:
        values[:half] = np.linspace(1.0, -4.0, half)  # about -20 dB of full scale in all
        values[half:] = generator.uniform(-math.pi, math.pi, half)
    return values


def _hann() -> NDArray[np.float32]:
    """The periodic window."""
    phase = 2 * math.pi * np.arange(layout.N_FFT) / layout.N_FFT
    return (0.5 - 0.5 * np.cos(phase)).astype(np.float32)


def _mel_filters() -> NDArray[np.float32]:
    """Triangles between points that are even on the HTK mel scale, [bins, mels]."""
    top = layout.SAMPLE_RATE / 2
    points = 700 * (10 ** (np.linspace(0, 2595 * np.log10(1 + top / 700), layout.MELS + 2) / 2595) - 1)
    bins = np.linspace(0, top, layout.N_FFT // 2 + 1)[:, None]
    rising = (bins - points[:-2]) / np.diff(points)[:-1]
    falling = (points[2:] - bins) / np.diff(points)[1:]
    return np.maximum(0, np.minimum(rising, falling)).astype(np.float32)


# Tables that the published files carry although they can be computed; always float32.
_TABLES: dict[str, dict[str, Callable[[], NDArray[np.float32]]]] = {
    "dvae": {
        "preprocessor_mel.mel_spec.spectrogram.window": _hann,
        "preprocessor_mel.mel_spec.mel_scale.fb": _mel_filters,
    },
    "vocos": {
        "feature_extractor.mel_spec.spectrogram.window": _hann,
        "feature_extractor.mel_spec.mel_scale.fb": _mel_filters,
        "head.istft.window": _hann,
    },
}


def make_checkpoint(
    out: Path,
    sizes: Sizes = TINY,
    *,
    seed: int = 1,
    layer_scale: float = 0.3,
    dtype: str = "fp32",
    progress: Callable[[str], None] = lambda file: None,
) -> Path:
    """Writes `out/asset/...` whole or not at all; the same arguments give the same bytes."""
    recipe = _Recipe(sizes, seed, layer_scale)
    with building(out) as work:
        asset = work / "asset"
        for folder in ("gpt", "tokenizer"):
            (asset / folder).mkdir(parents=True)
        for part, file in layout.PARTS.items():
            progress(file)
            write(asset / file, _tensors(part, recipe, DTYPES[dtype]))
        progress("tokenizer")
        (asset / layout.GPT_CONFIG).write_text(json.dumps(_config(sizes, dtype), indent=2) + "\n")
        write_tokenizer(asset / "tokenizer", sizes.text_tokens)
    return out


def _tensors(part: str, recipe: _Recipe, dtype: str) -> Iterator[Tensor]:
    for name, shape in layout.tensors(part, recipe.sizes).items():
        stored = {name: shape}
        if name.startswith("head_"):  # the heads are weight-normalised: magnitude and direction
            at = name.removesuffix("weight") + "parametrizations.weight.original"
            stored = {f"{at}0": (shape[0], 1), f"{at}1": shape}
        for one, size in stored.items():
            yield Tensor(one, size, dtype, partial(recipe.tensor, part, one, size))
    for name, make in _TABLES.get(part, {}).items():
        yield Tensor(name, make().shape, "F32", make)


def _config(s: Sizes, dtype: str) -> dict[str, object]:
    return {
        "architectures": ["LlamaModel"],
        "attention_bias": False,
        "attention_dropout": 0.0,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "hidden_act": "silu",
        "hidden_size": s.hidden,
        "initializer_range": 0.02,
        "intermediate_size": s.intermediate,
        "max_position_embeddings": s.max_positions,
        "mlp_bias": False,
        "model_type": "llama",
        "num_attention_heads": s.heads,
        "num_audio_tokens": s.audio_tokens,
        "num_hidden_layers": s.layers,
        "num_key_value_heads": s.heads,
        "num_text_tokens": s.text_tokens,
        "num_vq": s.codebooks,
        "pretraining_tp": 1,
        "rms_norm_eps": s.rms_eps,
        "rope_scaling": None,
        "rope_theta": s.rope_theta,
        "spk_KL": False,
        "spk_emb_dim": s.hidden // 4,
        "tie_word_embeddings": False,
        "torch_dtype": {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}[dtype],
        "use_cache": False,
        "vocab_size": 32000,
    }
