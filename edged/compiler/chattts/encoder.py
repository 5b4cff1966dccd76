"""From a recording to audio codes: the graph that enrols a voice.

Build time only. Log-mel spectrogram -> downsampling convolutions -> DVAE encoder -> grouped residual FSQ.
Always float32 arithmetic: a code is the result of rounding, and an enrolment is not in a hurry. Measured at
full size with random weights: weights kept as float16 change 2-3 % of the frames (0.6 % of the codes), 8-bit
weights 75 % of the frames for 6 MB less, so those are not offered.
Neighbours: `convnext.py`, `fourier.py`, `fsq.py`.
"""

from __future__ import annotations

from pathlib import Path

from edged.compiler.chattts import fourier, fsq
from edged.compiler.chattts.convnext import dvae_stack
from edged.compiler.chattts.layers import Net, Weights
from edged.compiler.chattts.layout import HOP, MELS, N_FFT, SAMPLE_RATE
from edged.compiler.graph import Graph, Interface
from edged.compiler.parts import Progress, silent

PART = "dvae"


def build_encoder(
    checkpoint: Weights,
    path: Path,
    *,
    dialect: str = "ort",
    precision: str = "fp32",
    seconds: float = 30,
    rule: str = "symmetric",
    debug: bool = False,
    progress: Progress = silent,
) -> Interface:
    """Writes the graph audio [1, N] at 24 kHz -> codes [1, 4, T], T = (1 + N / 256) / 2 rounded down.

    N is more than 512 (half a window) and at most `seconds`. precision: "fp32", or "fp16" to halve the
    file. rule: of `fsq.RULES`. debug: the log-mel spectrogram is an output as well.
    """
    if precision not in ("fp32", "fp16"):
        raise ValueError(f"the encoder has no precision {precision!r}")
    net = Net(Graph("encoder"), checkpoint, dialect=dialect, precision=precision)
    g = net.graph
    samples = round(seconds * SAMPLE_RATE)
    audio = g.input("audio", "float32", [1, "samples"], (1, samples))
    frames = 1 + samples // HOP

    progress("mel", 0.0)
    coef = checkpoint.tensor(PART, "coef").reshape(-1)
    filters = fourier.mel_filters(MELS, N_FFT)
    mel = fourier.log_mel(net, audio, filters)
    x = g.node("Div", [mel, g.weight("coef", coef)])
    progress("encoder", 0.1)
    for index, stride in ((0, 1), (2, 2)):
        name = f"downsample_conv.{index}"
        kernel, bias = checkpoint.tensor(PART, f"{name}.weight"), checkpoint.tensor(PART, f"{name}.bias")
        x = net.gelu(net.conv(x, f"{PART}.{name}", kernel, bias, stride=stride, pad=1))
    x = dvae_stack(net, x, PART, "encoder")
    x = net.linear(
        x, f"{PART}.encoder.conv_out", checkpoint.tensor(PART, "encoder.conv_out.weight")[:, :, 0].T
    )
    codes = fsq.encode(net, x, rule)
    count = fsq.groups(net) * fsq.STAGES
    g.output(codes, "codes", "int64", [1, count, "steps"], (1, count, frames // 2))
    if debug:
        shown = g.node("Squeeze", [g.node("Transpose", [mel], perm=[0, 1, 3, 2]), g.constant([1])])
        g.output(shown, "mel", "float32", [1, MELS, "frames"], (1, MELS, frames))
    progress("write", 0.8)
    g.save(path)
    progress("done", 1.0)
    return g.interface
