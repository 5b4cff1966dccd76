"""How long a job would wait for the synthesis of those before it, by how fast the last ones were.

Server thread only: admission asks before it takes a job and records each one that ended. Nothing is assumed
about a voice: until a job of its pool ended well, there is no forecast.

The unit is engine seconds, a job's share of the calls it took part in. With S slots the S jobs in them
advance at once, each by 1/S of an engine second a second; so the work before a job is dealt out to the slots
in order of service, and the job begins when the first of them is free.

What is before a job follows the scheduler: slots are given for a sentence at a time, and who is ahead of his
listener lets one who just came go first. So where the engine keeps up with all listeners, a job waits for
one sentence of each that is before it, however long they are; where it does not, for all of their text. A
sentence that was begun is spoken to its end, whatever its priority.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Mapping

from edged.job import Job, JobState

WINDOW = 64  # jobs that the pace is taken over: the last minutes, whatever the load was before


class _Pace:
    """What the last jobs cost."""

    def __init__(self) -> None:
        self._jobs: deque[tuple[float, int, float, int]] = deque(maxlen=WINDOW)

    def add(self, job: Job) -> None:
        line = job.timeline
        self._jobs.append((line.synthesis_s, len(job.text), line.audio_s, max(1, len(job.utterances))))

    @property
    def known(self) -> bool:
        return bool(self._jobs)

    def of_characters(self, count: int) -> float:
        """Engine seconds of a text."""
        return count * self._seconds / sum(job[1] for job in self._jobs)

    def of_audio(self, seconds: float) -> float:
        """Engine seconds of that much audio."""
        return seconds * self._seconds / sum(job[2] for job in self._jobs)

    @property
    def of_sentence(self) -> float:
        """Engine seconds of a sentence."""
        return self._seconds / sum(job[3] for job in self._jobs)

    @property
    def _seconds(self) -> float:
        return sum(job[0] for job in self._jobs)


class Forecast:
    """slots: utterances at once, of each voice. pools: voices of one pool share their slots.

    loudspeaker_s: audio that is computed ahead of the loudspeaker. A job that speaks takes the engine for
    that much, and then at the pace it is heard; those behind it wait for the loudspeaker, which is no wait
    for synthesis.
    """

    def __init__(self, slots: Mapping[str, int], pools: Mapping[str, str], loudspeaker_s: float) -> None:
        self._slots = slots
        self._pools = pools
        self._loudspeaker_s = loudspeaker_s
        self._paces: dict[str, _Pace] = {name: _Pace() for name in slots}
        self._shared: dict[str, _Pace] = {pool: _Pace() for pool in pools.values()}

    def record(self, job: Job) -> None:
        """An ended job. Only one that was spoken to its end tells what its characters cost."""
        line = job.timeline
        if job.voice not in self._paces:
            return  # of a voice that a reload took away
        if job.state is JobState.DONE and job.text and line.synthesis_s > 0.0 and line.audio_s > 0.0:
            self._paces[job.voice].add(job)
            self._shared[self._pools[job.voice]].add(job)

    def wait_s(self, voice: str, priority: int, live: Iterable[Job]) -> float | None:
        """Seconds until a new job of this voice and priority gets a slot; None when nobody can tell."""
        pool, slots = self._pools[voice], self._slots[voice]
        before, running = self._before(priority, live)
        known = [job for job in before if self._pace(job).known]
        if (before or running) and not known and not any(self._pace(job).known for job in running):
            return None
        keeps_up = sum(self._pace(job).of_audio(1.0) for job in known) <= 1.0
        mine, others = [0.0] * slots, 0.0
        for job in running:  # of a lower priority
            if self._pools[job.voice] == pool:
                heapq.heapreplace(mine, mine[0] + self._left_s(job, keeps_up=True))
        for job in before:
            left = self._left_s(job, keeps_up)
            if self._pools[job.voice] == pool:
                heapq.heapreplace(mine, mine[0] + left)
            else:
                others += left
        wait = slots * mine[0]
        return wait + min(wait, others)  # pools take turns at the engine

    def _before(self, priority: int, live: Iterable[Job]) -> tuple[list[Job], list[Job]]:
        """Jobs that are served before a new one, in order, and those of lower priority that were begun."""
        before, running, spoken = [], [], False
        ordered = sorted(live, key=lambda j: (j.state is JobState.QUEUED, j.priority, j.timeline.received))
        for job in ordered:
            if job.ended or job.voice not in self._pools:  # that voice was taken away by a reload
                continue
            if job.priority > priority:
                running += [job] if job.state is JobState.RUNNING else []
            elif job.kind != "speak" or not spoken:  # those after the first wait for the loudspeaker
                spoken |= job.kind == "speak"
                before.append(job)
        return before, running

    def _left_s(self, job: Job, keeps_up: bool) -> float:
        """Engine seconds that a live job will take before others get their turn; 0 when not measured."""
        pace = self._pace(job)
        if not pace.known:
            return 0.0
        left = max(0.0, pace.of_characters(len(job.text)) - job.timeline.synthesis_s)
        if keeps_up:
            left = min(left, pace.of_sentence)
        return min(left, pace.of_audio(self._loudspeaker_s)) if job.kind == "speak" else left

    def _pace(self, job: Job) -> _Pace:
        pace = self._paces[job.voice]
        return pace if pace.known else self._shared[self._pools[job.voice]]
