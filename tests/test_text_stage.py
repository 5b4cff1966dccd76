"""The text thread: order, laziness, faults."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from edged.errors import UnsupportedText
from edged.job import Job, Params, Priority, Utterance
from edged.text.document import Words
from edged.text.languages import readings_of
from edged.text.prepare import Preparer
from edged.text.script import Prepared, Script
from edged.text.stage import Piece, TextStage
from edged.voices.tone.frontend import ToneFrontend
from tests.test_job import make_job


def made(index: int) -> Prepared:
    return Prepared(Utterance(index, (1,)), (), 1, 10, False)


def text_of(script: Script) -> str:
    (words,) = script.document
    assert isinstance(words, Words)
    return words.text


def script(job: Job) -> Script:
    return Script((Words(job.text),))


def submit(stage: TextStage, job: Job) -> None:
    stage.submit(Piece(job, script(job)))


class Gated:
    """Prepares one utterance a permission, and tells what it prepared."""

    def __init__(self) -> None:
        self.gate = threading.Semaphore(0)
        self.told: queue.Queue[tuple[str, int]] = queue.Queue()

    def steps(self, script: Script, voice: str, params: Params) -> Iterator[Prepared]:
        name, count = text_of(script).split()
        for index in range(int(count)):
            self.gate.acquire()
            self.told.put((name, index))
            yield made(index)


class Failing:
    def __init__(self, error: Exception, after: int) -> None:
        self.error, self.after = error, after

    def steps(self, script: Script, voice: str, params: Params) -> Iterator[Prepared]:
        for index in range(self.after):
            yield made(index)
        raise self.error


@pytest.fixture
def make() -> Iterator[Any]:
    stages = []

    def start(frontend: Any) -> tuple[TextStage, queue.Queue[Job], queue.Queue[None]]:
        ready: queue.Queue[Job] = queue.Queue()
        changed: queue.Queue[None] = queue.Queue()
        crashes: list[BaseException] = []
        stage = TextStage(frontend, ready.put, lambda: changed.put(None), crashes.append)
        stage.start()
        stages.append((stage, frontend, crashes))
        return stage, ready, changed

    yield start
    for stage, frontend, crashes in stages:
        if isinstance(frontend, Gated):
            frontend.gate.release(100)
        stage.stop(5.0)
        assert crashes == []


def job(text: str, **fields: Any) -> Job:
    return make_job(voice="v", text=text, **fields)


def test_a_job_goes_on_with_its_first_sentence_and_the_rest_follows(make: Any) -> None:
    frontend = ToneFrontend(160)
    stage, ready, changed = make(Preparer({"v": frontend}, readings_of([frontend])))
    made = job("One. Two. Three.")
    stage.submit(Piece(made, script(made)))
    assert ready.get(timeout=5) is made
    while not made.prepared_all:
        changed.get(timeout=5)
    assert [u.index for u in made.utterances] == [0, 1, 2]
    assert made.timeline.text_s > 0


def test_jobs_take_turns_and_urgent_ones_go_first(make: Any) -> None:
    frontend = Gated()
    stage, _, _ = make(frontend)
    submit(stage, job("long 4"))
    frontend.gate.release()
    assert frontend.told.get(timeout=5) == ("long", 0)
    submit(stage, job("short 1"))
    submit(stage, job("alarm 2", priority=Priority.IMPORTANT))
    frontend.gate.release(6)
    order = [frontend.told.get(timeout=5) for _ in range(6)]
    # The thread was already waiting inside the long text's second sentence.
    assert order[0] == ("long", 1)
    assert order[1:3] == [("alarm", 0), ("alarm", 1)]
    assert order[3] == ("short", 0)


def test_a_cancelled_job_is_prepared_no_further(make: Any) -> None:
    frontend = Gated()
    stage, _, _ = make(frontend)
    cancelled = job("gone 100")
    stage.submit(Piece(cancelled, script(cancelled)))
    frontend.gate.release()
    frontend.told.get(timeout=5)
    cancelled.cancel()
    submit(stage, job("next 1"))
    frontend.gate.release(5)
    seen = {frontend.told.get(timeout=5)[0] for _ in range(2)}
    assert "next" in seen


@pytest.mark.parametrize("after", [0, 2])
@pytest.mark.parametrize(
    ("error", "code"), [(UnsupportedText("x"), "unsupported_text"), (ValueError("secret words"), "internal")]
)
def test_a_failing_frontend_fails_its_job_and_keeps_the_text_private(
    make: Any, caplog: pytest.LogCaptureFixture, error: Exception, code: str, after: int
) -> None:
    stage, _, _ = make(Failing(error, after))
    ended = threading.Event()
    made = job("secret words", on_end=lambda _: ended.set())
    with caplog.at_level(logging.INFO, "edged"):
        stage.submit(Piece(made, script(made)))
        assert ended.wait(5)
    assert made.error is not None
    assert made.error.code == code
    assert "secret" not in caplog.text
