"""The vocoder half of ChatTTS in plain float64 numpy: what the graphs must equal.

Channels first, one convolution as a sum of shifted products, transforms by numpy.fft: as unlike the graphs
as it can be.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edged.compiler.chattts.checkpoint import Checkpoint

Array = NDArray[np.float64]
_erf = np.vectorize(math.erf, otypes=[np.float64])


def gelu(x: Array) -> Array:
    return 0.5 * x * (1 + _erf(x / math.sqrt(2)))


def conv(
    x: Array,
    weight: NDArray[Any],
    bias: NDArray[Any] | None = None,
    *,
    dilation: int = 1,
    stride: int = 1,
    pad: int | None = None,
) -> Array:
    """x [channels, time], weight [out, in, width] or, depthwise, [channels, 1, width]."""
    width = weight.shape[2]
    margin = dilation * (width // 2) if pad is None else pad
    padded = np.pad(x, ((0, 0), (margin, margin)))
    count = (padded.shape[1] - dilation * (width - 1) - 1) // stride + 1
    depthwise = weight.shape[1] == 1 and weight.shape[0] == x.shape[0] > 1
    out = np.zeros((weight.shape[0], count))
    for k in range(width):
        taken = padded[:, k * dilation :: stride][:, :count]
        out += weight[:, 0, k, None] * taken if depthwise else weight[:, :, k].astype(float) @ taken
    return out if bias is None else out + bias[:, None]


def norm(x: Array, weight: NDArray[Any], bias: NDArray[Any]) -> Array:
    centred = x - x.mean(axis=0)
    scaled = centred / np.sqrt((centred**2).mean(axis=0) + 1e-6)
    return scaled * weight[:, None] + bias[:, None]


def block(x: Array, get: Any, scale: str, dilation: int) -> Array:
    y = conv(x, get("dwconv.weight"), get("dwconv.bias"), dilation=dilation)
    y = norm(y, get("norm.weight"), get("norm.bias"))
    y = gelu(get("pwconv1.weight").astype(float) @ y + get("pwconv1.bias")[:, None])
    y = get("pwconv2.weight").astype(float) @ y + get("pwconv2.bias")[:, None]
    return x + get(scale)[:, None] * y


class Model:
    """All of it on a checkpoint."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.checkpoint = checkpoint
        self.sizes = checkpoint.sizes

    def get(self, part: str, prefix: str = "") -> Any:
        return lambda name: self.checkpoint.tensor(part, prefix + name).astype(float)

    def stack(self, x: Array, part: str, prefix: str, layers: int) -> Array:
        get = self.get(part, f"{prefix}.")
        x = conv(x, get("conv_in.0.weight"), get("conv_in.0.bias"))
        x = conv(gelu(x), get("conv_in.2.weight"), get("conv_in.2.bias"))
        for layer in range(layers):
            x = block(x, self.get(part, f"{prefix}.decoder_block.{layer}."), "weight", 2)
        return conv(x, get("conv_out.weight"))

    def mel(self, features: Array, part: str) -> Array:
        """features: [2 x channels, steps], the halves of a step being its two frames."""
        half = len(features) // 2
        frames = np.stack([features[:half], features[half:]], axis=2).reshape(half, -1)
        layers = self.sizes.decoder.layers if part == "decoder" else self.sizes.dvae_decoder.layers
        get = self.get(part)
        x = self.stack(frames, part, "decoder", layers)
        return conv(x, get("out_conv.weight")) * get("coef").reshape(-1, 1)

    def samples(self, mel: Array) -> Array:
        get = self.get("vocos")
        x = conv(mel, get("backbone.embed.weight"), get("backbone.embed.bias"))
        x = norm(x, get("backbone.norm.weight"), get("backbone.norm.bias"))
        for layer in range(self.sizes.vocos.layers):
            x = block(x, self.get("vocos", f"backbone.convnext.{layer}."), "gamma", 1)
        x = norm(x, get("backbone.final_layer_norm.weight"), get("backbone.final_layer_norm.bias"))
        x = get("head.out.weight") @ x + get("head.out.bias")[:, None]
        magnitude, phase = np.split(x, 2)
        return istft(np.minimum(np.exp(magnitude), 100) * np.exp(1j * phase))

    def codes_to_features(self, codes: NDArray[np.int64], ratio: int = 5) -> Array:
        """codes [steps, 4] -> [channels, steps]; ratio: how much finer the second stage is."""
        parts = []
        for group in range(2):
            get = self.get("dvae", f"vq_layer.quantizer.rvqs.{group}.project_out.")
            first, second = (values_of(codes[:, group * 2 + stage]) for stage in range(2))
            parts.append(get("weight") @ (first + second / ratio).T + get("bias")[:, None])
        return np.concatenate(parts)

    def encode(self, audio: NDArray[Any], rule: str = "symmetric") -> NDArray[np.int64]:
        """[4, steps]"""
        get = self.get("dvae")
        x = log_mel(audio) / get("coef").reshape(-1, 1)
        x = gelu(conv(x, get("downsample_conv.0.weight"), get("downsample_conv.0.bias")))
        x = gelu(conv(x, get("downsample_conv.2.weight"), get("downsample_conv.2.bias"), stride=2, pad=1))
        x = self.stack(x, "dvae", "encoder", self.sizes.dvae_encoder.layers)
        codes = []
        for group, part in enumerate(np.split(x, 2)):
            get = self.get("dvae", f"vq_layer.quantizer.rvqs.{group}.project_in.")
            codes += quantise((get("weight") @ part + get("bias")[:, None]).T, rule)
        return np.stack(codes)


