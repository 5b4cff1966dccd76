"""Order of service, slots, deadlines: the scheduler alone, with the time passed in."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
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


def serve(scheduler: Scheduler, batch: list[Entry], now: float = 1.0, audio_s: float = 4.0) -> None:
    """What the worker does for a one-pass voice: a call that ends at `now`, and the audio it makes."""
    for entry in batch:
        entry.job.start()
        entry.job.cursor += 1
        entry.served += 1
        entry.heard_from = entry.heard_from or now
        entry.job.timeline.audio_s += audio_s
        if entry.exhausted:
            scheduler.remove(entry)


@given(st.lists(st.tuples(st.integers(1, 5), st.sampled_from(Priority)), max_size=12))
def test_everything_is_served_and_never_a_lower_priority_first(jobs: list[tuple[int, Priority]]) -> None:
    scheduler = Scheduler({"a": 1})
    made = [job(count, priority) for count, priority in jobs]
    for each in made:
        scheduler.add(each, 0.0)
    served = []
    while batch := scheduler.choose(0.0):
        waiting = min(e.job.priority for e in scheduler.entries)
        assert [e.job.priority for e in batch] == [waiting]
        served.append(batch[0].job)
        serve(scheduler, batch)
    assert len(served) == sum(count for count, _ in jobs)
    assert all(j.cursor == len(j.utterances) for j in made)


def test_a_short_message_does_not_wait_for_a_long_text() -> None:
    scheduler = Scheduler({"a": 1})
    long, short = job(50), job(1)
    scheduler.add(long, 0.0)
    serve(scheduler, scheduler.choose(0.0))
    scheduler.add(short, 1.1)
    (entry,) = scheduler.choose(1.1)
    assert entry.job is short


@given(st.lists(st.booleans(), max_size=10))
def test_a_job_without_room_is_passed_over(rooms: list[bool]) -> None:
    scheduler = Scheduler({"a": 3})
    for room in rooms:
        scheduler.add(job(room=room), 0.0)
    chosen = scheduler.choose(0.0)
    assert len(chosen) == min(3, sum(rooms))
    assert all(e.job.sink is not None and e.job.sink.ready() for e in chosen)


def test_an_utterance_that_was_begun_is_finished_also_without_room() -> None:
    """Else it keeps its slot from the very job it waits for."""
    scheduler = Scheduler({"a": 1})
    scheduler.add(job(sentences=2), 0.0)
    scheduler.add(job(), 0.0)
    begun, other = scheduler.entries
    begun.stream = object()
    begun.job.sink.open = False  # type: ignore[union-attr]
    assert scheduler.choose(0.0) == [begun]
    begun.stream = None
    assert scheduler.choose(0.0) == [other]


@given(st.integers(1, 4), st.integers(0, 10), st.integers(0, 4))
def test_open_streams_never_exceed_the_slots(slots: int, waiting: int, open_streams: int) -> None:
    scheduler = Scheduler({"a": slots})
    for number in range(waiting):
        scheduler.add(job(), 0.0)
        if number < min(open_streams, slots):
            scheduler.entries[-1].stream = object()
    batch = scheduler.choose(0.0)
    already = sum(e.stream is not None for e in scheduler.entries)
    opening = sum(e.stream is None for e in batch)
    assert already + opening <= slots
    assert len(batch) == min(slots, waiting)


def test_a_batch_is_of_one_voice() -> None:
    scheduler = Scheduler({"a": 4, "b": 4})
    for voice in "abab":
        scheduler.add(job(voice=voice), 0.0)
    assert [e.job.voice for e in scheduler.choose(0.0)] == ["a", "a"]


def test_voices_of_one_pool_share_slots_and_steps() -> None:
    scheduler = Scheduler({"a": 2, "b": 2, "c": 1}, {"a": "x", "b": "x"})
    for voice in ("c", "a", "b", "a"):
        scheduler.add(job(voice=voice), 0.0)
    third, first, second, fourth = scheduler.entries
    third.came = 1.0
    assert scheduler.choose(0.0) == [first, second]
    first.stream = object()
    assert scheduler.choose(0.0) == [first, second]
    second.stream = object()
    assert scheduler.choose(0.0) == [first, second]
    assert fourth not in scheduler.choose(0.0)
    scheduler.remove(first)
    assert scheduler.choose(0.0) == [second, fourth]


def test_only_jobs_that_have_not_started_miss_their_deadline() -> None:
    scheduler = Scheduler({"a": 1})
    waiting, started, later = job(deadline=10.0), job(deadline=10.0), job(deadline=20.0)
    for each in (waiting, started, later):
        scheduler.add(each, 0.0)
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
    scheduler.add(gone, 0.0)
    gone.cancel()
    assert scheduler.choose(0.0) == []


# -- who is next ------------------------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.floats(0, 30), st.integers(1, 6)), min_size=1, max_size=12),
    st.floats(0.2, 3.0),
    st.integers(1, 3),
)
def test_no_sentence_is_overtaken_by_one_that_was_wanted_later(
    arrivals: list[tuple[float, int]], audio_s: float, slots: int
) -> None:
    """Calls take a second each and make more or less than a second of audio: too fast or too slow a voice."""
    scheduler, now, coming = Scheduler({"a": slots}), 1.0, sorted(arrivals)
    while coming or scheduler.entries:
        while coming and coming[0][0] <= now:
            scheduler.add(job(coming.pop(0)[1]), now)
        batch = scheduler.choose(now)
        left = [e for e in scheduler.entries if e not in batch]
        assert len(batch) == min(slots, len(batch) + len(left))
        assert max((e.due for e in batch), default=0.0) <= min((e.due for e in left), default=1e9)
        now += 1.0
        serve(scheduler, batch, now, audio_s)


def test_a_text_goes_on_although_messages_keep_coming() -> None:
    scheduler, now = Scheduler({"a": 1}), 1.0
    text = job(5)
    scheduler.add(text, now)
    while text.cursor < len(text.utterances):  # as many messages as the voice can speak
        scheduler.add(job(), now)
        now += 1.0
        serve(scheduler, scheduler.choose(now), now, audio_s=2.0)
        assert now < 25


def test_an_urgent_job_gets_the_next_free_slot() -> None:
    scheduler = Scheduler({"a": 2})
    for _ in range(3):
        scheduler.add(job(3), 0.0)
    for entry in scheduler.choose(1.0):
        entry.stream, entry.job.cursor, entry.served = object(), 1, 1
    urgent = job(2, Priority.IMPORTANT)
    scheduler.add(urgent, 1.0)
    running = scheduler.choose(1.0)
    assert urgent not in [e.job for e in running]
    running[0].stream = None  # its sentence is over, and it has two more
    assert {e.job for e in scheduler.choose(1.0)} == {running[1].job, urgent}


@given(st.lists(st.booleans(), max_size=3))
def test_a_job_joins_the_next_step_when_a_slot_is_free(others: list[bool]) -> None:
    scheduler = Scheduler({"a": 4})
    for begun in others:
        scheduler.add(job(2, Priority.IMPORTANT), 0.0)
        scheduler.entries[-1].stream = object() if begun else None
    scheduler.add(job(1, Priority.PROGRESS), 1.0)
    assert scheduler.entries[-1] in scheduler.choose(1.0)


def test_a_listener_who_takes_nothing_is_not_behind() -> None:
    """Its sentence is wanted when there is room again, not since the time it could have heard everything."""
    scheduler = Scheduler({"a": 1})
    slow = job(3)
    scheduler.add(slow, 1.0)
    serve(scheduler, scheduler.choose(1.0), now=1.0, audio_s=4.0)
    slow.sink.open = False  # type: ignore[union-attr]
    assert scheduler.choose(60.0) == []
    slow.sink.open = True  # type: ignore[union-attr]
    scheduler.add(job(), 59.0)
    scheduler.add(job(), 61.0)
    order = []
    while batch := scheduler.choose(61.0):
        order.append(batch[0].due)
        serve(scheduler, batch, 61.0)
    assert order == [59.0, 60.0, 61.0, 64.0]


# -- several synthesizers ---------------------------------------------------------------------------


class Machine:
    """Runs a scheduler as the worker does: voice "c" steps its streams, voice "h" speaks in one pass."""

    STEP_S, CALL_S, STEPS, STEP_AUDIO_S, CALL_AUDIO_S = 0.012, 0.05, 200, 512 / 24_000, 4.0

    def __init__(self, slots: int) -> None:
        self.scheduler = Scheduler({"c": slots, "h": 1})
        self.now = 1.0
        self.used = {"c": 0.0, "h": 0.0}
        self.left: dict[int, int] = {}
        self.began: list[Entry] = []

    def run(self) -> list[Entry]:
        batch = self.scheduler.choose(self.now)
        if not batch:
            return batch
        voice = batch[0].job.voice
        took = self.STEP_S if voice == "c" else self.CALL_S
        self.now += took
        self.used[voice] += took
        self.scheduler.spent(batch, took, self.now)
        self.began = [e for e in batch if e.stream is None]
        for entry in batch:
            if entry.stream is None:
                entry.job.start()
                entry.job.cursor += 1
                entry.served += 1
                entry.stream = [self.STEPS if voice == "c" else 1]
            entry.stream[0] -= 1
            entry.heard_from = entry.heard_from or self.now
            entry.job.timeline.audio_s += self.STEP_AUDIO_S if voice == "c" else self.CALL_AUDIO_S
            if entry.stream[0] == 0:
                entry.stream = None
            if entry.exhausted:
                self.scheduler.remove(entry)
        return batch


@pytest.mark.parametrize("streams", [1, 4])
def test_a_long_text_of_one_voice_neither_starves_the_streams_of_another_nor_is_starved(streams: int) -> None:
    machine = Machine(slots=4)
    for _ in range(streams):
        machine.scheduler.add(job(5, voice="c"), machine.now)
    for _ in range(20):
        machine.run()
    text = job(60, voice="h")
    machine.scheduler.add(text, machine.now)
    begin, machine.used = machine.now, {"c": 0.0, "h": 0.0}
    while text.cursor < 60:
        machine.run()
        assert all(
            e.due > machine.now for e in machine.scheduler.entries if e.job.voice == "c"
        )  # none ran dry
    # The text took 3 s of engine time and got at least a fifth of it, less a call.
    assert machine.used["h"] >= 0.2 * (machine.now - begin) - machine.CALL_S
    assert machine.used["c"] >= 0.5 * (machine.now - begin) - machine.CALL_S


def test_a_short_job_of_one_voice_waits_for_a_step_of_another_and_no_more() -> None:
    machine = Machine(slots=4)
    for _ in range(4):
        machine.scheduler.add(job(5, voice="c"), machine.now)
    for _ in range(100):
        machine.run()
    machine.scheduler.add(job(1, voice="h"), machine.now)
    came = machine.now
    while machine.run()[0].job.voice != "h":
        pass
    assert machine.now - came <= machine.STEP_S + machine.CALL_S


@given(
    st.lists(st.tuples(st.sampled_from("ch"), st.integers(1, 3), st.sampled_from(Priority)), max_size=10),
    st.integers(1, 3),
)
def test_nothing_begins_while_one_of_a_higher_priority_could(
    jobs: list[tuple[str, int, Priority]], slots: int
) -> None:
    machine = Machine(slots)
    machine.STEPS = 7
    for voice, count, priority in jobs:
        machine.scheduler.add(job(count, priority, voice), machine.now)
    while machine.scheduler.entries:
        open_streams = sum(e.stream is not None for e in machine.scheduler.entries)
        could = [
            e.job.priority
            for e in machine.scheduler.entries
            if e.stream is None and (e.job.voice == "h" or open_streams < slots)
        ]
        assert machine.run()
        # Others of the same pool may begin in the same step, for which the first waits not a bit longer.
        assert min((e.job.priority for e in machine.began), default=min(could, default=None)) == min(
            could, default=None
        )


def between(*voices: str, priority: Priority = Priority.TEXT) -> Job:
    """A job of voice "a" whose utterances are of these voices; "" is the job's."""
    made = job(len(voices), priority)
    made.utterances = [Utterance(n, (1,), voice=voice) for n, voice in enumerate(voices)]
    return made


