"""What native code refuses, call by call: the right error, nothing left behind, and the next job works."""

from __future__ import annotations

import gc
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from edged.bundle import Bundle
from edged.engine.buffers import Arena
from edged.errors import (
    CudaError,
    CudaUnavailable,
    DeviceOutOfMemory,
    EdgedError,
    EngineError,
    ShapeExceeded,
)
from edged.job import JobState
from edged.voices.chattts import data, voice
from edged.voices.chattts.voice import open_voices
from edged.worker import Worker
from tests.cuda.fake import Fake
from tests.test_chattts_voice import submit
from tests.trt import bundles
from tests.trt.voices import CONFIG, TEXT, speak, standins, synth_of, voices

NO_MEMORY, BROKEN = 2, 700  # CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_ILLEGAL_ADDRESS
CALLS = {  # of the driver, while loading: the nth fails
    "cuMemAlloc_v2": (NO_MEMORY, (1, 2, 3), DeviceOutOfMemory),
    "cuMemHostAlloc": (NO_MEMORY, (1,), DeviceOutOfMemory),
    "cuStreamCreate": (BROKEN, (1, 2, 5), CudaError),
    "cuEventCreate": (BROKEN, (1, 3, 6), CudaError),
    "cuInit": (BROKEN, (1,), CudaUnavailable),
    "cuDeviceGet": (BROKEN, (1,), CudaUnavailable),
    "cuDevicePrimaryCtxRetain": (BROKEN, (1,), CudaUnavailable),
    "cuCtxSetCurrent": (BROKEN, (1,), CudaError),
    "cuMemGetInfo_v2": (BROKEN, (1,), CudaError),
}
NATIVE = {  # of TensorRT, while loading
    "deserialize": (1, 2),
    "create_execution_context": (1, 2, 5),
    "set_optimization_profile_async": (1, 4),
}
SERVING = {
    "cuMemcpyHtoDAsync_v2": CudaError,
    "cuMemcpyDtoHAsync_v2": CudaError,
    "cuMemcpyDtoDAsync_v2": CudaError,
    "cuMemsetD8Async": CudaError,
    "cuEventRecord": CudaError,
    "cuStreamWaitEvent": CudaError,
    "cuEventSynchronize": CudaError,
    "cuGraphLaunch": CudaError,
}


def test_a_failed_start_leaves_nothing(onnx: Bundle, tmp_path: Path, newest: str, gpu: Fake) -> None:
    world = standins(newest)
    plans = bundles.plan_bundle(tmp_path / "voice", onnx)
    for call, (code, places, kind) in CALLS.items():
        for nth in places:
            gpu.fail(call, code, nth)
            with pytest.raises(EdgedError) as caught:
                open_voices(plans, CONFIG, Arena())
            gpu.fail(call, 0)
            assert type(caught.value) is kind, (call, nth, caught.value)
            caught = None  # type: ignore[assignment]
            gc.collect()
            assert (world.engines, world.contexts, gpu.left()) == (0, 0, {}), (call, nth)
    for call, places in NATIVE.items():
        for nth in places:
            world.fail[call] = nth
            with pytest.raises(EngineError, match=r"profile|context|cannot load"):
                open_voices(plans, CONFIG, Arena())
            gc.collect()
            assert world.fail[call] == 0
            assert (world.engines, world.contexts, gpu.left()) == (0, 0, {}), (call, nth)
    assert world.orphans == 0
    with voices(plans) as (opened, _):
        assert speak(opened, [(0, TEXT, 1)])


