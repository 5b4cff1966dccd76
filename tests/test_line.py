"""The jobs at the loudspeaker without one: a real ring, read by hand."""

from __future__ import annotations

import numpy as np
import pytest

from edged.audio.line import Line
from edged.audio.player import Player
from edged.audio.ring import Ring
from edged.audio.segment import PlayerSink
from edged.job import AudioChunk, Job
from edged.settings import Audio, Speech
from tests.sounds import make_job, noise, usual

RATE = 48_000


@pytest.fixture
def sent_back() -> list[tuple[str, int, int]]:
    return []


@pytest.fixture
def line(sent_back: list[tuple[str, int, int]]) -> Line:
    def send_back(job: Job, utterance: int, take: int) -> None:
        sent_back.append((job.id, utterance, take))

    return Line(Speech(), send_back)


@pytest.fixture
def ring() -> Ring:
    return Ring(RATE, 2)


def added(line: Line, ring: Ring, id: str = "1") -> PlayerSink:
    job = make_job(id)
    sink = PlayerSink(Player(Audio(enabled=False), lambda: None), job, RATE, 1.0)
    line.add(sink, usual(job), 0.0, ring)
    return sink


def speak(line: Line, ring: Ring, sink: PlayerSink, utterance: int, last: bool = False) -> None:
    """A tenth of a second of an utterance."""
    sink.queue(AudioChunk(noise(0.1, RATE, seed=utterance), last, utterance, sink.take))
    line.ready(sink, ring)
    while line.pump(ring, RATE):
        pass


def listen(ring: Ring, frames: int) -> None:
    ring.read_into(np.empty((frames, 2), np.float32))


def test_a_skipped_sentence_promises_nothing_and_does_not_come_back(
    line: Line, ring: Ring, sent_back: list[tuple[str, int, int]]
) -> None:
    sink = added(line, ring)
    speak(line, ring, sink, 0)
    listen(ring, 1_000)
    assert line.skip(sink, ring)
    listen(ring, 3_000)
    assert (ring.backlog, ring.underruns) == (0, 0), "the next sentence is not there yet"
    speak(line, ring, sink, 0)
    assert ring.backlog == 0, "the rest of the skipped one is not wanted any more"
    line.hold([sink], ring)
    assert sent_back == [("1", 1, 1)], "the pause goes on behind what was skipped"


def test_a_sentence_whose_next_one_is_in_the_ring_is_skipped_up_to_it(line: Line, ring: Ring) -> None:
    sink = added(line, ring)
    speak(line, ring, sink, 0)
    at = ring.written
    speak(line, ring, sink, 1, last=True)
    listen(ring, 1_000)
    assert line.skip(sink, ring)
    assert ring.backlog == ring.written - at
    listen(ring, 500)
    assert ring.read > at
    assert sink.heard(ring.read) == 1


def test_what_ends_with_a_skip_has_its_end(line: Line, ring: Ring) -> None:
    sink = added(line, ring)
    speak(line, ring, sink, 0, last=True)
    listen(ring, 1_000)
    assert line.skip(sink, ring)
    listen(ring, 1_000)
    assert line.heard(ring, 10_000) == [sink]
    assert not line.busy


def test_only_what_is_heard_is_skipped(line: Line, ring: Ring) -> None:
    first, second = added(line, ring, "1"), added(line, ring, "2")
    assert not line.skip(first, ring)
    speak(line, ring, first, 0, last=True)
    speak(line, ring, second, 0)
    assert not line.skip(second, ring)


def test_of_those_that_are_stopped_none_begins(line: Line, ring: Ring) -> None:
    first, second, third = (added(line, ring, name) for name in "123")
    speak(line, ring, first, 0)
    for sink in (second, third):
        sink.queue(AudioChunk(noise(0.1, RATE)))
        line.ready(sink, ring)
    assert line.writer is first
    line.stop([first, second], ring)
    line.leave(first, ring)
    assert line.everybody == [third]
    assert line.writer is third
