"""The golden utterance: proves that a voice on this machine still sounds as it did when it was built.

Called by the compiler (to record) and by tests (to compare). Runs a voice to the
end on the calling thread, so never while the daemon's engine thread owns that voice.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from edged.bundle import Golden
from edged.errors import EngineError
from edged.job import Params, Samples
from edged.text.prepare import prepare
from edged.voices.api import Voice

# Edges of the bands in Hz: about an octave each, where speech has its energy.
_EDGES = (60.0, 150.0, 300.0, 600.0, 1200.0, 2400.0, 4800.0)
_FLOOR_DB = -80.0  # quieter than this is silence whatever the rounding


def speak(voice: Voice, text: str, params: Params) -> Samples:
    """All samples of a text, pauses between utterances left out."""
    pieces: list[Samples] = []
    for utterance in prepare(text, voice.frontend, params=params):
        stream = voice.synthesizer.open(utterance, params)
        try:
            ended = False
            while not ended:
                (piece,) = voice.synthesizer.step([stream])
                pieces.append(piece.samples.copy())
                ended = piece.last
        finally:
            voice.synthesizer.close(stream)
    return np.concatenate(pieces) if pieces else np.zeros(0, np.float32)


def bands_db(samples: Samples, rate: int) -> tuple[float, ...]:
    """Mean level in each band in dB relative to full scale, to 0.1 dB."""
    power = np.abs(np.fft.rfft(samples.astype(np.float64))) ** 2 * 2 / max(1, len(samples)) ** 2
    hertz = np.arange(len(power)) * rate / max(1, len(samples))
    levels = []
    for low, high in pairwise(_EDGES):
        energy = float(power[(hertz >= low) & (hertz < high)].sum())
        levels.append(round(max(_FLOOR_DB, 10 * math.log10(max(energy, 1e-12))), 1))
    return tuple(levels)


def record(voice: Voice, text: str, *, samples_within: int, bands_within_db: float) -> Golden:
    """The fingerprint of `text` as this machine speaks it."""
    params = Params()
    samples = speak(voice, text, params)
    if not np.isfinite(samples).all() or not samples.any():
        raise EngineError(
            f"voice {voice.card.name}: speaks nothing but {'noise' if samples.any() else 'silence'}",
            "the network's weights are damaged, or too large for this precision",
        )
    return Golden(
        text=text,
        speed=params.speed,
        seed=params.seed,
        samples=len(samples),
        samples_within=samples_within,
        bands_db=bands_db(samples, voice.card.sample_rate),
        bands_within_db=bands_within_db,
    )


def check(voice: Voice, golden: Golden) -> None:
    """Raises `EngineError` when the voice does not sound as recorded."""
    samples = speak(voice, golden.text, Params(speed=golden.speed, seed=golden.seed))
    hint = "this machine computes the network differently: rebuild the bundle here"
    if not np.isfinite(samples).all():
        raise EngineError(f"voice {voice.card.name}: the audio is not finite", hint)
    if abs(len(samples) - golden.samples) > golden.samples_within:
        raise EngineError(
            f"voice {voice.card.name}: {len(samples)} samples instead of {golden.samples}", hint
        )
    for found, expected in zip(bands_db(samples, voice.card.sample_rate), golden.bands_db, strict=True):
        if abs(found - expected) > golden.bands_within_db:
            raise EngineError(
                f"voice {voice.card.name}: level {found} dB in a band instead of {expected} dB", hint
            )
