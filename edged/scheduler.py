"""Which jobs are stepped next: pure Python over job data, with the time passed in.

Engine thread only (the worker calls it). It imports no engine and no tensor library.

Who begins an utterance: higher priority first, in all pools; within a priority the job whose listener
runs dry first, when it is given what was made since its first sound, and for one that is not heard yet the
moment it came. So a short message is not stuck behind a long text that is seconds ahead of its listener, a
text is not held up for ever by messages that keep coming, and nobody's sentence is overtaken without end.
A job whose sink has no room begins no utterance. What was begun goes on at every turn of its pool; which
pool is next is a question of time used (`turns`).

One-pass voices share a call only with utterances of their own length class (`bucket`) and priority. A lone
one may wait for companions, at most `gather_s`, and only while there is nothing else to do.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from edged.errors import DeadlineMissed
from edged.job import Job, JobState, Priority, Utterance
from edged.turns import Turns

# A listener with less audio ahead than this is about to hear a gap: some calls of another pool in seconds.
DRY_S = 0.5


@dataclass(slots=True, eq=False)
class Entry:
    """A job as the scheduler sees it. `stream` is the voice's open stream, if there is one.

    utterance: what the open stream speaks; sounded: something of it was made. pending: what was made and is
    yet to be handed to the sink (`outflow`); finished: the sink has the last of it. came, heard_from:
    monotonic seconds, when it was added and when its first audio was made (0.0: not yet). take: how often its
    job was sent back; told: marks that come once more, and were told before. stretch: what changes the speed
    or pitch of the open stream's audio, None where the voice speaks as it should.
    """

    job: Job
    arrival: int
    came: float = 0.0
    served: int = 0  # utterances begun
    stream: Any = None
    utterance: Utterance | None = None
    sounded: bool = False
    heard_from: float = 0.0
    pending: deque[Any] = field(default_factory=deque)
    finished: bool = False
    take: int = 0
    told: int = 0
    stretch: Any = None

    @property
    def has_work(self) -> bool:
        """Whether a voice can go on. No utterance is begun before all of the one before was handed on."""
        if self.stream is not None:
            return True
        return not self.pending and self.job.cursor < len(self.job.utterances)

    @property
    def exhausted(self) -> bool:
        """Everything was prepared, and everything prepared was spoken and handed on."""
        if self.stream is not None or self.pending or not self.job.prepared_all:
            return False
        return self.job.cursor >= len(self.job.utterances)

    @property
    def voice(self) -> str:
        """Who speaks: of the open stream, else of the next utterance, else of the job."""
        job, utterance = self.job, self.utterance
        if utterance is None and job.cursor < len(job.utterances):
            utterance = job.utterances[job.cursor]
        return (utterance.voice if utterance is not None else "") or job.voice

    @property
    def due(self) -> float:
        """When its listener wants more, in monotonic seconds."""
        return self.heard_from + self.job.timeline.audio_s if self.heard_from else self.came

    @property
    def rank(self) -> tuple[Priority, float, int]:
        return self.job.priority, self.due, self.arrival


def unsorted(job: Job) -> int:
    """The bucket of utterances that may share a call with any other."""
    return 0


@dataclass(slots=True)
class Scheduler:
    """capacity: how many open streams each voice can hold (its slots).

    pools: the name of the synthesizer of each voice; voices of one pool share its slots and its steps.
    A voice that is not listed is a pool of its own, with one slot. A job whose utterances are of several
    voices is in the pool of the one that speaks, or speaks next. bucket: the length class of a job's next
    utterance, 0 where there are no classes. gather_s: how long an utterance with a class may wait for others.
    """

    capacity: Mapping[str, int]
    pools: Mapping[str, str] = field(default_factory=dict)
    bucket: Callable[[Job], int] = unsorted
    gather_s: float = 0.0
    entries: list[Entry] = field(default_factory=list)
    _turns: Turns = field(default_factory=Turns)
    _gathering_until: float | None = None
    _arrivals: int = 0

    def add(self, job: Job, now: float) -> None:
        self._arrivals += 1
        self.entries.append(Entry(job, self._arrivals, now))

    def remove(self, entry: Entry) -> None:
        self.entries.remove(entry)

    def find(self, job: Job, now: float) -> Entry:
        """The entry of a job, a new one where it was removed."""
        found = next((e for e in self.entries if e.job is job), None)
        if found is None:
            self.add(job, now)
            found = self.entries[-1]
        return found

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

    def next_look(self) -> float | None:
        """When to `expire` and `choose` again though nothing else happened; after an empty `choose`."""
        times = [t for t in (self.next_deadline(), self._gathering_until) if t is not None]
        return min(times, default=None)

    def choose(self, now: float) -> list[Entry]:
        """The entries for the next step, all of one pool, at most its capacity; empty when idle."""
        self._gathering_until = None
        ready = sorted(self._ready(now), key=lambda e: e.rank)
        if not ready:
            return []
        free = self._free()
        pools: dict[str, list[Entry]] = {}
        for entry in ready:
            pools.setdefault(self._pool(entry), []).append(entry)
        # The first of those that could begin an utterance; a pool without free slots has none.
        first = next((e for e in ready if e.stream is None and free[self._pool(e)] > 0), None)
        batches: dict[str, list[Entry]] = {}
        for pool, mine in pools.items():
            if batch := self._batch(mine, free[pool], first):
                batches[pool] = batch
        if not batches:  # a job that ended a moment ago still holds the slot
            return []
        batch = batches[self._turns.pick(list(batches))]
        if len(batch) == len(ready) and self._gather(batch, now):
            return []
        return batch

    def spent(self, batch: Sequence[Entry], seconds: float, now: float) -> None:
        """Notes what the step of a batch took; before its audio is counted."""
        urgent = any(e.heard_from and e.due < now + DRY_S for e in batch)
        self._turns.charge(self._pool(batch[0]), seconds, urgent)

    def _batch(self, mine: Sequence[Entry], free: int, first: Entry | None) -> list[Entry]:
        """What a step of a pool would be: what was begun, and what may begin. `mine` is in order."""
        batch = [e for e in mine if e.stream is not None]
        waiting = [e for e in mine if e.stream is None]
        if not waiting or first is None or waiting[0].job.priority > first.job.priority:
            return batch  # somewhere else, one of a higher priority can begin
        if kind := self.bucket(waiting[0].job):
            # The whole call is waited for, so that one of a higher priority takes along nobody else.
            priority = waiting[0].job.priority
            waiting = [e for e in waiting if e.job.priority == priority and self.bucket(e.job) == kind]
        return batch + waiting[:free]

    def _gather(self, batch: Sequence[Entry], now: float) -> bool:
        """Whether these wait for companions: nobody of them is urgent, and there is nothing else to do."""
        if self.gather_s <= 0 or len(batch) >= self.capacity.get(batch[0].voice, 1):
            return False
        if any(e.served or e.job.priority is Priority.IMPORTANT or not self.bucket(e.job) for e in batch):
            return False
        until = min(e.came for e in batch) + self.gather_s
        if now >= until or any(e.job.deadline is not None and e.job.deadline <= until for e in batch):
            return False
        self._gathering_until = until
        return True

    def _free(self) -> dict[str, int]:
        """Slots without a stream in each pool, also of jobs that ended and still hold theirs."""
        free: dict[str, int] = {}
        for entry in self.entries:
            voice = entry.voice  # once: the text thread may add the next utterance at any moment
            pool = self.pools.get(voice, voice)
            if pool not in free:
                free[pool] = self.capacity.get(voice, 1)
            if entry.stream is not None:
                free[pool] -= 1
        return free

    def _pool(self, entry: Entry) -> str:
        voice = entry.voice
        return self.pools.get(voice, voice)

    def _ready(self, now: float) -> Iterable[Entry]:
        for entry in self.entries:
            sink = entry.job.sink
            if entry.job.ended or not entry.has_work or sink is None:
                continue
            # One that was begun is finished: with its stream open it holds a slot, and the job that has
            # to go on before this one gets room may be waiting for that.
            if entry.stream is not None or sink.ready():
                yield entry
            elif entry.heard_from and entry.due < now:
                entry.heard_from += now - entry.due  # it has more than it took, so it is not behind
