"""The TensorRT backend under a real voice: same sounds as ONNX Runtime, nothing allocated, every failure told."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edged import settings
from edged.bundle import Bundle
from edged.engine.buffers import Arena
from edged.errors import CudaError, DeviceOutOfMemory, EngineError
from edged.job import Params
from edged.voices.api import Voice
from edged.voices.chattts import data
from edged.voices.chattts.synth import ChatSynthesizer
from edged.voices.chattts.voice import open_voices
from tests.cuda.fake import Fake
from tests.trt import bindings, bundles

TEXT = "Hello world. The time is good."
CONFIG = settings.Engine(threads=1)


@pytest.fixture(scope="module")
def onnx(tiny_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return bundles.onnx_bundle(tmp_path_factory.mktemp("standard") / "voice", tiny_checkpoint)


@contextmanager
def voices(bundle: Bundle, config: settings.Engine = CONFIG) -> Iterator[tuple[list[Voice], Arena]]:
    arena = Arena()
    opened = open_voices(bundle, config, arena)
    try:
        for voice in opened:
            voice.warm_up()
        arena.seal()
        yield opened, arena
    finally:
        for voice in opened:
            voice.close()


def standins(version: str) -> Any:
    """Puts the stand-ins into TensorRT's place, in this process."""
    module = bindings.load(version)
    assert module.__version__ == version
    from edged.engine import trt_runtime
    from tests.trt import standin

    trt_runtime.deserialize = standin.deserialize
    return standin.world


def synth_of(opened: list[Voice]) -> ChatSynthesizer:
    synth = opened[0].synthesizer
    assert isinstance(synth, ChatSynthesizer)
    return synth


def speak(opened: list[Voice], wanted: list[tuple[int, str, int]], steps: int = 0) -> list[list[np.ndarray]]:  # type: ignore[type-arg]
    """The pieces of utterances (voice, text, seed) that begin two steps after one another; steps: at least."""
    synth = synth_of(opened)
    synth._sampling = data.Sampling(min_steps=steps) if steps else data.Sampling()
    result: list[list[Any]] = [[] for _ in wanted]
    live: dict[int, Any] = {}
    waiting = list(range(len(wanted)))
    clock = 0
    while live or waiting:
        while waiting and len(live) < synth.max_batch and waiting[0] * 2 <= clock:
            number = waiting.pop(0)
            voice, text, seed = wanted[number]
            (first, *_) = opened[voice].frontend.utterances(text, Params())
            live[number] = synth.open(first, Params(seed=seed))
        numbers = list(live)
        for number, piece in zip(numbers, synth.step([live[n] for n in numbers]), strict=True):
            assert piece.error is None
            if piece.samples.size:
                result[number].append(piece.samples.copy())
            if piece.last:
                synth.close(live.pop(number))
        clock += 1
    return result


def test_it_speaks_as_onnx_runtime_does(onnx: Bundle, tmp_path: Path, version: str, gpu: Fake) -> None:
    """A prompt in pieces, 300 steps, rows beside each other that come and go, a cancelled one: to the sample."""
    world = standins(version)
    plans = bundles.plan_bundle(tmp_path / "voice", onnx)
    long_text = "good morning time word " * 12
    wanted = [(0, long_text, 1), (1, TEXT, 2), (0, TEXT, 3), (1, "Thank you.", 4)]
    results = []
    for bundle in (onnx, plans):
        with voices(bundle) as (opened, _):
            spoken = speak(opened, [(0, TEXT, 9)], steps=300)
            synth = synth_of(opened)
            early = synth.open(next(iter(opened[0].frontend.utterances(TEXT, Params()))), Params(seed=5))
            for _ in range(3):
                synth.step([early])
            synth.close(early)
            results.append([*spoken, *speak(opened, wanted)])
    ours, theirs = results[1], results[0]
    assert sum(map(len, theirs[0])) > 300 * 500
    for one, other in zip(ours, theirs, strict=True):
        assert [len(piece) for piece in one] == [len(piece) for piece in other]
        np.testing.assert_array_equal(np.concatenate(one), np.concatenate(other))
    gc.collect()
    assert (world.engines, world.contexts) == (0, 0)
    assert gpu.left() == {}


def test_serving_allocates_nothing(onnx: Bundle, tmp_path: Path, gpu: Fake) -> None:
    reason = bindings.unavailable("10.3.0")
    if reason:
        pytest.skip(reason)
    world = standins("10.3.0")
    with voices(bundles.plan_bundle(tmp_path / "voice", onnx)) as (opened, _):
        assert (gpu.live("device"), gpu.live("pinned")) == (3, 1), "the arena, and two engines' weights"
        before = {kind: gpu.total(kind) for kind in ("device", "pinned", "stream", "event", "context")}
        for job in range(100):
            speak(opened, [(job % 2, "Thank you.", job)])
        assert {kind: gpu.total(kind) for kind in before} == before
        world.asks = 4096
        with pytest.raises(EngineError, match="while serving"):
            speak(opened, [(0, TEXT, 1)])
        world.asks = 0
    gc.collect()
    assert gpu.left() == {}
