"""The encoder graph against plain numpy: mel, codes, lengths, both dialects and both quantiser rules."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from edged.compiler.chattts import fourier, fsq
from edged.compiler.chattts.checkpoint import Checkpoint
from edged.compiler.chattts.encoder import build_encoder
from edged.compiler.chattts.layers import Net
from edged.compiler.graph import Graph
from edged.engine.api import TensorSpec
from tests import chattts_numpy as plain
from tests.checkpoints import tiny
from tests.graphs import session
from tests.voice import voice

DIALECTS = ("ort", "standard")


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checkpoint]:
    with Checkpoint.open(tiny(tmp_path_factory.mktemp("checkpoint") / "tiny")) as opened:
        yield opened


@pytest.fixture(scope="module")
def encoder(checkpoint: Checkpoint, tmp_path_factory: pytest.TempPathFactory) -> Any:
    root = tmp_path_factory.mktemp("encoders")
    made: dict[Any, Any] = {}

    def get(dialect: str = "ort", rule: str = "symmetric", precision: str = "fp32") -> Any:
        key = (dialect, rule, precision)
        if key not in made:
            path = root / ("-".join(key) + ".onnx")
            build_encoder(checkpoint, path, dialect=dialect, rule=rule, precision=precision, debug=True)
            made[key] = session(path)
        return made[key]

    return get


@pytest.mark.parametrize("rule", fsq.RULES)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_equals_numpy(checkpoint: Checkpoint, encoder: Any, dialect: str, rule: str) -> None:
    audio = voice(24_000 * 8 + 77)
    codes, mel = encoder(dialect, rule).run(None, {"audio": audio})
    assert codes.dtype == np.int64
    assert np.abs(mel[0] - plain.log_mel(audio[0])).max() < 5e-3  # in the deepest valleys of the spectrum
    wanted = plain.Model(checkpoint).encode(audio[0], rule)
    assert codes[0].shape == wanted.shape
    assert (codes[0] == wanted).all(axis=0).mean() >= 0.997  # one frame of 375
    assert len(np.unique(wanted)) > 50


@pytest.mark.parametrize("samples", [513, 767, 768, 1024, 5000, 24_000])
def test_length(encoder: Any, samples: int) -> None:
    frames = 1 + samples // 256
    codes, mel = encoder().run(None, {"audio": voice(samples)})
    assert mel.shape == (1, 100, frames)
    assert codes.shape == (1, 4, frames // 2)


def test_dialects_agree(encoder: Any) -> None:
    fused, standard = (encoder(dialect).run(None, {"audio": voice(60_000, 3)}) for dialect in DIALECTS)
    assert (fused[0] == standard[0]).mean() > 0.995
    assert np.abs(fused[1] - standard[1]).max() < 1e-3


def test_silence_is_not_special(encoder: Any) -> None:
    codes, mel = encoder().run(None, {"audio": np.zeros((1, 9000), np.float32)})
    assert np.allclose(mel, np.log(1e-5))
    assert codes.min() >= 0
    assert codes.max() < 625


def test_half_precision_weights_change_few_codes(encoder: Any) -> None:
    audio = voice(24_000 * 8, 1)
    exact = encoder().run(None, {"audio": audio})[0]
    assert (exact == encoder(precision="fp16").run(None, {"audio": audio})[0]).mean() > 0.97


@pytest.mark.parametrize("rule", fsq.RULES)
def test_quantiser(checkpoint: Checkpoint, rule: str) -> None:
    """Also far outside of the range, and at zero."""
    net = Net(Graph("fsq"), checkpoint)
    width = checkpoint.sizes.dvae_encoder.outputs
    x = net.graph.input("x", "float32", [1, 1, "time", width], (1, 1, 400, width))
    net.graph.output(fsq.encode(net, x, rule), "codes", "int64", [1, 4, "time"], (1, 4, 400))
    value = 10 * np.random.default_rng(0).standard_normal((1, 1, 400, width)).astype(np.float32)
    value[0, 0, 0] = 0
    value[0, 0, 1] *= 100
    found = session(net.graph.build().SerializeToString()).run(None, {"x": value})[0][0]
    wanted = []
    for group, part in enumerate(np.split(value[0, 0].astype(float), 2, axis=1)):
        get = plain.Model(checkpoint).get("dvae", f"vq_layer.quantizer.rvqs.{group}.project_in.")
        wanted += plain.quantise(part @ get("weight").T + get("bias"), rule)
    assert (found == np.stack(wanted)).mean() >= 0.999


def test_codes_come_back(checkpoint: Checkpoint) -> None:
    """What a code stands for quantises to the same code at the first stage."""
    digits = fsq.codebook("symmetric")[0].astype(float)
    reach = 1.25 * np.arctanh(np.clip(digits / 1.25, -0.999, 0.999))
    assert (plain.quantise(reach)[0] == np.arange(625)).all()


def test_filterbank() -> None:
    filters = fourier.mel_filters(100, 1024)
    assert filters.shape == (513, 100)
    assert filters.min() == 0
    assert 0.5 < filters.max() <= 1
    assert (np.diff(filters.argmax(axis=0)) >= 0).all()


def test_standard_dialect_uses_no_special_operators(checkpoint: Checkpoint, tmp_path: Path) -> None:
    interface = build_encoder(checkpoint, tmp_path / "e.onnx", dialect="standard", seconds=10)
    model = onnx.load(tmp_path / "e.onnx")
    onnx.checker.check_model(model, full_check=True)
    assert [one.domain for one in model.opset_import] == [""]
    assert not {"DFT", "STFT", "Col2Im", "NonZero"} & {node.op_type for node in model.graph.node}
    assert interface.inputs == [TensorSpec("audio", "float32", (1, 240_000))]
    assert interface.outputs == [TensorSpec("codes", "int64", (1, 4, (1 + 240_000 // 256) // 2))]


def test_no_integer_precision(checkpoint: Checkpoint, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="int8"):
        build_encoder(checkpoint, tmp_path / "e.onnx", precision="int8")
