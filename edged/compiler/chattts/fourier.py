"""Short-time Fourier transform, its inverse and the mel filterbank, as matrix products.

Build time only. TensorRT has neither DFT nor STFT operators that it can plan, and at 1,024 points a matrix
product costs 3 % of the vocoder. Neighbours: `vocoder.py` (inverse), `encoder.py` (forward).

Hann window, hop of a quarter window, centred: the signal of F frames has (F - 1) hops.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from edged.compiler.chattts.layers import Net
from edged.compiler.chattts.layout import SAMPLE_RATE

OVERLAP = 4  # window / hop
FLOOR = 1e-5  # of a mel band, before the logarithm

Doubles = NDArray[np.float64]


def hann(size: int) -> Doubles:
    """The periodic Hann window."""
    return 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(size) / size)


def inverse_bases(size: int) -> tuple[Doubles, Doubles]:
    """Half spectrum -> windowed frame: [bins, size / 2 + 1] for the real and for the imaginary parts.

    A frame's even part comes from the real parts, its odd part from the imaginary ones, so half of the
    samples of each are enough. Divided by the sum of the squared windows where all four overlap, which is
    the same at every sample.
    """
    bins = np.arange(size // 2 + 1)
    # The product modulo the size keeps the angle small, where float64 is exact.
    angle = 2 * np.pi * (np.outer(bins, bins) % size) / size
    twice = np.where((bins == 0) | (bins == size // 2), 1.0, 2.0)[:, None]
    window = twice * hann(size)[bins] / (size * _full_overlap(size))
    odd = -window * np.sin(angle)
    odd[[0, -1]] = 0.0  # a real signal has no imaginary part at either end of the spectrum
    return window * np.cos(angle), odd


def forward_basis(size: int) -> Doubles:
    """[size, size + 2]: one frame of samples -> real then imaginary parts of its windowed half spectrum."""
    angle = 2 * np.pi * (np.outer(np.arange(size), np.arange(size // 2 + 1)) % size) / size
    return np.concatenate([np.cos(angle), -np.sin(angle)], axis=1) * hann(size)[:, None]


def mel_filters(bands: int, size: int) -> Doubles:
    """[size / 2 + 1, bands]: triangles on the HTK mel scale from 0 Hz to half the sample rate, peak 1."""
    top = 2595 * np.log10(1 + SAMPLE_RATE / 2 / 700)
    corners = 700 * (10 ** (np.linspace(0, top, bands + 2) / 2595) - 1)
    frequency = np.linspace(0, SAMPLE_RATE / 2, size // 2 + 1)[:, None]
    rising = (frequency - corners[:-2]) / np.diff(corners)[:-1]
    falling = (corners[2:] - frequency) / np.diff(corners)[1:]
    return np.maximum(0, np.minimum(rising, falling))


def _full_overlap(size: int) -> float:
    return float((hann(size).reshape(OVERLAP, -1) ** 2).sum(axis=0)[0])


def inverse(net: Net, real: str, imaginary: str, size: int, there: str = "") -> str:
    """Half spectra [1, 1, F, size / 2 + 1] -> samples [1, (F - 1) * size / 4].

    there: [F, 1], 0 for frames of silence that stand for none, 1 for all others.
    """
    g = net.graph
    hop = size // OVERLAP
    bases = inverse_bases(size)
    even = g.node("MatMul", [real, net.stored("istft.even", bases[0])])
    odd = g.node("MatMul", [imaginary, net.stored("istft.odd", bases[1])])
    # Hop s of the result is the sum over j of quarter j of frame s - j; outside there is silence. Two
    # hops at either end are cut off by centring, so one frame of silence at either end is enough.
    frames = []
    for half in (g.node("Add", [even, odd]), g.node("Sub", [even, odd])):
        flat = g.node("Reshape", [half, g.constant([-1, size // 2 + 1])])
        frames.append(g.node("Pad", [flat, g.constant([1, 0, 1, 0])]))
    first = g.node("Add", [_quarter(net, frames[0], 0, 0, hop), _quarter(net, frames[0], 1, hop, hop)])
    # The second half of a frame is the first half of its mirror image: quarters two and three run
    # backwards from the sample after the middle and the one after the first quarter.
    second = [_quarter(net, frames[1], 2, hop + 1, hop), _quarter(net, frames[1], 3, 1, hop)]
    mirror = [g.constant([value]) for value in (-1, -(1 << 31), 1, -1)]
    backwards = g.node("Slice", [g.node("Add", second), *mirror])
    added = g.node("Add", [first, backwards])
    added = g.node("Div", [added, _envelope(net, added, size, there)])
    return str(g.node("Reshape", [added, g.constant([1, -1])]))


def _quarter(net: Net, framed: str, j: int, start: int, hop: int) -> str:
    """Quarter j of each frame, at the samples from `start`, in the row of the hop that it sounds in."""
    g = net.graph
    rows = (OVERLAP - 1 - j, -j if j else 1 << 31)
    starts, ends = g.constant([rows[0], start]), g.constant([rows[1], start + hop])
    return str(g.node("Slice", [framed, starts, ends, g.constant([0, 1])]))


def _envelope(net: Net, hops: str, size: int, there: str) -> str:
    """[F - 1, hop]: the sum of the squared windows over its value at full overlap: 1 but for the ends.

    The first hop lacks the frame before it, the last hop the frame after it (with two frames, one hop
    lacks both).
    """
    g = net.graph
    squares = (hann(size).reshape(OVERLAP, -1) ** 2) / _full_overlap(size)
    if there:  # hop s has the frames s - 1 to s + 2
        zero, two, end = (g.constant([value]) for value in (0, 2, 1 << 31))
        earlier = g.node("Slice", [there, zero, g.constant([-2]), zero])
        later = g.node("Slice", [there, two, end, zero])
    else:
        count = g.node("Shape", [hops], start=0, end=1)
        one = g.constant([1])
        shape = g.node("Concat", [g.node("Sub", [count, one]), one], axis=0)
        earlier = later = g.node("Expand", [net.scalar(1.0), shape])
    before = g.node("Pad", [earlier, g.constant([1, 0, 0, 0])])  # 0 1 1 1 ...
    after = g.node("Pad", [later, g.constant([0, 0, 1, 0])])  # ... 1 1 1 0
    middle = g.weight("istft.middle", squares[1:3].sum(axis=0).astype(np.float32))
    late = g.node("Mul", [before, g.weight("istft.fall", squares[3].astype(np.float32))])
    early = g.node("Mul", [after, g.weight("istft.rise", squares[0].astype(np.float32))])
    return str(g.node("Add", [g.node("Add", [late, early]), middle]))


def log_mel(net: Net, audio: str, filters: NDArray[np.floating]) -> str:
    """Samples [1, N] -> log of the mel magnitudes [1, 1, 1 + N / hop, bands]. N > size / 2."""
    g = net.graph
    size = 2 * (filters.shape[0] - 1)
    hop = size // OVERLAP
    padded = g.node("Pad", [audio, g.constant([0, size // 2, 0, size // 2])], mode="reflect")
    # Frames overlap by whole hops: four shifted views of the hops, side by side, are the frames.
    count = g.node("Div", [g.node("Shape", [padded], start=1, end=2), g.constant([hop])])
    whole = g.node("Mul", [count, g.constant([hop])])
    hops = g.node("Slice", [padded, g.constant([0]), whole, g.constant([1])])
    hops = g.node("Reshape", [hops, g.constant([1, 1, -1, hop])])
    views = []
    for j in range(OVERLAP):
        last = j + 1 - OVERLAP
        ends = g.constant([last if last else 1 << 31])
        views.append(g.node("Slice", [hops, g.constant([j]), ends, g.constant([2])]))
    framed = g.node("Concat", views, axis=3)
    spectrum = g.node("MatMul", [framed, g.weight("stft.basis", forward_basis(size).astype(np.float32))])
    half = g.constant([size // 2 + 1, size // 2 + 1])
    real, imaginary = g.node("Split", [spectrum, half], 2, axis=3)
    power = g.node("Add", [g.node("Mul", [real, real]), g.node("Mul", [imaginary, imaginary])])
    bands = g.weight("mel.filters", filters.astype(np.float32))
    mel = g.node("MatMul", [g.node("Sqrt", [power]), bands])
    return str(g.node("Log", [g.node("Max", [mel, net.scalar(FLOOR)])]))
