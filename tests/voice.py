"""A synthetic recording for tests: something with pitch, a falling spectrum, pauses and breath."""

from __future__ import annotations

from typing import Any

import numpy as np


def voice(samples: int, seed: int = 0) -> Any:
    """[1, samples] at 24 kHz: harmonics with a moving pitch and pauses, and breath."""
    generator = np.random.default_rng(seed)
    time = np.arange(samples) / 24_000
    phase = 2 * np.pi * np.cumsum(130 + 40 * np.sin(5 * time + seed)) / 24_000
    tone = sum(np.sin(k * phase) / k for k in range(1, 40))
    level = np.clip(np.sin(9 * time) + 0.6, 0.02, None)
    return (0.2 * level * (tone + 0.1 * generator.standard_normal(samples))).astype(np.float32)[None]
