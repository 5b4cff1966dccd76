"""The vocoder graphs against plain numpy: both dialects, all precisions, any length."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from edged.compiler.chattts import fourier, fsq
from edged.compiler.chattts.checkpoint import Checkpoint
from edged.compiler.chattts.convnext import block
from edged.compiler.chattts.layers import Net
from edged.compiler.chattts.vocoder import build_code_vocoder, build_vocoder
from edged.compiler.graph import Graph
from edged.engine.api import TensorSpec
from tests import chattts_numpy as plain
from tests.chattts_numpy import snr
from tests.checkpoints import tiny
from tests.graphs import session

DIALECTS = ("ort", "standard")
BUILDERS = {"hidden": build_vocoder, "codes": build_code_vocoder}


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checkpoint]:
    with Checkpoint.open(tiny(tmp_path_factory.mktemp("checkpoint") / "tiny")) as opened:
        yield opened


@pytest.fixture(scope="module")
def graphs(checkpoint: Checkpoint, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A function (input, dialect, precision, ...) -> session; each graph is built once."""
    root = tmp_path_factory.mktemp("graphs")
    made: dict[Any, Any] = {}

    def graph(kind: str, dialect: str = "ort", precision: str = "fp32", **options: Any) -> Any:
        key = (kind, dialect, precision, *sorted(options.items()))
        if key not in made:
            path = root / f"{len(made)}.onnx"
            BUILDERS[kind](checkpoint, path, dialect=dialect, precision=precision, debug=True, **options)
            made[key] = session(path)
        return made[key]

    return graph


def random_input(checkpoint: Checkpoint, kind: str, steps: int, seed: int = 0) -> Any:
    generator = np.random.default_rng(seed)
    if kind == "codes":
        return generator.integers(0, 625, (1, steps, 4))
    return generator.standard_normal((1, steps, checkpoint.sizes.hidden)).astype(np.float32)


def expected(checkpoint: Checkpoint, kind: str, value: Any, ratio: int = 5) -> tuple[Any, Any]:
    model = plain.Model(checkpoint)
    if kind == "codes":
        mel = model.mel(model.codes_to_features(value[0], ratio), "dvae")
    else:
        mel = model.mel(value[0].T.astype(float), "decoder")
    return mel, model.samples(mel)


@pytest.mark.parametrize("steps", [1, 2, 3, 40])
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("kind", BUILDERS)
def test_equals_numpy(checkpoint: Checkpoint, graphs: Any, kind: str, dialect: str, steps: int) -> None:
    value = random_input(checkpoint, kind, steps)
    samples, mel = graphs(kind, dialect).run(None, {kind: value})
    mel_expected, samples_expected = expected(checkpoint, kind, value)
    assert samples.shape == (1, (2 * steps - 1) * 256)
    assert mel.shape == (1, 100, 2 * steps)
    assert np.abs(mel[0] - mel_expected).max() < 1e-3
    assert snr(samples_expected, samples[0]) > 100


def test_older_rule_of_the_quantiser(checkpoint: Checkpoint, graphs: Any) -> None:
    value = random_input(checkpoint, "codes", 12)
    _, mel = graphs("codes", rule="tanh").run(None, {"codes": value})
    assert np.abs(mel[0] - expected(checkpoint, "codes", value, 4)[0]).max() < 1e-3
    assert np.abs(mel[0] - expected(checkpoint, "codes", value, 5)[0]).max() > 1e-2


@pytest.mark.parametrize("kind", BUILDERS)
def test_dialects_agree(checkpoint: Checkpoint, graphs: Any, kind: str) -> None:
    value = random_input(checkpoint, kind, 33, seed=5)
    fused, standard = (graphs(kind, dialect).run(None, {kind: value}) for dialect in DIALECTS)
    for one, other in zip(fused, standard, strict=True):
        assert np.abs(one - other).max() < 1e-3


@pytest.mark.parametrize(("precision", "bound"), [("int8", 32.0), ("fp16", 50.0)])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_precisions(checkpoint: Checkpoint, graphs: Any, dialect: str, precision: str, bound: float) -> None:
    for kind in BUILDERS:
        value = random_input(checkpoint, kind, 40, seed=2)
        exact = graphs(kind).run(None, {kind: value})[0]
        assert snr(exact, graphs(kind, dialect, precision).run(None, {kind: value})[0]) > bound


def test_kept_layers_are_more_exact(checkpoint: Checkpoint, graphs: Any) -> None:
    value = random_input(checkpoint, "hidden", 40)
    exact = graphs("hidden").run(None, {"hidden": value})[0]
    found = [
        snr(exact, graphs("hidden", precision="int8", keep=keep).run(None, {"hidden": value})[0])
        for keep in ((), ("vocos.*",), ("vocos.*", "decoder.*"))
    ]
    assert found[0] < found[1] < found[2]


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_a_window_with_its_receptive_field_gives_the_same_samples(
    checkpoint: Checkpoint, graphs: Any, precision: str
) -> None:
    """What streaming rests on: no step sees anything beyond its receptive field, not even a scale."""
    margin = 20  # steps; two layers of each kind reach 1 + 1 + 2 x 6 + 1 + 3 + 2 x 3 + 2 frames
    value = random_input(checkpoint, "hidden", 100)
    run = graphs("hidden", precision=precision).run
    whole = run(None, {"hidden": value})[0][0]
    part = run(None, {"hidden": value[:, 40 - margin : 60 + margin]})[0][0]
    inner = part[margin * 512 : (margin + 20) * 512]
    assert snr(whole[40 * 512 : 60 * 512], inner) > 90