def begin(entry: Entry) -> None:
    entry.job.start()
    entry.utterance, entry.stream = entry.job.utterances[entry.job.cursor], object()
    entry.job.cursor += 1


def test_a_job_is_in_the_pool_of_the_voice_that_speaks() -> None:
    scheduler = Scheduler({"a": 1, "b": 1})
    mixed, other = between("", "b", "b", ""), between("b", "a")
    scheduler.add(mixed, 0.0)
    scheduler.add(other, 0.0)
    first, second = scheduler.entries
    assert (first.voice, second.voice) == ("a", "b")
    begin(first)
    assert first.voice == "a"  # of its open stream, though the next utterance is of another
    begin(second)
    assert {scheduler.choose(float(n))[0].voice for n in range(1)} <= {"a", "b"}
    first.stream = first.utterance = None
    assert first.voice == "b"
    assert scheduler.choose(1.0) == [second]  # b has one slot
    second.stream = second.utterance = None
    assert second.voice == "a"
    chosen = scheduler.choose(1.0)
    assert chosen in ([first], [second])


@given(
    st.lists(st.lists(st.sampled_from(("", "b", "c")), min_size=1, max_size=5), min_size=1, max_size=6),
    st.integers(1, 3),
    st.integers(1, 3),
    st.data(),
)
def test_jobs_between_voices_are_served_in_order_and_no_pool_beyond_its_slots(
    jobs: list[list[str]], a_slots: int, b_slots: int, data: st.DataObject
) -> None:
    """ "a" and "c" are voices of one pool, "b" is another."""
    scheduler = Scheduler({"a": a_slots, "c": a_slots, "b": b_slots}, {"a": "x", "c": "x", "b": "y"})
    pools = {"a": "x", "c": "x", "b": "y"}
    slots = {"x": a_slots, "y": b_slots}
    for voices in jobs:
        scheduler.add(between(*voices), 0.0)
    spoken: dict[int, list[int]] = {id(e.job): [] for e in scheduler.entries}
    wanted = {id(e.job): len(e.job.utterances) for e in scheduler.entries}
    rounds = 0
    while batch := scheduler.choose(1.0):
        rounds += 1
        assert rounds < 200
        (pool,) = {pools[e.voice] for e in batch}
        assert len(batch) <= slots[pool]
        scheduler.spent(batch, 0.01, 1.0)
        for entry in batch:
            if entry.stream is None:
                begin(entry)
            assert entry.utterance is not None
            assert entry.voice == (entry.utterance.voice or "a")
        for name, most in slots.items():
            assert sum(e.stream is not None and pools[e.voice] == name for e in scheduler.entries) <= most
        for entry in batch:
            if data.draw(st.booleans()) or rounds > 100:
                assert entry.utterance is not None
                spoken[id(entry.job)].append(entry.utterance.index)
                entry.stream = entry.utterance = None
                if entry.exhausted:
                    scheduler.remove(entry)
    assert {key: len(order) for key, order in spoken.items()} == wanted
    assert all(order == sorted(order) for order in spoken.values())


