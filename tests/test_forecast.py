"""The forecast: nothing is assumed, work is dealt out to slots, a loudspeaker's wait is none."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edged.forecast import WINDOW, Forecast
from edged.job import Job, Priority, Utterance
from tests.test_job import make_job


def job(characters: int = 100, **fields: Any) -> Job:
    return make_job(**{"text": "x" * characters, "kind": "synthesize", **fields})


def measured(
    slots: int = 1, seconds_a_character: float = 0.01, audio_s: float = 0.5, sentences: int = 1, **more: int
) -> Forecast:
    """Voices v (and others by keyword, each of a pool of its own), all measured with the same pace: a job of
    100 characters and so many sentences. By default the engine does not keep up with even one listener."""
    voices = {"v": slots, **more}
    forecast = Forecast(voices, {name: name for name in voices}, loudspeaker_s=4.0)
    for name in voices:
        ended = job(voice=name)
        ended.utterances = [Utterance(n, (1,)) for n in range(sentences)]
        ended.timeline.synthesis_s, ended.timeline.audio_s = 100 * seconds_a_character, audio_s
        ended.done()
        forecast.record(ended)
    return forecast


def wait(forecast: Forecast, *live: Job, priority: int = Priority.TEXT, voice: str = "v") -> float | None:
    return forecast.wait_s(voice, priority, live)


def test_nothing_is_known_before_a_job_ended_well() -> None:
    forecast = Forecast({"v": 1, "w": 1}, {"v": "p", "w": "p"}, 4.0)
    assert wait(forecast) == 0.0
    assert wait(forecast, job()) is None
    cancelled = job()
    cancelled.timeline.synthesis_s = cancelled.timeline.audio_s = 1.0
    cancelled.cancel()
    forecast.record(cancelled)
    assert wait(forecast, job()) is None
    done = job()
    done.timeline.synthesis_s, done.timeline.audio_s = 2.0, 10.0
    done.done()
    forecast.record(done)
    assert wait(forecast, job()) == pytest.approx(2.0)
    assert wait(forecast, job(voice="w"), voice="w") == pytest.approx(2.0), "a voice of the same pool"


def test_only_the_last_jobs_set_the_pace() -> None:
    forecast = measured(seconds_a_character=1.0)
    for _ in range(WINDOW):
        ended = job()
        ended.timeline.synthesis_s, ended.timeline.audio_s = 0.5, 10.0
        ended.done()
        forecast.record(ended)
    assert wait(forecast, job()) == pytest.approx(0.5)


@given(st.integers(1, 4), st.lists(st.integers(1, 500), max_size=12))
def test_work_is_dealt_out_to_the_slots(slots: int, lengths: list[int]) -> None:
    found = wait(measured(slots), *(job(length) for length in lengths))
    assert found is not None
    work = sum(lengths) * 0.01
    if len(lengths) < slots:
        assert found == 0.0
    else:
        assert 0.0 < found <= work + 1e-9
        # No slot is free before the last one to begin could begin.
        assert found >= work - (slots - 1) * max(lengths) * 0.01 - 1e-9 or slots > 1
    longer = wait(measured(slots), *(job(length) for length in [*lengths, 50]))
    assert longer is not None
    assert longer >= found - 1e-9


def test_what_is_behind_or_ended_or_spoken_already_does_not_count() -> None:
    forecast = measured()
    ended = job()
    ended.cancel()
    assert wait(forecast, job(priority=Priority.PROGRESS), ended) == 0.0
    assert wait(forecast, job(priority=Priority.IMPORTANT)) == pytest.approx(1.0)
    half = job()
    half.start()
    half.timeline.synthesis_s = 0.5
    assert wait(forecast, half) == pytest.approx(0.5)
    half.timeline.synthesis_s = 5.0
    assert wait(forecast, half) == 0.0


def test_jobs_that_wait_for_the_loudspeaker_are_no_wait_for_synthesis() -> None:
    forecast = measured(
        audio_s=10.0
    )  # a real-time factor of 0.1: 4 s ahead of the loudspeaker are 0.4 s of the engine
    speaking = [job(10_000, kind="speak") for _ in range(10)]
    assert wait(forecast, *speaking) == pytest.approx(0.4)


def test_pools_take_turns_at_the_engine() -> None:
    forecast = measured(w=1)
    mine, other = job(100), job(5_000, voice="w")
    assert wait(forecast, other) == 0.0
    assert wait(forecast, mine, other) == pytest.approx(2.0)
    assert wait(forecast, mine, job(50, voice="w")) == pytest.approx(1.5)


def test_an_engine_that_keeps_up_gives_a_newcomer_its_turn_after_one_sentence() -> None:
    """Four texts of an hour hold all slots; each lets a short job in when its sentence is over."""
    forecast = measured(slots=4, audio_s=10.0, sentences=10)  # a real-time factor of 0.1, 0.1 s a sentence
    texts = [job(100_000) for _ in range(4)]
    for text in texts:
        text.start()
    found = wait(forecast, *texts)
    assert found == pytest.approx(4 * 0.1), "four sentences advance at once"
    many = [job(100_000) for _ in range(11)]  # more listeners than it keeps up with
    behind = wait(forecast, *many)
    assert behind is not None
    assert behind > 1_000


def test_what_was_begun_with_a_lower_priority_is_waited_for() -> None:
    forecast = measured(slots=2, audio_s=10.0, sentences=10)
    low = [job(1_000, priority=Priority.PROGRESS) for _ in range(3)]
    assert wait(forecast, *low, priority=Priority.IMPORTANT) == 0.0, "none has begun"
    for begun in low[:2]:
        begun.start()
    assert wait(forecast, *low, priority=Priority.IMPORTANT) == pytest.approx(2 * 0.1)
