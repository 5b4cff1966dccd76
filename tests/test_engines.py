"""Generations of voices in this process: jobs between voices go on while other voices take over."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edged.engine.buffers import Arena
from edged.engines import Engines, Generation
from edged.job import Job, JobState, Params, Utterance
from edged.meter import Meter
from edged.settings import Settings, Voices
from edged.voices.api import Frontend, Voice
from edged.voices.catalog import load_voices
from edged.voices.choice import configured
from tests import bundles
from tests.test_job import make_job
from tests.test_worker import Basket

TEXT = "Line one. Line two is longer. Three. Line four, at last.\n\nAnd five."


class Alternating:
    """A frontend whose sentences are of several voices in turn."""

    def __init__(self, real: Frontend, voices: list[str]) -> None:
        self._real, self._voices = real, voices

    def utterances(self, text: str, params: Params) -> Iterator[Utterance]:
        for n, utterance in enumerate(self._real.utterances(text, params)):
            time.sleep(0.002)  # so that it goes on while others are spoken
            yield replace(utterance, voice=self._voices[n % len(self._voices)], marks=(f"sentence {n}",))


@pytest.fixture
def engines() -> Iterator[Engines]:
    made = Engines(Arena())
    yield made
    made.stop()


def generation(crashes: list[BaseException], *paths: Path) -> Generation:
    settings = Settings(voices=Voices(bundles=[str(path) for path in paths]))
    choice = configured(settings)
    arena = Arena()
    voices: dict[str, Voice] = load_voices(settings, choice.sources, arena, lambda _: None)
    first = next(iter(voices.values()))
    first.frontend = Alternating(first.frontend, ["", *voices])
    return Generation(settings, choice, voices, arena, Meter(), crashes.append)


def submitted(to: Generation, voice: str, **fields: Any) -> tuple[Job, Basket]:
    basket = Basket()
    job = make_job(voice=voice, text=TEXT * 4, sink=basket, on_end=lambda _: basket.done.set(), **fields)
    basket.job = job
    to.submit(job)
    return job, basket


def test_jobs_between_voices_go_on_while_new_voices_take_over(engines: Engines) -> None:
    crashes: list[BaseException] = []
    paths = bundles.tone(), bundles.tone(work=20)
    old = generation(crashes, *paths)
    engines.add(old)
    alone, basket = submitted(old, "tone")
    assert basket.done.wait(20)
    expected = basket.samples
    jobs = [submitted(old, "tone", id=str(n)) for n in range(4)]
    gone, _ = jobs[2]
    fresh = generation(crashes, *paths)
    engines.add(fresh)
    gone.cancel()
    engines.wake()
    jobs += [submitted(fresh, "tone", id=f"new {n}") for n in range(2)]
    assert engines.retire(lambda: False)
    assert engines.current is fresh
    for job, basket in jobs:
        assert basket.done.wait(20)
        if job is gone:
            continue
        assert job.state is JobState.DONE
        assert np.array_equal(basket.samples, expected)
        assert job.marks == alone.marks
    assert len({name for name, _ in alone.marks}) == 20
    assert [time_s for _, time_s in alone.marks] == sorted(time_s for _, time_s in alone.marks)
    assert not crashes
