"""What the processor does for a voice on a GPU, beside the network itself: a small part of a step.

Processor time of the engine thread in `step` of the whole voice, less what the stand-ins for TensorRT take;
the copies that a GPU would do, and that the stand-in for the driver does on the same thread, are in it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import pytest

from edged.bundle import Bundle
from edged.compiler.chattts.random_checkpoint import TINY, make_checkpoint
from edged.job import Params
from edged.text.prepare import prepare
from edged.voices.api import Voice
from edged.voices.chattts import data
from tests.cuda.fake import Fake
from tests.trt.test_build import made
from tests.trt.voices import TEXT, builder, synth_of, voices

LAYERS = 20  # as many as the real model has: their caches are 80 tensors
MOST_MS = 0.5  # of the 21 ms that a step of speech may take
STEPS = 250


@pytest.fixture(scope="module")
def deep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_checkpoint(tmp_path_factory.mktemp("deep") / "checkpoint", replace(TINY, layers=LAYERS))


def shares(opened: list[Voice], world: Any, rows: int, joins: int) -> Iterator[tuple[str, float]]:
    """What each call had to do, and milliseconds. joins: steps between utterances that come and go beside
    the first ones, 0 for none."""
    synth = synth_of(opened)
    synth._sampling = data.Sampling(min_steps=2 * STEPS)

    def begin(seed: int) -> Any:
        params = Params(seed=seed)
        return synth.open(next(iter(prepare(TEXT, opened[0].frontend, params=params))), params)

    streams = [begin(seed) for seed in range(rows)]
    for number in range(STEPS):
        if joins and number % joins == joins - 1:
            if len(streams) > rows:
                synth.close(streams.pop())
            else:
                streams.append(begin(number))
        waiting = any(stream.read < len(stream.ids) for stream in streams)
        runs, spent, start = world.runs, world.spent_s, time.thread_time()
        synth.step(streams)
        taken = (time.thread_time() - start - (world.spent_s - spent)) * 1e3
        if number > 20:
            yield "prompt" if waiting else "steady" if world.runs - runs == 1 else "window", taken
    for stream in streams:
        synth.close(stream)


def test_it_is_a_small_part_of_a_step(deep: Path, tmp_path: Path, newest: str, gpu: Fake) -> None:
    builder(newest)
    from tests.trt.standin import world

    bundle = Bundle.load(made(tmp_path / "voice", deep, positions=512, slots=4))
    with voices(bundle) as (opened, _):
        for rows, joins in ((1, 0), (4, 0), (3, 5)):
            by: dict[str, list[float]] = {}
            for kind, taken in shares(opened, world, rows, joins):
                by.setdefault(kind, []).append(taken)
            for kind, taken in by.items():
                spread = ", ".join(f"{value:.3f}" for value in quantiles(taken, n=4))
                print(f"{rows} rows, {kind}: {spread} ms (quartiles of {len(taken)}), most {max(taken):.3f}")
            if not joins:
                assert len(by["steady"]) > 100
            assert median(by["steady"]) < MOST_MS
