"""The vocoder and encoder graphs at full size against the reference package itself.

Run in an environment that holds both: `python -m pytest -m reference tests/reference`. EDGED_CHECKPOINT
names a checkpoint folder; without it a random one of full size is made (1 GB).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edged.compiler.chattts.checkpoint import Checkpoint
from edged.compiler.chattts.encoder import build_encoder
from edged.compiler.chattts.random_checkpoint import FULL, make_checkpoint
from edged.compiler.chattts.vocoder import build_code_vocoder, build_vocoder
from tests.chattts_numpy import snr
from tests.graphs import session
from tests.reference import live
from tests.voice import voice

pytestmark = [
    pytest.mark.reference,
    pytest.mark.timeout(900),
    pytest.mark.skipif(bool(live.available()), reason=f"the reference cannot run: {live.available()}"),
]
DIALECTS = ("ort", "standard")
STEPS = (1, 2, 3, 40, 200)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if "EDGED_CHECKPOINT" in os.environ:
        return Path(os.environ["EDGED_CHECKPOINT"])
    return make_checkpoint(tmp_path_factory.mktemp("checkpoint") / "full", FULL)


@pytest.fixture(scope="module")
def reference(folder: Path) -> Any:
    return live.load(folder)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("kind", ["hidden", "codes"])
def test_samples(folder: Path, reference: Any, tmp_path: Path, kind: str, dialect: str) -> None:
    import torch

    builder = build_vocoder if kind == "hidden" else build_code_vocoder
    with Checkpoint.open(folder) as checkpoint:
        builder(checkpoint, tmp_path / "graph.onnx", dialect=dialect, debug=True)
        hidden = checkpoint.sizes.hidden
    graph = session(tmp_path / "graph.onnx")
    decoder = reference.decoder if kind == "hidden" else reference.dvae
    generator = np.random.default_rng(0)
    for steps in STEPS:
        if kind == "hidden":
            value: Any = generator.standard_normal((1, steps, hidden)).astype(np.float32)
        else:
            value = generator.integers(0, 625, (1, steps, 4))
        samples, mel = graph.run(None, {kind: value})
        # The reference changes its input in place.
        expected = decoder(torch.from_numpy(value.transpose(0, 2, 1).copy()))
        assert np.abs(mel - expected.numpy()).max() <= 1e-3
        wave = reference.samples(expected).numpy()
        assert wave.shape == samples.shape
        assert snr(wave, samples) >= 60


@pytest.mark.parametrize("dialect", DIALECTS)
def test_codes(folder: Path, reference: Any, tmp_path: Path, dialect: str) -> None:
    import torch

    with Checkpoint.open(folder) as checkpoint:
        build_encoder(checkpoint, tmp_path / "graph.onnx", dialect=dialect)
    graph = session(tmp_path / "graph.onnx")
    same: list[bool] = []
    for seed, samples in enumerate((513, 24_000, 240_077, 720_000, 720_000)):
        audio = voice(samples, seed)
        (codes,) = graph.run(None, {"audio": audio})
        expected = reference.dvae.sample_audio(torch.from_numpy(audio[0].copy())).numpy()
        assert codes[0].shape == expected.shape
        same += (codes[0] == expected).all(axis=0).tolist()
    assert np.mean(same) >= 0.999
