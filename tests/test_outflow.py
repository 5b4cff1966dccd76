"""Audio, silences and marks on their way to a sink: order, times, room, and the one last chunk."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from edged import outflow
from edged.job import AudioChunk, Job, MarkReached, News, Utterance
from edged.scheduler import Entry
from tests.test_job import make_job

RATE = 100  # small numbers that are easy to read
MOST = 25


@dataclass
class Tank:
    """A sink with room for so many chunks; `drain` makes room again."""

    room: int = 1_000_000
    taken: int = 0
    chunks: list[AudioChunk] = field(default_factory=list)

    def ready(self) -> bool:
        return self.taken < self.room

    def write(self, chunk: AudioChunk) -> None:
        self.taken += 1
        self.chunks.append(chunk)

    def abort(self) -> None:
        pass


@dataclass
class Told:
    """What a job's client hears of, in order: chunks as they are written, marks with their times."""

    tank: Tank
    marks: list[tuple[str, float, int]] = field(default_factory=list)

    def news(self, job: Job, news: News) -> None:
        assert isinstance(news, MarkReached)
        self.marks.append((news.name, news.time_s, sum(c.samples.size for c in self.tank.chunks)))


def entry(utterances: list[Utterance], tank: Tank) -> tuple[Entry, Told]:
    told = Told(tank)
    job = make_job(sink=tank, on_news=told.news)
    job.utterances, job.prepared_all = utterances, True
    job.start()
    return Entry(job, 1), told


UTTERANCES = st.lists(
    st.builds(
        Utterance,
        index=st.just(0),
        symbols=st.integers(0, 120).map(lambda n: (1,) * n),  # as many samples
        lead_s=st.sampled_from((0.0, 0.004, 0.1, 2.0, 9.0)),
        pause_s=st.sampled_from((0.0, 0.004, 0.1, 2.0, 9.0)),
        marks=st.lists(st.sampled_from("abc"), max_size=2).map(tuple),
        marks_after=st.lists(st.sampled_from("xyz"), max_size=2).map(tuple),
        gain=st.sampled_from((1.0, 0.5, 2.0)),
    ),
    min_size=1,
    max_size=4,
)


@given(UTTERANCES, st.integers(1, 30))
def test_everything_arrives_in_order_whatever_room_there_is(utterances: list[Utterance], room: int) -> None:
    tank = Tank(room)
    one, told = entry(utterances, tank)
    expected: list[float] = []
    marks: list[tuple[str, int]] = []
    for number, utterance in enumerate(utterances, 1):
        one.stream, one.utterance = object(), utterance
        one.job.cursor = number
        outflow.begin(one, utterance, RATE)
        made = np.full(len(utterance.symbols), number, np.float32)
        outflow.add(one, made, MOST, utterance.gain)
        made[:] = np.nan  # the engine's next step
        one.stream = one.utterance = None
        outflow.end(one, utterance, RATE)
        rounds = 0
        while one.pending:
            more = outflow.pour(one, RATE, MOST)
            if more or not one.pending:
                continue
            assert not tank.ready()
            tank.taken, rounds = 0, rounds + 1
            assert rounds < 200
        expected += [0.0] * round(utterance.lead_s * RATE)
        marks += [(name, len(expected)) for name in utterance.marks]
        expected += [number * utterance.gain] * len(utterance.symbols)
        marks += [(name, len(expected)) for name in utterance.marks_after]
        expected += [0.0] * round(utterance.pause_s * RATE)
    samples = [s for chunk in tank.chunks for s in chunk.samples.tolist()]
    assert samples == expected
    assert all(0 < chunk.samples.size <= MOST for chunk in tank.chunks)
    assert [(name, at) for name, _, at in told.marks] == marks
    assert all(abs(time_s - at / RATE) < 1e-9 for _, time_s, at in told.marks)
    assert one.job.marks == [(name, time_s) for name, time_s, _ in told.marks]
    assert abs(one.job.timeline.audio_s - len(expected) / RATE) < 1e-9
    # At most the last chunk says so; where marks, or nothing, came behind it the worker adds an empty one.
    assert not any(chunk.last for chunk in tank.chunks[:-1])
    assert one.exhausted
    last = utterances[-1]
    behind = last.marks_after and round(last.pause_s * RATE) == 0
    if last.symbols and not behind:
        assert tank.chunks[-1].last
    assert one.finished == bool(tank.chunks and tank.chunks[-1].last)


def test_a_long_pause_leaves_a_turn_to_the_others() -> None:
    utterance = Utterance(0, (1,), pause_s=3600.0)
    one, _ = entry([utterance], Tank())
    one.job.cursor = 1
    outflow.end(one, utterance, RATE)
    assert outflow.pour(one, RATE, MOST)
    assert one.job.timeline.audio_s * RATE == outflow.SILENT_CHUNKS * MOST
    one.job.cancel()
    assert not outflow.pour(one, RATE, MOST)
    assert one.job.timeline.audio_s * RATE == outflow.SILENT_CHUNKS * MOST


def test_audio_behind_a_silence_without_room_waits_and_needs_none_itself() -> None:
    tank = Tank(room=0)
    utterance = Utterance(0, (1,) * 60, lead_s=0.1)
    one, _ = entry([utterance], tank)
    one.job.cursor = 1
    outflow.begin(one, utterance, RATE)
    outflow.add(one, np.ones(60, np.float32), MOST, 1.0)
    assert not outflow.pour(one, RATE, MOST)
    assert tank.chunks == []
    assert not one.has_work
    assert not one.exhausted
    tank.room = 1
    assert not outflow.pour(one, RATE, MOST)
    assert [chunk.samples.size for chunk in tank.chunks] == [10, 25, 25, 10]
    assert one.finished


def test_what_is_behind_a_job_that_ended_is_told_to_nobody() -> None:
    tank = Tank()
    utterance = Utterance(0, (1,), marks=("a",), pause_s=1.0)
    one, told = entry([utterance], tank)
    outflow.begin(one, utterance, RATE)
    outflow.end(one, utterance, RATE)
    one.job.cancel()
    assert not outflow.pour(one, RATE, MOST)
    assert (tank.chunks, told.marks) == ([], [])
