"""The published layout of a ChatTTS checkpoint: its files, and the name and shape of every tensor.

CLI process only; leaf data. `checkpoint.py` holds a checkpoint against it, `random_checkpoint.py` makes one
from it, so the two cannot drift apart. Names are those of the files; where a weight is stored in two parts
(weight normalisation) the name here is that of the merged weight.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

MELS = 100
N_FFT = 1024
HOP = 256
SAMPLE_RATE = 24_000
KERNEL = 7  # of the depthwise convolutions
LEVELS = (5, 5, 5, 5)  # of the scalar quantiser; the weights tell their number, not their values
CODES = 625  # the product of the levels; one more audio token ends the speech

PARTS = {
    "gpt": "gpt/model.safetensors",
    "embed": "Embed.safetensors",
    "decoder": "Decoder.safetensors",
    "dvae": "DVAE.safetensors",
    "vocos": "Vocos.safetensors",
}
GPT_CONFIG = "gpt/config.json"
TOKENIZER = "tokenizer/tokenizer.json"
TOKENIZER_FILES = (TOKENIZER, "tokenizer/tokenizer_config.json", "tokenizer/special_tokens_map.json")

# What published files carry beside the weights: tables that can be computed, and parts that are not used.
TOLERATED = {
    "gpt": re.compile(r"embed_tokens\.weight|(layers\.\d+\.self_attn\.)?rotary_emb\.inv_freq"),
    "embed": re.compile(r"(?!)"),
    "decoder": re.compile(r"(?!)"),
    "dvae": re.compile(
        r"preprocessor_mel\.mel_spec\.(spectrogram\.window|mel_scale\.fb)"
        r"|vq_layer\.quantizer\.rvqs\.\d+\.(layers\.\d+\.)?(_levels|_basis|implicit_codebook|scales)"
    ),
    "vocos": re.compile(
        r"feature_extractor\.mel_spec\.(spectrogram\.window|mel_scale\.fb)|head\.istft\.window"
    ),
}

# The control tokens that follow the text tokens, in the order of their ids. From [break_0] on they steer
# how something is said; the ones before it are part of a transcript.
CONTROL_TOKENS = (
    *("[Sasr]", "[Pasr]", "[Easr]", "[Stts]", "[Ptts]", "[Etts]", "[Sbreak]", "[Pbreak]", "[Ebreak]"),
    *("[uv_break]", "[v_break]", "[lbreak]", "[llbreak]", "[undefine]", "[laugh]"),
    *("[spk_emb]", "[empty_spk]", "[music]", "[pure]"),
    *(f"[break_{n}]" for n in range(8)),
    *(f"[laugh_{n}]" for n in range(3)),
    *(f"[oral_{n}]" for n in range(10)),
    *(f"[speed_{n}]" for n in range(10)),
)
# Without these no prompt can be written.
NEEDED_TOKENS = (
    *("[Stts]", "[Ptts]", "[spk_emb]", "[empty_spk]", "[Sbreak]", "[Pbreak]", "[Ebreak]", "[break_0]"),
)

Shape = tuple[int, ...]
Tensors = Iterator[tuple[str, Shape]]


@dataclass(frozen=True, slots=True)
class Stack:
    """A stack of ConvNeXt blocks between two convolutions, as the DVAE's encoder and decoders are."""

    inputs: int
    outputs: int
    bottleneck: int
    hidden: int
    intermediate: int
    layers: int


@dataclass(frozen=True, slots=True)
class VocosSizes:
    hidden: int
    intermediate: int
    layers: int


@dataclass(frozen=True, slots=True)
class Sizes:
    """Every size of a checkpoint."""

    layers: int
    hidden: int
    heads: int
    head_dim: int
    intermediate: int
    rms_eps: float
    rope_theta: float
    max_positions: int
    audio_tokens: int
    text_tokens: int
    codebooks: int
    decoder: Stack  # hidden states -> mel
    dvae_encoder: Stack  # mel -> codes
    dvae_decoder: Stack  # codes -> mel
    groups: int  # of the residual quantiser; each holds codebooks / groups of the codebooks
    vocos: VocosSizes

    @property
    def residuals(self) -> int:
        return self.codebooks // self.groups

    @property
    def dvae_width(self) -> int:
        return self.dvae_decoder.inputs


