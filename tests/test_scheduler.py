"""Order of service, slots, deadlines: the scheduler alone, with the time passed in."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from edged.job import AudioChunk, Job, JobState, Priority, Utterance
from edged.scheduler import Entry, Scheduler
from tests.test_job import make_job


@dataclass
class Gate:
    """A sink with or without room."""

    open: bool = True

    def ready(self) -> bool:
        return self.open

    def write(self, chunk: AudioChunk) -> None:
        raise AssertionError

    def abort(self) -> None:
        pass


def job(
    sentences: int = 1,
    priority: Priority = Priority.TEXT,
    voice: str = "a",
    room: bool = True,
    deadline: float | None = None,
) -> Job:
    made = make_job(priority=priority, voice=voice, sink=Gate(room), deadline=deadline)
    made.utterances = [Utterance(i, (1,)) for i in range(sentences)]
    made.prepared_all = True
    return made


def serve(scheduler: Scheduler, batch: list[Entry]) -> None:
    """What the worker does for a one-pass voice."""
    for entry in batch:
        entry.job.start()
        entry.job.cursor += 1
        entry.served += 1
        if entry.exhausted:
            scheduler.remove(entry)


@given(st.lists(st.tuples(st.integers(1, 5), st.sampled_from(Priority)), max_size=12))
def test_everything_is_served_and_never_a_lower_priority_first(jobs: list[tuple[int, Priority]]) -> None:
    scheduler = Scheduler({"a": 1})
    made = [job(count, priority) for count, priority in jobs]
    for each in made:
        scheduler.add(each)
    served = []
    while batch := scheduler.choose():
        waiting = min(e.job.priority for e in scheduler.entries)
        assert [e.job.priority for e in batch] == [waiting]
        served.append(batch[0].job)
        serve(scheduler, batch)
    assert len(served) == sum(count for count, _ in jobs)
    assert all(j.cursor == len(j.utterances) for j in made)


def test_a_short_message_does_not_wait_for_a_long_text() -> None:
    scheduler = Scheduler({"a": 1})
    long, short = job(50), job(1)
    scheduler.add(long)
    serve(scheduler, scheduler.choose())
    scheduler.add(short)
    (entry,) = scheduler.choose()
    assert entry.job is short


@given(st.lists(st.booleans(), max_size=10))
def test_a_job_without_room_is_passed_over(rooms: list[bool]) -> None:
    scheduler = Scheduler({"a": 3})
    for room in rooms:
        scheduler.add(job(room=room))
    chosen = scheduler.choose()
    assert len(chosen) == min(3, sum(rooms))
    assert all(e.job.sink is not None and e.job.sink.ready() for e in chosen)


def test_an_utterance_that_was_begun_is_finished_also_without_room() -> None:
    """Else it keeps its slot from the very job it waits for."""
    scheduler = Scheduler({"a": 1})
    scheduler.add(job(sentences=2))
    scheduler.add(job())
    begun, other = scheduler.entries
    begun.stream = object()
    begun.job.sink.open = False  # type: ignore[union-attr]
    assert scheduler.choose() == [begun]
    begun.stream = None
    assert scheduler.choose() == [other]


@given(st.integers(1, 4), st.integers(0, 10), st.integers(0, 4))
def test_open_streams_never_exceed_the_slots(slots: int, waiting: int, open_streams: int) -> None:
    scheduler = Scheduler({"a": slots})
    for number in range(waiting):
        scheduler.add(job())
        if number < min(open_streams, slots):
            scheduler.entries[-1].stream = object()
    batch = scheduler.choose()
    already = sum(e.stream is not None for e in scheduler.entries)
    opening = sum(e.stream is None for e in batch)
    assert already + opening <= slots
    assert len(batch) == min(slots, waiting)


def test_a_batch_is_of_one_voice() -> None:
    scheduler = Scheduler({"a": 4, "b": 4})
    for voice in "abab":
        scheduler.add(job(voice=voice))
    assert [e.job.voice for e in scheduler.choose()] == ["a", "a"]


def test_voices_of_one_pool_share_slots_and_steps() -> None:
    scheduler = Scheduler({"a": 2, "b": 2, "c": 1}, {"a": "x", "b": "x"})
    for voice in ("c", "a", "b", "a"):
        scheduler.add(job(voice=voice))
    third, first, second, fourth = scheduler.entries
    third.served = 1
    assert scheduler.choose() == [first, second]
    first.stream = object()
    assert scheduler.choose() == [first, second]
    second.stream = object()
    assert scheduler.choose() == [first, second]
    assert fourth not in scheduler.choose()
    scheduler.remove(first)
    assert scheduler.choose() == [second, fourth]


def test_only_jobs_that_have_not_started_miss_their_deadline() -> None:
    scheduler = Scheduler({"a": 1})
    waiting, started, later = job(deadline=10.0), job(deadline=10.0), job(deadline=20.0)
    for each in (waiting, started, later):
        scheduler.add(each)
    started.start()
    assert scheduler.next_deadline() == 10.0
    scheduler.expire(9.9)
    assert not waiting.ended
    scheduler.expire(10.0)
    assert waiting.state is JobState.FAILED
    assert waiting.error is not None
    assert waiting.error.code == "deadline"
    assert (started.state, later.state) == (JobState.RUNNING, JobState.QUEUED)
    assert scheduler.next_deadline() == 20.0
    assert [e.job for e in scheduler.ended()] == [waiting]


def test_an_ended_job_is_never_chosen() -> None:
    scheduler = Scheduler({"a": 1})
    gone = job()
    scheduler.add(gone)
    gone.cancel()
    assert scheduler.choose() == []
