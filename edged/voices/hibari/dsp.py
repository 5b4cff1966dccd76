"""Spectra to samples: the vocoder of the hibari family. Engine thread only; `synth.py` calls it.

Per frame of 12.5 ms the network predicts five spectra and one pitch value. A pulse train of that pitch
is shaped by the harmonic spectrum, shaped noise and a free-phase part are added, and an inverse
transform overlaps the frames to samples:

    S = exp(lh) e^{i pi tanh(theta)} STFT(pulses(f0)) + exp(ln) Z + exp(lr) e^{i phi}

Everything is computed a block of frames at a time into work arrays made at start: they stay in the
processor's cache, and nothing of the size of an utterance is allocated while speaking.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from edged.engine.buffers import Arena
from edged.job import Samples

Reals = NDArray[np.float32]

RATE = 24_000  # Hz
HOP = 300  # samples a frame
WINDOW = 1_200  # samples of a transform
BINS = WINDOW // 2 + 1
OVERLAP = WINDOW // HOP
HALF = WINDOW // 2
MIN_FRAMES = 4  # fewer would need the pulse train mirrored more than once
BLOCK = 32  # frames a block: a work array of 32 x 601 floats is 77 kB
NOISE = 1 << 18  # complex values: 14 blocks' worth, 2 MB
LOUDEST = np.float32(7.0)  # exponents above this are a fault of the network, not sound
VOICED_HZ = np.float32(40.0)  # a pitch below this means no voice
HIGHEST_HZ = np.float32(11_000.0)  # harmonics above this are left out
SMALL_SINE = np.float32(2e-3)  # below this a pulse is taken at its limit value

# numpy's stubs know these in double precision only.
_transform: Any = np.fft.rfft
_invert: Any = np.fft.irfft

_turn = np.arange(WINDOW) / WINDOW
_HANN = 0.5 - 0.5 * np.cos(2 * np.pi * _turn)
# Analysis: a cosine of amplitude 1 has magnitude 1; the transform divides by its length, because without
# a factor numpy computes it in double precision. Synthesis: the squared windows of the frames over a
# sample sum to 1.5, which is divided out here.
_ANALYSIS = (_HANN * 4).astype(np.float32)
_SQUARES = (_HANN**2).reshape(OVERLAP, HOP)
_SYNTHESIS = (_HANN / 1.5).astype(np.float32)
# The first and last half windows are covered by three and two frames only.
_LIFT_FIRST = (1.5 / _SQUARES[:3].sum(0)).astype(np.float32)
_LIFT_LAST = tuple((1.5 / _SQUARES[k:].sum(0)).astype(np.float32) for k in (1, 2))
# Pitch between frames: sample j of a frame lies `_AFTER[j]` of the way from one frame's centre to the next.
_AFTER = (((np.arange(HOP) + 0.5) / HOP - 0.5) % 1.0).astype(np.float32)
_BEFORE = (np.float32(1.0) - _AFTER).astype(np.float32)


class Vocoder:
    """Work arrays for utterances of up to `max_frames`."""

    def __init__(self, arena: Arena, owner: str, max_frames: int) -> None:
        def reals(name: str, *shape: int) -> Reals:
            return arena.array(f"dsp.{name}", shape, "float32", owner)

        self._pitch = reals("pitch", max_frames + 2)  # one frame more at each end
        self._pulses = reals("pulses", max_frames * HOP + WINDOW)  # half a window more at each end
        self._output = reals("output", max_frames + OVERLAP - 1, HOP)
        self._hertz = reals("hertz", BLOCK, HOP)
        self._angle = reals("angle", BLOCK, HOP)
        self._order = reals("order", BLOCK, HOP)
        self._sine = reals("sine", BLOCK, HOP)
        self._cycles = arena.array("dsp.cycles", (BLOCK * HOP,), "float64", owner)
        self._phase = arena.array("dsp.phase", (BLOCK * HOP,), "float64", owner)
        self._mask = arena.array("dsp.mask", (BLOCK, HOP), "bool", owner)
        self._limit = arena.array("dsp.limit", (BLOCK, HOP), "bool", owner)
        self._frames = reals("frames", BLOCK, WINDOW)
        self._a = reals("a", BLOCK, BINS)
        self._b = reals("b", BLOCK, BINS)
        self._spectrum = reals("spectrum", BLOCK, 2 * BINS).view(np.complex64)
        self._factor = reals("factor", BLOCK, 2 * BINS).view(np.complex64)
        # White noise of unit variance, drawn once. Drawing it anew for every utterance would take longer
        # than the rest of this module; each block starts at a random place instead.
        pool = reals("noise", 2 * NOISE)
        np.random.Generator(np.random.PCG64(NOISE)).standard_normal(dtype=np.float32, out=pool)
        self._noise = pool.view(np.complex64)
        self._windows = sliding_window_view(self._pulses, WINDOW)[::HOP]

    def synthesize(self, spectra: Reals, f0: Reals, noise: np.random.Generator | None) -> Samples:
        """`spectra` [F, 5 x 601] and `f0` [F] to F x 300 samples, a view valid until the next call.

        Without a generator the noise is left out, which makes the result comparable between programs.
        """
        count = len(f0)
        self._make_pulses(f0)
        output = self._output[: count + OVERLAP - 1]
        output.fill(0.0)
        for start in range(0, count, BLOCK):
            stop = min(start + BLOCK, count)
            frames = self._block(spectra[start:stop], start, noise)
            for k in range(OVERLAP):
                output[start + k : stop + k] += frames[:, k * HOP : (k + 1) * HOP]
        output[2] *= _LIFT_FIRST
        output[count] *= _LIFT_LAST[0]
        output[count + 1] *= _LIFT_LAST[1]
        return output[2 : count + 2].reshape(-1)

    def _block(self, spectra: Reals, start: int, noise: np.random.Generator | None) -> Reals:
        """The windowed time signals of some frames."""
        n = len(spectra)
        lh, theta, ln, lr, phi = (spectra[:, k * BINS : (k + 1) * BINS] for k in range(5))
        a, b = self._a[:n], self._b[:n]
        spectrum, factor, frames = self._spectrum[:n], self._factor[:n], self._frames[:n]

        np.multiply(self._windows[start : start + n], _ANALYSIS, out=frames)
        _transform(frames, axis=1, norm="forward", out=spectrum)
        np.tanh(theta, out=a)
        a *= np.float32(np.pi)
        _polar(lh, a, b, factor)
        spectrum *= factor
        if noise is not None:
            place = int(noise.integers(len(self._noise) - n * BINS))
            white = self._noise[place : place + n * BINS].reshape(n, BINS)
            _magnitude(ln, b)
            np.multiply(white.real, b, out=factor.real)
            np.multiply(white.imag, b, out=factor.imag)
            spectrum += factor
        _polar(lr, phi, b, factor)
        spectrum += factor
        _invert(spectrum, WINDOW, axis=1, out=frames)
        frames *= _SYNTHESIS
        return frames

    def _make_pulses(self, f0: Reals) -> None:
        """Fills the pulse train: all harmonics up to 11 kHz at amplitude 1, silence where no voice is.

        A sum of H cosines of a phase t is sin((H + 1/2) t) / (2 sin(t / 2)) - 1/2.
        """
        count = len(f0)
        pitch = self._pitch[: count + 2]
        pitch[1:-1] = f0
        pitch[0], pitch[-1] = f0[0], f0[-1]
        train = self._pulses[: count * HOP + WINDOW]
        body = train[HALF:-HALF].reshape(count, HOP)
        turned = 0.0  # hertz summed so far: cycles times the sample rate
        for start in range(0, count, BLOCK):
            stop = min(start + BLOCK, count)
            turned = self._pulse_block(pitch[start : stop + 2], body[start:stop], turned)
        train[:HALF] = train[WINDOW:HALF:-1]
        train[-HALF:] = train[-HALF - 2 : -WINDOW - 2 : -1]

    def _pulse_block(self, pitch: Reals, out: Reals, turned: float) -> float:
        n, middle = len(out), HOP // 2
        hertz, angle, order, sine = self._hertz[:n], self._angle[:n], self._order[:n], self._sine[:n]
        mask = self._mask[:n]
        cycles, phase = self._cycles[: n * HOP], self._phase[: n * HOP]
        before, here, after = pitch[:-2, None], pitch[1:-1, None], pitch[2:, None]
        np.multiply(before, _BEFORE[:middle], out=hertz[:, :middle])
        np.multiply(here, _AFTER[:middle], out=angle[:, :middle])
        np.multiply(here, _BEFORE[middle:], out=hertz[:, middle:])
        np.multiply(after, _AFTER[middle:], out=angle[:, middle:])
        hertz += angle
        np.less_equal(hertz, VOICED_HZ, out=mask)  # where no voice is
        np.maximum(hertz, VOICED_HZ, out=hertz)

        # The phase in double precision: after 20 s a float has lost a tenth of a turn.
        np.copyto(cycles, hertz.reshape(-1))
        cycles[0] += turned
        np.cumsum(cycles, out=phase)
        turned = float(phase[-1])
        if mask.all():
            out.fill(0.0)
            return turned
        phase *= 1.0 / RATE
        np.floor(phase, out=cycles)
        phase -= cycles
        phase *= 2 * np.pi
        np.copyto(angle.reshape(-1), phase, casting="same_kind")

        np.divide(HIGHEST_HZ, hertz, out=order)
        np.floor(order, out=order)
        order += np.float32(0.5)
        np.multiply(order, angle, out=out)
        np.sin(out, out=out)
        angle *= np.float32(0.5)
        np.sin(angle, out=sine)
        sine *= np.float32(2.0)
        # Where both sines vanish the quotient is replaced by its limit, H + 1/2.
        limit = self._limit[:n]
        np.abs(sine, out=angle)
        np.less_equal(angle, SMALL_SINE, out=limit)
        np.copyto(sine, np.float32(1.0), where=limit)
        np.copyto(out, order, where=limit)
        out /= sine
        out -= np.float32(0.5)
        np.copyto(out, np.float32(0.0), where=mask)
        return turned


def _magnitude(exponent: Reals, out: Reals) -> None:
    np.minimum(exponent, LOUDEST, out=out)
    np.exp(out, out=out)


def _polar(exponent: Reals, angle: Reals, work: Reals, out: NDArray[np.complex64]) -> None:
    """out = exp(exponent) e^{i angle}"""
    _magnitude(exponent, work)
    for part, wave in ((out.real, np.cos), (out.imag, np.sin)):
        wave(angle, out=part)
        part *= work  # by parts: a product of complex and real numbers would convert, and so allocate