def tensors(part: str, sizes: Sizes) -> dict[str, Shape]:
    """Name and shape of every tensor that a part must have."""
    makers = {"gpt": _gpt, "embed": _embed, "decoder": _decoder, "dvae": _dvae, "vocos": _vocos}
    return dict(makers[part](sizes))


def _gpt(s: Sizes) -> Tensors:
    attention = s.heads * s.head_dim
    for layer in range(s.layers):
        at = f"layers.{layer}"
        for name in ("q_proj", "k_proj", "v_proj"):
            yield f"{at}.self_attn.{name}.weight", (attention, s.hidden)
        yield f"{at}.self_attn.o_proj.weight", (s.hidden, attention)
        yield f"{at}.mlp.gate_proj.weight", (s.intermediate, s.hidden)
        yield f"{at}.mlp.up_proj.weight", (s.intermediate, s.hidden)
        yield f"{at}.mlp.down_proj.weight", (s.hidden, s.intermediate)
        yield f"{at}.input_layernorm.weight", (s.hidden,)
        yield f"{at}.post_attention_layernorm.weight", (s.hidden,)
    yield "norm.weight", (s.hidden,)


def _embed(s: Sizes) -> Tensors:
    for book in range(s.codebooks):
        yield f"emb_code.{book}.weight", (s.audio_tokens, s.hidden)
        yield f"head_code.{book}.weight", (s.audio_tokens, s.hidden)
    yield "emb_text.weight", (s.text_tokens, s.hidden)
    yield "head_text.weight", (s.text_tokens, s.hidden)


def _decoder(s: Sizes) -> Tensors:
    yield "coef", (1, MELS, 1)
    yield from _stack("decoder", s.decoder)
    yield "out_conv.weight", (MELS, s.decoder.outputs, 3)


def _dvae(s: Sizes) -> Tensors:
    width = s.dvae_width
    yield "coef", (1, MELS, 1)
    yield from _affine("downsample_conv.0", (width, MELS, 3))
    yield from _affine("downsample_conv.2", (width, width, 4))
    yield from _stack("encoder", s.dvae_encoder)
    yield from _stack("decoder", s.dvae_decoder)
    yield "out_conv.weight", (MELS, s.dvae_decoder.outputs, 3)
    for group in range(s.groups):
        at, size = f"vq_layer.quantizer.rvqs.{group}", s.dvae_encoder.outputs // s.groups
        yield from _affine(f"{at}.project_in", (len(LEVELS), size))
        yield from _affine(f"{at}.project_out", (size, len(LEVELS)))


def _vocos(s: Sizes) -> Tensors:
    width, inner = s.vocos.hidden, s.vocos.intermediate
    yield from _affine("backbone.embed", (width, MELS, KERNEL))
    yield from _affine("backbone.norm", (width,))
    for layer in range(s.vocos.layers):
        yield from _block(f"backbone.convnext.{layer}", "gamma", width, inner)
    yield from _affine("backbone.final_layer_norm", (width,))
    yield from _affine("head.out", (N_FFT + 2, width))


def _stack(at: str, s: Stack) -> Tensors:
    yield from _affine(f"{at}.conv_in.0", (s.bottleneck, s.inputs, 3))
    yield from _affine(f"{at}.conv_in.2", (s.hidden, s.bottleneck, 3))
    for layer in range(s.layers):
        yield from _block(f"{at}.decoder_block.{layer}", "weight", s.hidden, s.intermediate)
    yield f"{at}.conv_out.weight", (s.outputs, s.hidden, 1)


def _block(at: str, scale: str, width: int, inner: int) -> Tensors:
    """A ConvNeXt block; `scale` is how its layer scale is called."""
    yield f"{at}.{scale}", (width,)
    yield from _affine(f"{at}.dwconv", (width, 1, KERNEL))
    yield from _affine(f"{at}.norm", (width,))
    yield from _affine(f"{at}.pwconv1", (inner, width))
    yield from _affine(f"{at}.pwconv2", (width, inner))


def _affine(at: str, shape: Shape) -> Tensors:
    yield f"{at}.weight", shape
    yield f"{at}.bias", shape[:1]
