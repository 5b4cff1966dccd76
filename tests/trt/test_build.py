"""A bundle for TensorRT from a checkpoint to its voice, with stand-ins for the driver and for TensorRT."""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from edged.bundle import Bundle
from edged.compiler import build
from edged.compiler.chattts import plans
from edged.compiler.chattts.thresholds import TENSORRT
from edged.compiler.parts import silent
from edged.compiler.trt import Limits
from edged.engine import preflight
from edged.errors import BadValue, BundleInaccurate, CapabilityMismatch, DeviceMemoryShort
from edged.precision import check_precision
from edged.voices import golden
from tests.cuda.fake import Fake
from tests.plugin_library import plugin, registry
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


def test_a_signal_ends_a_build_in_native_code(
    tiny_checkpoint: Path, tmp_path: Path, newest: str, gpu: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Native code does not return to Python on the thread that signals are served on, so it has another."""
    builder(newest)
    from tests.trt.standin_builder import Builder

    ended = threading.Event()

    def native(self: Any, network: Any, config: Any) -> None:
        assert threading.current_thread() is not threading.main_thread()
        config.progress_monitor.phase_start("tactics", None, 1_000)
        os.kill(os.getpid(), signal.SIGINT)
        for step in range(1_000):
            time.sleep(0.01)
            if not config.progress_monitor.step_complete("tactics", step):
                break
        ended.set()

    monkeypatch.setattr(Builder, "build_serialized_network", native)
    with pytest.raises(KeyboardInterrupt):
        made(tmp_path / "voice", tiny_checkpoint)
    assert ended.is_set(), "nothing is taken away under native code that works with it"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("fault", ["unreadable", "unwritable", "refused", "nothing"])
def test_timings_that_cannot_be_kept_do_not_fail_a_build(
    tiny_checkpoint: Path, tmp_path: Path, newest: str, gpu: Fake, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    builder(newest)
    from tests.trt.standin_builder import Cache, Config

    kept = tmp_path / "kept" / "timings"
    kept.parent.mkdir()
    kept.write_bytes(b"of another GPU")

    def refuse(*_: object) -> Any:
        raise PermissionError(13, "Permission denied")

    if fault == "unreadable":
        monkeypatch.setattr(Path, "read_bytes", _except(kept, Path.read_bytes, refuse))
    elif fault == "unwritable":
        monkeypatch.setattr(Path, "replace", refuse)
    elif fault == "refused":
        monkeypatch.setattr(Config, "create_timing_cache", lambda self, kept: None if kept else Cache(b""))
    else:
        monkeypatch.setattr(Cache, "serialize", lambda self: None)
    made(tmp_path / "voice", tiny_checkpoint, timing_cache=str(kept))
    Bundle.load(tmp_path / "voice")
    assert [path.name for path in kept.parent.iterdir()] == ["timings"]


def _except(path: Path, real: Any, instead: Any) -> Any:
    return lambda self: instead() if self == path else real(self)


def test_a_timing_cache_or_workspace_that_cannot_be_used_is_refused_before_the_work(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.write_bytes(b"")
    link, pipe, loop = (tmp_path / name for name in ("link", "pipe", "loop"))
    link.symlink_to(kept)
    os.mkfifo(pipe)
    loop.symlink_to(loop)
    assert Limits(timing_cache=link).timing_cache == kept.resolve()
    for path in (pipe, tmp_path, loop, Path(), Path("/dev/null")):
        with pytest.raises(BadValue, match="timing cache"):
            Limits(timing_cache=path)
    for workspace in (-1, 10**15):
        with pytest.raises(BadValue, match="workspace"):
            Limits(workspace)


def test_a_plugin_is_loaded_once_for_the_build_and_its_bundle(
    tiny_checkpoint: Path, tmp_path: Path, newest: str, gpu: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bundle that is tried at the end has a copy of the library."""
    builder(newest)
    real = plans.networks  # ONNX Runtime knows no plugin: the networks are those without
    monkeypatch.setattr(plans, "networks", lambda *args, **more: real(*args, **{**more, "plugin": False}))
    library = plugin(tmp_path / "plugin.so", registry(tmp_path))
    out = made(tmp_path / "voice", tiny_checkpoint, plugin=str(library))
    record = Bundle.load(out).manifest.tensorrt
    assert record is not None
    assert record.plugin == "plugin"
    assert (out / "engines/plugin.so").read_bytes() == library.read_bytes()


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