def values_of(codes: NDArray[np.int64]) -> Array:
    """[n] -> [n, 4] in -1 .. 1: base-five digits, least significant first."""
    return np.stack([codes // 5**place % 5 for place in range(4)], axis=1) / 2 - 1


def quantise(z: Array, rule: str = "symmetric") -> list[NDArray[np.int64]]:
    """Two stages of residual finite scalar quantisation of [steps, 4]."""
    if rule == "symmetric":
        rest, ratio = 1.25 * np.tanh(z / 1.25), 5
    else:
        rest, ratio = 2.002 * np.tanh(z), 4
    codes = []
    for stage in range(2):
        fine = rest * ratio**stage
        if rule == "symmetric":
            digits = np.floor((np.clip(fine, -1, 1) + 1) * 2 + 0.5)
        else:
            digits = np.rint(2.002 * np.tanh(fine)) + 2
        codes.append((digits * 5 ** np.arange(4)).sum(axis=1).astype(np.int64))
        rest = rest - (digits / 2 - 1) / ratio**stage
    return codes


def window() -> Array:
    return 0.5 * (1 - np.cos(2 * np.pi * np.arange(1024) / 1024))


def istft(spectrum: NDArray[np.complex128]) -> Array:
    """[513, frames] -> samples, centred, divided by the overlapping squared windows."""
    frames = spectrum.shape[1]
    total, weight = np.zeros((frames + 3) * 256), np.zeros((frames + 3) * 256)
    for index in range(frames):
        at = slice(index * 256, index * 256 + 1024)
        total[at] += np.fft.irfft(spectrum[:, index], 1024) * window()
        weight[at] += window() ** 2
    return total[512:-512] / weight[512:-512]


def log_mel(audio: NDArray[Any]) -> Array:
    padded = np.pad(audio.astype(float), 512, mode="reflect")
    frames = [padded[at : at + 1024] * window() for at in range(0, len(padded) - 1023, 256)]
    magnitude = np.abs(np.fft.rfft(np.stack(frames), axis=1))
    points = 700 * (10 ** (np.linspace(0, 2595 * math.log10(1 + 12_000 / 700), 102) / 2595) - 1)
    frequency = np.linspace(0, 12_000, 513)
    bands = [np.interp(frequency, points[i : i + 3], [0, 1, 0], 0, 0) for i in range(100)]
    return np.log(np.maximum(magnitude @ np.stack(bands, axis=1), 1e-5)).T


def snr(expected: NDArray[Any], found: NDArray[Any]) -> float:
    """dB"""
    error = ((expected.astype(float) - found) ** 2).sum()
    return float(10 * np.log10((expected.astype(float) ** 2).sum() / max(error, 1e-300)))
