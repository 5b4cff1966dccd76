"""What a row of the decoder network draws may depend on how many rows run beside it: not at all in fp32, and
at 4 and 8 bits only as far as rounding goes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from edged import settings
from edged.bundle import Bundle
from edged.engine.buffers import Arena
from edged.voices.chattts.data import Sampling
from edged.voices.chattts.generator import HISTORY, Generator
from edged.voices.chattts.voice import engine
from tests.bundles import build_chattts

STEPS = 80


@pytest.mark.parametrize(
    ("precision", "least", "close"), [("fp32", 1.0, 0.0), ("int8", 0.9, 0.05), ("int4", 0.9, 0.05)]
)
def test_a_row_alone_and_beside_others(
    tiny_checkpoint: Path, tmp_path: Path, precision: str, least: float, close: float
) -> None:
    """The same cache, the same noise: one row, then all of them. least: share of steps that draw the same
    codes; close: by how much the hidden states may differ, against their length."""
    bundle = Bundle.load(build_chattts(tmp_path / "b", tiny_checkpoint, precision=precision))
    generator = Generator(engine(bundle, "gpt", settings.Engine(), Arena()), bundle.limit("prompt_piece"))
    noise = np.random.Generator(np.random.PCG64(0))
    prompt = noise.integers(100, 400, (20, 1)).repeat(generator.codebooks, 1)
    for row in range(generator.rows):
        generator.seat(row, np.zeros(generator.hidden_size, np.float32), Sampling())
        generator.draw(row, noise, True)
        generator.prompt(row, prompt, np.ones(len(prompt), np.int64))
        generator.codes[row] = 7
        generator.accept(row, HISTORY - 1, False)
    alike, apart = 0, []
    draws = generator._full["uniform"]
    for step in range(STEPS):
        draws[:] = noise.random(draws.shape[1:], dtype=np.float32)
        generator.step(0, generator.rows)
        beside, codes = generator.hidden[0].copy(), generator.codes[0].copy()
        generator.step(0, 1)
        alike += bool((generator.codes[0] == codes).all())
        alone = generator.hidden[0]
        apart.append(np.linalg.norm(alone - beside) / np.linalg.norm(alone))
        generator.codes[:] = generator.codes[0]
        for row in range(generator.rows):
            generator.accept(row, step, True)
    generator.close()
    assert alike >= least * STEPS
    assert np.median(apart) <= close
