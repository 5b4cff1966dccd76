"""What the tests of the TensorRT backend share: voices of stand-ins, and speaking with them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edged import settings
from edged.bundle import Bundle
from edged.engine.buffers import Arena
from edged.job import Params
from edged.text.prepare import prepare
from edged.voices.api import Voice
from edged.voices.chattts import data
from edged.voices.chattts.synth import ChatSynthesizer
from edged.voices.chattts.voice import open_voices
from tests.trt import bindings

TEXT = "Hello world. The time is good."
CONFIG = settings.Engine(threads=1)


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


def builder(version: str) -> Any:
    """The same while a bundle is built; what the builder is told and does wrong."""
    standins(version)
    from edged.compiler import trt
    from tests.trt import standin_builder

    trt.tensorrt = lambda: standin_builder
    return standin_builder.order


def synth_of(opened: list[Voice]) -> ChatSynthesizer:
    synth = opened[0].synthesizer
    assert isinstance(synth, ChatSynthesizer)
    return synth


def speak(
    opened: list[Voice], wanted: list[tuple[int, str, int]], steps: int = 0
) -> list[list[NDArray[np.float32]]]:
    """The pieces of utterances (voice, text, seed), begun two steps apart; steps: at least, of each."""
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
            (first, *_) = prepare(text, opened[voice].frontend)
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
