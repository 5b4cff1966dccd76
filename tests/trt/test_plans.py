"""A plan that is not as its manifest says is refused with its file's name, and nothing stays open."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from edged.bundle import Bundle, EngineFile, Tensor
from edged.engine.buffers import Arena
from edged.errors import EngineError, PlanRefused
from edged.voices.chattts.voice import open_voices
from tests.cuda.fake import Fake
from tests.trt import bundles
from tests.trt.voices import CONFIG, standins

Change = Callable[[Tensor], Tensor]


def changed(bundle: Bundle, tensor: str, change: Change, engine: str = "gpt") -> Bundle:
    """With a tensor of the manifest that is not as the plan has it."""

    def one(entry: EngineFile) -> EngineFile:
        parts = {
            part: tuple(change(t) if t.name == tensor else t for t in getattr(entry, part))
            for part in ("inputs", "outputs")
        }
        return msgspec.structs.replace(entry, **parts) if entry.name == engine else entry

    engines = tuple(one(entry) for entry in bundle.manifest.engines)
    return Bundle(bundle.path, msgspec.structs.replace(bundle.manifest, engines=engines))


def to(**values: object) -> Change:
    return lambda tensor: msgspec.structs.replace(tensor, **values)


def test_a_plan_must_be_as_its_manifest_says(onnx: Bundle, tmp_path: Path, newest: str, gpu: Fake) -> None:
    world = standins(newest)
    plans = bundles.plan_bundle(tmp_path / "voice", onnx)
    for bundle, told in (
        (changed(plans, "present_v.1", to(name="present_v.9")), "has tensors"),
        (changed(plans, "uniform", to(dtype="float16")), "input 'uniform' is float32"),
        (changed(plans, "history", to(shape=(3, 17, 4))), "input 'history' is int64"),
        (changed(plans, "end", to(dtype="int32")), "output 'end' is int64"),
        (changed(plans, "text", to(shape=(3, 64))), "take 'text' up to 48 in dimension 1"),
        (changed(plans, "samples", to(alias="hidden"), "vocoder"), "'samples' is written in place"),
    ):
        with pytest.raises(EngineError, match=told) as caught:
            open_voices(bundle, CONFIG, Arena())
        assert ".plan: " in caught.value.message
    gc.collect()
    assert (world.engines, world.contexts, gpu.left()) == (0, 0, {})


def test_a_process_has_one_logger_of_tensorrt(newest: str, gpu: Fake) -> None:
    standins(newest)
    from edged.compiler import trt
    from edged.engine import trt_runtime

    assert trt._logger(sys.modules["tensorrt"]) is trt_runtime.logger()
    assert trt_runtime.logger().quiet, "a build tells its errors itself"


@pytest.mark.parametrize("content", [b"", b"ftrt and what is no plan", b"\x08\x0a an ONNX file"])
def test_a_file_that_is_no_plan(onnx: Bundle, tmp_path: Path, newest: str, gpu: Fake, content: bytes) -> None:
    standins(newest)
    plans = bundles.plan_bundle(tmp_path / "voice", onnx)
    file = plans.path / "engines/vocoder.plan"
    file.write_bytes(content)
    with pytest.raises(EngineError, match=r"vocoder\.plan") as caught:
        open_voices(plans, CONFIG, Arena())
    assert "\n" not in caught.value.message
    assert "rebuild" in caught.value.hint or not content
    assert isinstance(caught.value, PlanRefused) == bool(content)
    gc.collect()
    assert gpu.left() == {}
    file.unlink()
    with pytest.raises(EngineError, match="No such file"):
        open_voices(plans, CONFIG, Arena())