def test_an_utterance_of_an_unknown_voice_is_a_pool_of_its_own() -> None:
    """It is the worker that fails it."""
    scheduler = Scheduler({"a": 1})
    scheduler.add(between("gone"), 0.0)
    assert scheduler.choose(0.0) == scheduler.entries


def test_no_utterance_begins_before_all_of_the_one_before_was_handed_on() -> None:
    scheduler = Scheduler({"a": 1})
    scheduler.add(job(2), 0.0)
    (entry,) = scheduler.entries
    entry.pending.append(object())
    assert scheduler.choose(0.0) == []
    entry.stream = object()
    assert scheduler.choose(0.0) == [entry]


# -- one call for several utterances ----------------------------------------------------------------


def by_speaker(each: Job) -> int:
    """The bucket: these tests keep it in the symbols, which the scheduler never reads."""
    return each.utterances[each.cursor].symbols[0]


def classed(bucket: int, priority: Priority = Priority.TEXT, deadline: float | None = None) -> Job:
    made = job(1, priority, deadline=deadline)
    made.utterances = [Utterance(0, (bucket,))]
    return made


@given(
    st.lists(st.tuples(st.integers(1, 3), st.sampled_from(Priority)), min_size=1, max_size=12),
    st.integers(1, 4),
)
def test_a_call_is_of_one_length_class_and_one_priority(jobs: list[tuple[int, Priority]], most: int) -> None:
    scheduler = Scheduler({"a": most}, bucket=by_speaker)
    for bucket, priority in jobs:
        scheduler.add(classed(bucket, priority), 0.0)
    served = 0
    while batch := scheduler.choose(1.0):
        first = min(scheduler.entries, key=lambda e: e.rank)
        like = [
            e
            for e in scheduler.entries
            if by_speaker(e.job) == by_speaker(first.job) and e.job.priority == first.job.priority
        ]
        assert batch == sorted(like, key=lambda e: e.rank)[:most]
        served += len(batch)
        serve(scheduler, batch)
    assert served == len(jobs)