def test_quiet_frames_keep_their_resolution_in_int8(checkpoint: Checkpoint) -> None:
    """A frame's scale is its own: one loud frame must not coarsen the others."""
    net = Net(Graph("linear"), checkpoint, precision="int8")
    generator = np.random.default_rng(0)
    matrix = generator.standard_normal((64, 32)).astype(np.float32)
    x = net.graph.input("x", "float32", [1, 1, "time", 64], (1, 1, 9, 64))
    net.graph.output(net.linear(x, "layer", matrix), "y", "float32", [1, 1, "time", 32], (1, 1, 9, 32))
    value = generator.standard_normal((1, 1, 9, 64)).astype(np.float32)
    value[0, 0, 4] *= 1000
    value[0, 0, 5] = 0
    found = session(net.graph.build().SerializeToString()).run(None, {"x": value})[0]
    for frame in (0, 3, 4, 8):
        assert snr(value[0, 0, frame] @ matrix, found[0, 0, frame]) > 30
    assert not found[0, 0, 5].any()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_block_equals_numpy(checkpoint: Checkpoint, dialect: str) -> None:
    prefix, width = "decoder.decoder_block.1", checkpoint.sizes.decoder.hidden
    net = Net(Graph("block"), checkpoint, dialect=dialect)
    x = net.graph.input("x", "float32", [1, 1, "time", width], (1, 1, 30, width))
    y = block(net, x, "decoder", prefix, "weight", 2)
    net.graph.output(y, "y", "float32", [1, 1, "time", width], (1, 1, 30, width))
    value = np.random.default_rng(0).standard_normal((1, 1, 30, width)).astype(np.float32)
    found = session(net.graph.build().SerializeToString()).run(None, {"x": value})[0]
    get = plain.Model(checkpoint).get("decoder", f"{prefix}.")
    assert np.abs(found[0, 0].T - plain.block(value[0, 0].T, get, "weight", 2)).max() < 1e-4


@pytest.mark.parametrize("frames", [2, 3, 4, 5, 50])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_inverse_transform(checkpoint: Checkpoint, dialect: str, frames: int) -> None:
    """Any spectrum, also one that no signal has, and imaginary parts where a real signal has none."""
    net = Net(Graph("istft"), checkpoint, dialect=dialect)
    most = (1, 1, 50, 513)
    parts = [net.graph.input(name, "float32", [1, 1, "frames", 513], most) for name in ("re", "im")]
    samples = fourier.inverse(net, parts[0], parts[1], 1024)
    net.graph.output(samples, "samples", "float32", [1, "samples"], (1, 49 * 256))
    values = np.random.default_rng(frames).standard_normal((2, 1, 1, frames, 513)).astype(np.float32)
    feed = {"re": values[0], "im": values[1]}
    found = session(net.graph.build().SerializeToString()).run(None, feed)[0]
    wanted = plain.istft((values[0, 0, 0] + 1j * values[1, 0, 0]).T.astype(np.complex128))
    assert found.shape == (1, (frames - 1) * 256)
    assert snr(wanted, found[0]) > 110


def test_codebook_of_the_quantiser() -> None:
    first, second = fsq.codebook("symmetric")
    assert first.shape == (625, 4)
    assert np.allclose(first, plain.values_of(np.arange(625)))
    assert np.allclose(second, first / 5)
    assert np.allclose(fsq.codebook("tanh")[1], first / 4)


@pytest.mark.parametrize("precision", ["fp32", "int8"])
@pytest.mark.parametrize("kind", BUILDERS)
def test_standard_dialect_uses_no_special_operators(
    checkpoint: Checkpoint, tmp_path: Path, kind: str, precision: str
) -> None:
    path = tmp_path / "standard.onnx"
    BUILDERS[kind](checkpoint, path, dialect="standard", precision=precision)
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    assert [one.domain for one in model.opset_import] == [""]
    assert not {"DFT", "STFT", "Col2Im", "NonZero"} & {node.op_type for node in model.graph.node}


def test_interface_and_reproducible_file(checkpoint: Checkpoint, tmp_path: Path) -> None:
    seen: list[float] = []
    interface = build_vocoder(
        checkpoint, tmp_path / "a.onnx", steps=100, progress=lambda phase, fraction: seen.append(fraction)
    )
    build_vocoder(checkpoint, tmp_path / "b.onnx", steps=100)
    assert interface.inputs == [TensorSpec("hidden", "float32", (1, 100, checkpoint.sizes.hidden))]
    assert interface.outputs == [TensorSpec("samples", "float32", (1, 199 * 256))]
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()
    assert seen == sorted(seen)
    assert seen[-1] == 1.0


@pytest.mark.parametrize("wrong", [{"dialect": "french"}, {"precision": "int3"}])
def test_unknown_choices(checkpoint: Checkpoint, tmp_path: Path, wrong: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="none of"):
        build_vocoder(checkpoint, tmp_path / "x.onnx", **wrong)  # type: ignore[arg-type]


def test_unknown_rule(checkpoint: Checkpoint, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="none of"):
        build_code_vocoder(checkpoint, tmp_path / "x.onnx", rule="guess")
