"""A bundle for TensorRT from a checkpoint to its voice, with stand-ins for the driver and for TensorRT."""

from __future__ import annotations

import gc
import json
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from edged.bundle import Bundle
from edged.compiler import build
from edged.compiler.chattts.thresholds import TENSORRT
from edged.compiler.parts import silent
from edged.engine import preflight
from edged.errors import BadValue, BundleInaccurate, CapabilityMismatch, DeviceMemoryShort
from edged.precision import check_precision
from edged.voices import golden
from tests.cuda.fake import Fake
from tests.trt import bindings
from tests.trt.voices import CONFIG, TEXT, builder, speak, voices

FILES = {
    "data/layers.json",
    "data/sampling.json",
    "data/speakers.json",
    "data/tokenizer.json",
    "engines/gpt.plan",
    "engines/vocoder.plan",
    "manifest.json",
}


def made(out: Path, checkpoint: Path, progress: Any = silent, **options: Any) -> Path:
    chosen = {"checkpoint": checkpoint, "backend": "tensorrt", "positions": 256, "slots": 2, **options}
    return build("chattts", out, progress, **chosen)


def test_from_the_checkpoint_to_the_voice(
    tiny_checkpoint: Path, tmp_path: Path, version: str, gpu: Fake
) -> None:
    order, told = builder(version), []  # type: ignore[var-annotated]
    sys.path.insert(0, str(bindings.PREPARED / version))  # where its metadata is
    out = made(tmp_path / "voice", tiny_checkpoint, lambda *step: told.append(step))
    fractions = [fraction for _, fraction in told]
    assert fractions == sorted(fractions)
    assert {"gpt: Building Engine", "compare 4 of 4", "done"} <= {phase for phase, _ in told}
    assert order.typed == [True, True]
    bundle = Bundle.load(out)
    assert {str(path.relative_to(out)) for path in out.rglob("*.*")} == FILES
    assert json.loads((out / "data/layers.json").read_text())["gpt"]["kinds"] == {"gemm": 1}

    manifest, record = bundle.manifest, bundle.manifest.tensorrt
    assert record is not None
    assert (manifest.backend, manifest.precision) == ("tensorrt", "fp16")
    assert (record.version, record.capability, record.cuda) == (version, "8.7", "13.0")
    assert record.device == "fake device (host memory)"
    assert manifest.thresholds == TENSORRT["fp16"]
    assert set(record.measured) == set(manifest.thresholds)
    assert 40 < record.measured["min_hidden_snr_db"] < 200, "compared, and not with itself"
    check_precision(manifest)
    gpt = {tensor.name: tensor for tensor in (*bundle.engine("gpt").inputs, *bundle.engine("gpt").outputs)}
    assert (gpt["past_k.0"].dtype, gpt["present_k.0"].alias) == ("float16", "past_k.0")
    assert gpt["past_k.0"].shape[:3] == (2, 4, 256)

    assert preflight.check(record, 1_500.0).tensorrt == version
    with pytest.raises(CapabilityMismatch):
        preflight.check(msgspec.structs.replace(record, capability="9.0"), 1_500.0)
    with pytest.raises(DeviceMemoryShort):
        preflight.check(record, record.device_mb - 0.1)
    gc.collect()
    assert gpu.left() == {}
    with voices(bundle) as (opened, arena):
        used = sum(row.megabytes for row in arena.plan() if row.kind == "device")
        assert record.device_mb == pytest.approx(used, abs=0.06)
        assert manifest.golden is not None
        golden.check(opened[0], manifest.golden)
        first, second = (np.concatenate(pieces) for pieces in speak(opened, [(0, TEXT, 1), (0, TEXT, 1)]))
        np.testing.assert_array_equal(first, second)
        assert np.isfinite(first).all()
        assert first.any()
    gc.collect()
    assert gpu.left() == {}


@pytest.mark.parametrize("precision", ["fp32", "int8", "int4"])
def test_every_precision(
    tiny_checkpoint: Path, tmp_path: Path, newest: str, gpu: Fake, precision: str
) -> None:
    builder(newest)
    bundle = Bundle.load(made(tmp_path / "voice", tiny_checkpoint, precision=precision))
    check_precision(bundle.manifest)
    with voices(bundle, CONFIG) as (opened, _):
        assert speak(opened, [(0, TEXT, 1)])[0]


def test_one_that_is_not_precise_is_refused_and_leaves_nothing(
    tiny_checkpoint: Path, tmp_path: Path, newest: str, gpu: Fake
) -> None:
    order = builder(newest)
    order.spoilt = 1.2
    with pytest.raises(BundleInaccurate, match="min_hidden_snr_db"):
        made(tmp_path / "voice", tiny_checkpoint)
    assert [path.name for path in tmp_path.iterdir()] == ["voice.timings"], "what was measured stays true"
    gc.collect()
    assert gpu.left() == {}


def test_a_cache_that_is_not_updated_in_place_is_found(
    tiny_checkpoint: Path, tmp_path: Path, newest: str, gpu: Fake
) -> None:
    builder(newest)
    from tests.trt.standin import world

    world.detached = True
    with pytest.raises(BundleInaccurate, match="min_hidden_snr_db"):
        made(tmp_path / "voice", tiny_checkpoint)


def test_eight_utterances_share_a_step(tiny_checkpoint: Path, tmp_path: Path, newest: str, gpu: Fake) -> None:
    """One profile is for pieces of a prompt, one for steps of as many rows as there are slots."""
    builder(newest)
    out = made(tmp_path / "voice", tiny_checkpoint, slots=8)
    from tests.trt.standin import MAGIC

    text = (out / "engines/gpt.plan").read_bytes()[len(MAGIC) :].partition(b"\n")[0]
    prompt, step = (profile["ids"] for profile in json.loads(text)["profiles"])
    assert [shape[:2] for shape in prompt] == [[1, 1], [1, 48]]
    assert [shape[:2] for shape in step] == [[1, 1], [8, 1]]
    with voices(Bundle.load(out), CONFIG) as (opened, _):
        assert gpu.live("graph") == 8
        spoken = speak(opened, [(0, TEXT, seed) for seed in range(8)], steps=30)
        assert all(sum(map(len, pieces)) for pieces in spoken)
        assert gpu.live("graph") == 8


@pytest.mark.parametrize("named", [".", "absent/file"])
def test_a_timing_cache_that_cannot_be_written_is_told_first(
    tiny_checkpoint: Path, tmp_path: Path, named: str
) -> None:
    """Before it is asked whether there is a GPU."""
    with pytest.raises(BadValue, match="timing cache") as caught:
        made(tmp_path / "voice", tiny_checkpoint, timing_cache=str(tmp_path / named))
    assert "--timing-cache" in caught.value.hint
    assert list(tmp_path.iterdir()) == []


def test_timings_are_kept_for_the_next_build(
    tiny_checkpoint: Path, tmp_path: Path, newest: str, gpu: Fake
) -> None:
    order, kept = builder(newest), tmp_path / "kept.timings"
    for number in (1, 2):
        made(tmp_path / f"voice{number}", tiny_checkpoint, timing_cache=str(kept), workspace=100)
    from tests.trt.standin_builder import TIMINGS

    assert kept.read_bytes() == TIMINGS
    assert order.timings == [b"", TIMINGS, TIMINGS, TIMINGS]
    kept.write_bytes(b"of another GPU")
    made(tmp_path / "voice3", tiny_checkpoint, timing_cache=str(kept))
    assert order.timings[4:] == [b"of another GPU", b"", TIMINGS]
    assert kept.read_bytes() == TIMINGS
