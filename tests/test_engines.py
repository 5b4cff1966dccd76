"""Generations of voices in this process: jobs between voices go on while other voices take over."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edged.engine.buffers import Arena
from edged.engines import Engines, Generation
from edged.job import Job, JobState
from edged.meter import Meter
from edged.settings import Settings, Voices
from edged.text.document import Item, Mark, Style, Words
from edged.text.script import Script
from edged.voices.api import Voice
from edged.voices.catalog import load_voices
from edged.voices.choice import configured
from tests import bundles
from tests.test_job import make_job
from tests.test_worker import Basket

SENTENCES = ["Line one. ", "Line two is longer. ", "Three. ", "Line four, at last.\n\n", "And five. "]


def alternating(voices: Sequence[str]) -> Script:
    """Sentences that several voices speak in turn, each behind a mark."""
    document: list[Item] = []
    for n, sentence in enumerate(SENTENCES * 4):
        document += (Mark(f"sentence {n}"), Words(sentence, Style(voice=voices[n % len(voices)])))
    return Script(tuple(document))


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
    return Generation(settings, choice, voices, arena, Meter(), crashes.append)


def submitted(to: Generation, voice: str, **fields: Any) -> tuple[Job, Basket]:
    basket = Basket()
    job = make_job(
        voice=voice, text="".join(SENTENCES * 4), sink=basket, on_end=lambda _: basket.done.set(), **fields
    )
    basket.job = job
    to.submit(job, alternating(["", *to.voices]))
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
