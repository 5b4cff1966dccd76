"""Which job is stepped next: pure Python over job data, with the time passed in.

Engine thread only (the worker calls it). It imports no engine and no tensor library. Order of service:
higher priority first; within a priority the job that was served least, so that a short message is not
stuck behind a long text; then the one that came first. A job whose sink has no room begins no utterance.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from edged.errors import DeadlineMissed
from edged.job import Job, JobState


@dataclass(slots=True, eq=False)
class Entry:
    """A job as the scheduler sees it. `stream` is the voice's open stream, if there is one."""

    job: Job
    arrival: int
    served: int = 0  # utterances begun
    stream: Any = None

    @property
    def has_work(self) -> bool:
        return self.stream is not None or self.job.cursor < len(self.job.utterances)

    @property
    def exhausted(self) -> bool:
        """Everything was prepared and everything prepared was spoken."""
        return self.stream is None and self.job.prepared_all and self.job.cursor >= len(self.job.utterances)


@dataclass(slots=True)
class Scheduler:
    """capacity: how many open streams each voice can hold (its slots).

    pools: the name of the synthesizer of each voice; voices of one pool share its slots and its steps.
    A voice that is not listed is a pool of its own.
    """

    capacity: Mapping[str, int]
    pools: Mapping[str, str] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)
    _arrivals: int = 0

    def add(self, job: Job) -> None:
        self._arrivals += 1
        self.entries.append(Entry(job, self._arrivals))

    def remove(self, entry: Entry) -> None:
        self.entries.remove(entry)

    def ended(self) -> list[Entry]:
        """Entries whose job ended elsewhere (cancelled, failed); the caller closes their streams."""
        return [e for e in self.entries if e.job.ended]

    def expire(self, now: float) -> None:
        """Fails every job that has not started by its deadline."""
        for entry in self.entries:
            job = entry.job
            if job.deadline is not None and now >= job.deadline and job.state is JobState.QUEUED:
                job.fail(DeadlineMissed("the job's deadline passed before it could start"))

    def next_deadline(self) -> float | None:
        """The earliest deadline of a job that has not started, in monotonic seconds."""
        times = [
            e.job.deadline
            for e in self.entries
            if e.job.deadline is not None and e.job.state is JobState.QUEUED
        ]
        return min(times, default=None)

    def choose(self) -> list[Entry]:
        """The entries for the next step, all of one pool, at most its capacity; empty when idle."""
        ready = sorted(self._ready(), key=lambda e: (e.job.priority, e.served, e.arrival))
        if not ready:
            return []
        slots = self.capacity[ready[0].job.voice]
        pool = self._pool(ready[0])
        mine = [e for e in ready if self._pool(e) == pool]
        free = slots - sum(1 for e in self.entries if e.stream is not None and self._pool(e) == pool)
        batch = []
        for entry in mine:
            if entry.stream is None:
                if free <= 0:
                    continue
                free -= 1
            batch.append(entry)
        return batch[:slots]

    def _pool(self, entry: Entry) -> str:
        return self.pools.get(entry.job.voice, entry.job.voice)

    def _ready(self) -> Iterable[Entry]:
        for entry in self.entries:
            sink = entry.job.sink
            if entry.job.ended or not entry.has_work or sink is None:
                continue
            # One that was begun is finished: with its stream open it holds a slot, and the job that has
            # to go on before this one gets room may be waiting for that.
            if entry.stream is not None or sink.ready():
                yield entry
