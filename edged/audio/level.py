"""How much a voice is turned up or down on the loudspeaker, so that all are equally loud.

Pure. Neighbours: `segment` applies it; the figure comes with the audio from the bundle, where
`compiler.loudness` put it.
"""

from __future__ import annotations

OFF = 0.0  # as a target: the voices' own levels
MOST_DB = 12.0  # either way: beyond that it is the voice, or the figure, that is wrong


def gain_to(target_lufs: float, loudness_lufs: float | None) -> float:
    """The factor that brings a voice of this loudness to the target; 1 where it was not measured."""
    if loudness_lufs is None or target_lufs == OFF:
        return 1.0
    gain_db = max(-MOST_DB, min(MOST_DB, target_lufs - loudness_lufs))
    return float(10.0 ** (gain_db / 20.0))