def gathering(*jobs: Job) -> Scheduler:
    scheduler = Scheduler({"a": 3, "b": 3}, bucket=by_speaker, gather_s=0.02)
    for each in jobs:
        scheduler.add(each, 10.0)
    return scheduler


def test_a_lone_utterance_waits_for_companions_and_not_for_ever() -> None:
    scheduler = gathering(classed(1))
    assert scheduler.choose(10.0) == []
    assert scheduler.next_look() == 10.02
    assert len(scheduler.choose(10.02)) == 1
    assert scheduler.next_look() is None
    scheduler.add(classed(1), 10.015)
    assert scheduler.choose(10.015) == []
    assert scheduler.next_look() == 10.02  # the first one's time
    scheduler.add(classed(1), 10.016)
    assert len(scheduler.choose(10.016)) == 3  # no more fit


def test_what_cannot_be_helped_by_waiting_does_not_wait() -> None:
    begun = classed(1)
    begun.utterances *= 2
    scheduler = gathering(begun)
    serve(scheduler, scheduler.choose(11.0))
    assert len(scheduler.choose(10.0)) == 1  # its listener waits
    assert len(gathering(classed(1, Priority.IMPORTANT)).choose(10.0)) == 1
    assert len(gathering(classed(0)).choose(10.0)) == 1  # rows of any length: an autoregressive voice
    assert len(gathering(classed(1), classed(2)).choose(10.0)) == 1  # there is something to do meanwhile
    assert len(gathering(classed(1), job(voice="b")).choose(10.0)) == 1


def test_nobody_misses_a_deadline_by_gathering() -> None:
    scheduler = gathering(classed(1, deadline=10.015))
    assert len(scheduler.choose(10.0)) == 1
    scheduler = gathering(classed(1, deadline=10.03))
    assert scheduler.choose(10.0) == []
    assert scheduler.next_look() == 10.02
