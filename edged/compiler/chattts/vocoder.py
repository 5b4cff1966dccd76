"""From the language model's hidden states, or from audio codes, to samples: one graph each.

Build time only. DVAE decoder -> mel -> Vocos backbone -> inverse STFT. Every step of the language model is
two mel frames of 256 samples; all convolutions see zeros beyond the ends, and the half frames at either end
are cut off, so T steps make (2 T - 1) * 256 samples. Neighbours: `convnext.py`, `fourier.py`, `fsq.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from edged.compiler.chattts import fourier, fsq
from edged.compiler.chattts.convnext import blocks, dvae_stack
from edged.compiler.chattts.layers import Net, Weights
from edged.compiler.chattts.layout import HOP, MELS, N_FFT
from edged.compiler.chattts.past import Past
from edged.compiler.graph import Graph, Interface
from edged.compiler.parts import Progress, silent
from edged.voices.chattts.sound import LEAD

FRAMES_A_STEP = 2
LOUDEST = 100.0  # of a spectral magnitude


def build_vocoder(
    checkpoint: Weights,
    path: Path,
    *,
    dialect: str = "ort",
    precision: str = "fp32",
    steps: int = 1024,
    keep: Sequence[str] = (),
    half: bool = False,
    tracks: int = 0,
    debug: bool = False,
    progress: Progress = silent,
) -> Interface:
    """Writes the graph hidden [1, T, hidden] -> samples, for T from 1 to `steps`.

    keep: patterns of layers that are not quantised; debug: the mel spectrogram is an output as well.
    tracks: utterances that are made to sound window by window (0: an utterance is one call). Then there are
    more inputs: `past_frames`, a row a track; `heard` [1], the steps after which the next window begins; and
    `lead` [1]: `LEAD` in the first window of an utterance, 0 in later ones, whose samples begin `LEAD` frames
    before their first step instead. In the standard dialect no shape depends on a value: there `first` [1],
    bool, stands for `lead`, and the samples of a first window begin with `LEAD` frames of silence, too.
    """
    part = "decoder"
    channels = checkpoint.tensor(part, "decoder.conv_in.0.weight").shape[1]

    def features(net: Net) -> str:
        shape = (1, steps, FRAMES_A_STEP * channels)
        hidden = net.graph.input("hidden", "float32", [1, "steps", shape[2]], shape)
        # The first half of a hidden state is the first frame, the second half the second.
        return str(net.graph.node("Reshape", [hidden, net.graph.constant([1, 1, -1, channels])]))

    net = Net(Graph("vocoder"), checkpoint, dialect=dialect, precision=precision, keep=keep, half=half)
    if tracks:
        g = net.graph
        heard = g.input("heard", "int64", [1], (1,))
        g.input(*(("lead", "int64") if net.fused else ("first", "bool")), [1], (1,))
        kept = g.node("Mul", [heard, g.constant([FRAMES_A_STEP])])
        net.past = Past(g, kept, tracks, fixed=not net.fused)
    return _build(net, features, part, path, steps, debug, progress)


def build_code_vocoder(
    checkpoint: Weights,
    path: Path,
    *,
    dialect: str = "ort",
    precision: str = "fp32",
    steps: int = 1024,
    keep: Sequence[str] = (),
    rule: str = "symmetric",
    debug: bool = False,
    progress: Progress = silent,
) -> Interface:
    """Writes the graph codes [1, T, 4] -> samples. rule: of `fsq.RULES`."""

    def features(net: Net) -> str:
        count = fsq.groups(net) * fsq.STAGES
        codes = net.graph.input("codes", "int64", [1, "steps", count], (1, steps, count))
        return fsq.decode(net, codes, rule)

    net = Net(Graph("codes"), checkpoint, dialect=dialect, precision=precision, keep=keep)
    return _build(net, features, "dvae", path, steps, debug, progress)


def _build(
    net: Net,
    features: Callable[[Net], str],
    part: str,
    path: Path,
    steps: int,
    debug: bool,
    progress: Progress,
) -> Interface:
    g = net.graph
    x = features(net)
    progress("decoder", 0.0)
    mel = mel_of(net, dvae_stack(net, x, part, "decoder"), part)
    progress("vocos", 0.5)
    samples = waveform(net, mel)
    if net.past is not None:
        net.past.finish()
    lead = LEAD if net.past is not None else 0
    most = (1, (FRAMES_A_STEP * steps - 1 + lead) * HOP)
    g.output(samples, "samples", "float32", [1, "samples"], most)
    if debug:
        frames = g.node("Squeeze", [g.node("Transpose", [mel], perm=[0, 1, 3, 2]), g.constant([1])])
        g.output(frames, "mel", "float32", [1, MELS, "frames"], (1, MELS, FRAMES_A_STEP * steps))
    progress("write", 0.8)
    g.save(path)
    progress("done", 1.0)
    return g.interface


def mel_of(net: Net, x: str, part: str) -> str:
    """The decoder's last two convolutions and the scale of the mel bands: one convolution.

    They are linear and without bias, the first one pointwise, so the fusion is exact at the ends, too.
    """
    inner = net.weights.tensor(part, "decoder.conv_out.weight").astype(np.float64)[:, :, 0]
    outer = net.weights.tensor(part, "out_conv.weight").astype(np.float64)
    gain = net.weights.tensor(part, "coef").astype(np.float64).reshape(-1, 1, 1)
    return net.conv(x, f"{part}.mel", np.einsum("omk,mi->oik", outer * gain, inner))


def waveform(net: Net, mel: str) -> str:
    """Vocos: mel frames [1, 1, F, bands] -> samples [1, (F - 1) * hop]."""
    g = net.graph

    def own(name: str) -> np.ndarray:
        return net.weights.tensor("vocos", name)

    x = net.conv(mel, "vocos.embed", own("backbone.embed.weight"), own("backbone.embed.bias"))
    x = net.norm(x, "vocos.norm", own("backbone.norm.weight"), own("backbone.norm.bias"))
    x = blocks(net, x, "vocos", "backbone.convnext", "gamma")
    last = "backbone.final_layer_norm"
    x = net.norm(x, "vocos.final_layer_norm", own(f"{last}.weight"), own(f"{last}.bias"))
    there = ""
    if net.past is not None:  # the transform adds up frames that overlap
        x = net.past.before(x, LEAD, own("head.out.weight").shape[1])
        if net.fused:
            x = g.node("Slice", [x, "lead", g.constant([1 << 31]), g.constant([2])])
        else:
            there = _there(net, x)
    # Its errors reach the phases directly: kept out of int8 it gains 1.5 dB for 3 % of the time.
    x = net.linear(x, "vocos.head.out", own("head.out.weight").T, own("head.out.bias"), exact=True)
    magnitude, phase = g.node("Split", [x], 2, axis=3, num_outputs=2)
    magnitude = g.node("Min", [g.node("Exp", [magnitude]), net.scalar(LOUDEST)])
    if there:
        magnitude = g.node("Mul", [magnitude, g.node("Reshape", [there, g.constant([1, 1, -1, 1])])])
    real = g.node("Mul", [magnitude, g.node("Cos", [phase])])
    imaginary = g.node("Mul", [magnitude, g.node("Sin", [phase])])
    return fourier.inverse(net, real, imaginary, N_FFT, there)


def _there(net: Net, x: str) -> str:
    """[F, 1]: 0 for the frames before the first window of an utterance, 1 for all others."""
    g = net.graph
    count = g.node("Squeeze", [g.node("Shape", [x], start=2, end=3)])
    frame = g.node("Range", [g.constant(0), count, g.constant(1)])
    late = g.node("GreaterOrEqual", [frame, g.constant(LEAD)])
    there = net.cast(g.node("Or", [late, g.node("Not", ["first"])]), "float32", "bool")
    return str(g.node("Unsqueeze", [there, g.constant([1])]))
