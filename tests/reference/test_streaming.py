"""The streaming vocoder at full size against the whole utterance, as the small one in tests/test_sound.py.

Needs no reference package: `python -m pytest -m reference tests/reference/test_streaming.py`.
EDGED_CHECKPOINT names a checkpoint folder; without it a random one of full size is made (1 GB).
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from edged import settings
from edged.compiler.chattts.checkpoint import Checkpoint
from edged.compiler.chattts.past import in_place
from edged.compiler.chattts.random_checkpoint import FULL, make_checkpoint
from edged.compiler.chattts.vocoder import build_vocoder
from edged.engine import select
from edged.engine.buffers import Arena
from edged.voices.chattts.sound import FADE, Sound, whole
from tests.chattts_numpy import snr
from tests.test_sound import LONG, spoken

pytestmark = [pytest.mark.reference, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if "EDGED_CHECKPOINT" in os.environ:
        return Path(os.environ["EDGED_CHECKPOINT"])
    return make_checkpoint(tmp_path_factory.mktemp("checkpoint") / "full", FULL)


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_chunks_are_the_whole_utterance(folder: Path, tmp_path: Path, precision: str) -> None:
    with Checkpoint.open(folder) as checkpoint:
        made = build_vocoder(checkpoint, tmp_path / "vocoder.onnx", precision=precision, steps=LONG, tracks=1)
        width = checkpoint.sizes.hidden
    outputs = [in_place(spec) for spec in made.outputs]
    engine = select.load(
        tmp_path / "vocoder.onnx", "onnxruntime", made.inputs, outputs, Arena(), settings.Engine()
    )
    sound = Sound(engine, Arena(), "test", 1)
    for seed in range(3):
        hidden = np.random.default_rng(seed).standard_normal((LONG, width)).astype(np.float32)
        expected = whole(engine, hidden).copy()
        chunks = spoken(sound, hidden)
        found, first = np.concatenate(chunks), chunks[0].size + FADE
        figures = [snr(expected[p], found[p]) for p in (slice(first), slice(first, None), slice(None))]
        print(f"{precision}: first, others, all: {', '.join(f'{figure:.1f}' for figure in figures)} dB")
        assert figures[0] >= 40
        assert figures[1] >= 57
        assert figures[2] >= 55
