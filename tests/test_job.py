"""A job ends once, whoever comes first."""

from __future__ import annotations

import threading
from collections import Counter

import pytest

from edged.errors import InternalError
from edged.job import AudioChunk, Job, JobState, Params, Priority


class Recorder:
    """A sink that counts aborts."""

    def __init__(self) -> None:
        self.aborts = 0

    def ready(self) -> bool:
        return True

    def write(self, chunk: AudioChunk) -> None:
        raise AssertionError("nothing is written in these tests")

    def abort(self) -> None:
        self.aborts += 1


def make_job(**changes: object) -> Job:
    values: dict[str, object] = {
        "id": "j",
        "client": b"c",
        "client_id": "",
        "kind": "speak",
        "text": "x",
        "voice": "v",
        "params": Params(),
        "priority": Priority.TEXT,
    }
    return Job(**{**values, **changes})  # type: ignore[arg-type]


def test_one_ending_wins_among_many_threads() -> None:
    for _ in range(200):
        ends: list[JobState] = []
        sink = Recorder()
        job = make_job(sink=sink, on_end=lambda job, ends=ends: ends.append(job.state))
        barrier = threading.Barrier(6)
        wins: list[bool] = []
        acts = [job.done, job.cancel, lambda job=job: job.fail(InternalError("x"))] * 2

        def run(act: object, barrier: threading.Barrier = barrier, wins: list[bool] = wins) -> None:
            barrier.wait()
            wins.append(act())  # type: ignore[operator]

        threads = [threading.Thread(target=run, args=(act,)) for act in acts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert Counter(wins) == {True: 1, False: 5}
        assert ends == [job.state]
        assert sink.aborts == (0 if job.state is JobState.DONE else 1)
        assert (job.error is not None) == (job.state is JobState.FAILED)


def test_a_job_starts_once_and_not_after_its_end() -> None:
    started: list[str] = []
    job = make_job(on_start=lambda job: started.append(job.id))
    assert job.start()
    assert not job.start()
    assert job.state is JobState.RUNNING
    cancelled = make_job(on_start=lambda job: started.append(job.id))
    assert cancelled.cancel()
    assert not cancelled.start()
    assert started == ["j"]


@pytest.mark.parametrize("state", list(JobState))
def test_ended_states(state: JobState) -> None:
    assert state.ended == (state.value in ("done", "cancelled", "failed"))