def test_what_is_half_made_ends_before_its_memory_and_context(
    onnx: Bundle, tmp_path: Path, newest: str, gpu: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error holds the frames that it came through, and they what was being made."""
    world = standins(newest)
    from tests.trt.standin import Engine

    plans = bundles.plan_bundle(tmp_path / "voice", onnx)
    gpu.fail("cuEventSynchronize", BROKEN)
    with pytest.raises(CudaError):
        open_voices(plans, CONFIG, Arena())
    gpu.fail("cuEventSynchronize", 0)
    for broken in ("get_tensor_name", "get_device_memory_size_for_profile_v2", "get_tensor_profile_shape"):
        with monkeypatch.context() as changed:
            changed.setattr(Engine, broken, lambda *_: 1 / 0)
            with pytest.raises(EngineError, match="cannot read"):
                open_voices(plans, CONFIG, Arena())
    with monkeypatch.context() as changed:
        changed.setattr(voice, "ChatSynthesizer", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            open_voices(plans, CONFIG, Arena())
    assert (world.engines, world.contexts, world.orphans, gpu.left()) == (0, 0, 0, {})


@pytest.mark.parametrize("call", ["cuCtxPushCurrent_v2", "cuCtxPopCurrent_v2"])
@pytest.mark.parametrize("nth", [1, 2, 4, 9, 16])
def test_a_context_that_cannot_be_changed_is_an_error_and_not_the_end(
    onnx: Bundle, tmp_path: Path, newest: str, gpu: Fake, call: str, nth: int
) -> None:
    """pycuda ends the process when it frees something and cannot change to its context."""
    standins(newest)
    plans = bundles.plan_bundle(tmp_path / "voice", onnx)
    gpu.fail(call, BROKEN, nth)
    with pytest.raises(EngineError):
        open_voices(plans, CONFIG, Arena())
    gc.collect()


def test_closing_goes_on_whatever_fails(onnx: Bundle, tmp_path: Path, newest: str, gpu: Fake) -> None:
    world = standins(newest)
    for call in ("cuGraphExecDestroy", "cuMemFreeHost", "cuStreamDestroy_v2"):
        before = gpu.left()
        arena = Arena()
        opened = open_voices(bundles.plan_bundle(tmp_path / call, onnx), CONFIG, arena)
        for one in opened:
            one.warm_up()
        arena.seal()
        speak(opened, [(0, TEXT, 1)], steps=40)
        gpu.fail(call, BROKEN)
        for one in opened:
            with suppress(EdgedError):
                one.close()
        gpu.fail(call, 0)
        del opened, one
        gc.collect()
        kinds = {kind for kind, count in gpu.left().items() if count > before.get(kind, 0)}
        assert kinds <= {"graph", "pinned", "stream"}, "what could not be freed"
        assert (world.engines, world.contexts) == (0, 0)


@pytest.mark.parametrize("graphs", [True, False], ids=["recorded", "plain"])
def test_a_failed_run_is_told_and_the_next_one_works(
    onnx: Bundle, tmp_path: Path, newest: str, gpu: Fake, graphs: bool
) -> None:
    world = standins(newest)
    config = type(CONFIG)(threads=1, cuda_graphs=graphs)
    with voices(bundles.plan_bundle(tmp_path / "voice", onnx), config) as (opened, _):
        wanted = [(0, TEXT, 1), (1, TEXT, 2)]
        expected = [np.concatenate(pieces) for pieces in speak(opened, wanted, steps=40)]

        def thrice() -> None:
            for _ in range(3):
                speak(opened, wanted, steps=40)

        def still_works(what: str) -> None:
            synth = synth_of(opened)
            for stream in list(synth._seated):
                synth.close(stream)
            synth._sound._free = list(range(3))
            for one, other in zip(speak(opened, wanted, steps=40), expected, strict=True):
                np.testing.assert_array_equal(np.concatenate(one), other, what)

        for call, kind in SERVING.items():
            if call == "cuGraphLaunch" and not graphs:
                continue
            for nth in (1, 4):
                gpu.fail(call, BROKEN, nth)
                with pytest.raises(EdgedError) as caught:
                    thrice()
                gpu.fail(call, 0)
                assert type(caught.value) is kind, (call, caught.value)
                still_works(call)
        for call in ("execute_async_v3", "set_input_shape", "set_tensor_address"):
            world.fail[call] = 7
            with pytest.raises(EngineError, match=r"illegal|no input|cannot lie") as caught:
                thrice()
            world.fail[call] = 0
            still_works(call)


def test_wrong_shapes_are_refused_before_native_code(
    onnx: Bundle, tmp_path: Path, newest: str, gpu: Fake
) -> None:
    world = standins(newest)
    with voices(bundles.plan_bundle(tmp_path / "voice", onnx)) as (opened, _):
        network = synth_of(opened)._generator.engine
        runs = world.runs
        for name, shape, row in (("ids", (4, 1, 4), 0), ("past_k.0", (2, 4, 512, 16), 2), ("no", (1,), 0)):
            with pytest.raises(ShapeExceeded):
                network.bind(name, shape, row)
        network.bind("ids", (2, 48, 4))
        with pytest.raises(ShapeExceeded, match="no profile"):
            network.run()
        network.bind("ids", (1, 1, 4))
        network.bind("hidden", (2, 64))
        with pytest.raises(EngineError, match=r"'hidden' will be \[1, 64\], and \[2, 64\] is bound"):
            network.run()
        assert world.runs == runs


def test_a_job_fails_and_the_next_one_speaks(onnx: Bundle, tmp_path: Path, newest: str, gpu: Fake) -> None:
    world = standins(newest)
    crashes: list[BaseException] = []
    with voices(bundles.plan_bundle(tmp_path / "voice", onnx)) as (opened, _):
        synth_of(opened)._sampling = data.Sampling(min_steps=40)
        worker = Worker({voice.card.name: voice for voice in opened}, 0.25, crashes.append)
        worker.start()
        try:
            for fault in ("execute_async_v3", ""):
                world.fail = {fault: 2}
                job, sink = submit(worker, opened[0], TEXT, 1)
                assert sink.ended.wait(30)
                if fault:
                    assert job.state is JobState.FAILED
                    assert job.error is not None
                    assert job.error.code == "engine"
                    assert "illegal memory access" in job.error.message
                else:
                    assert job.state is JobState.DONE
        finally:
            assert worker.stop(5.0)
    assert not crashes
    gc.collect()
    assert gpu.left() == {}
