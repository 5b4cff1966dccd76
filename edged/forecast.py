"""How long a job would wait for the synthesis of those before it, by how fast the last ones were.

Server thread only: admission asks before it takes a job and records each one that ended. Nothing is assumed
about a voice: until a job of its pool ended well, there is no forecast.

The unit is engine seconds, a job's share of the calls it took part in. With S slots the S jobs in them
advance at once, each by 1/S of an engine second a second; so the work before a job is dealt out to the slots
in order of service, and the job begins when the first of them is free.
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
        self._jobs: deque[tuple[float, int, float]] = deque(maxlen=WINDOW)

    def add(self, job: Job) -> None:
        line = job.timeline
        self._jobs.append((line.synthesis_s, len(job.text), line.audio_s))

    @property
    def known(self) -> bool:
        return bool(self._jobs)

    def of_characters(self, count: int) -> float:
        """Engine seconds of a text."""
        return count * self._seconds / sum(characters for _, characters, _ in self._jobs)

    def of_audio(self, seconds: float) -> float:
        """Engine seconds of that much audio."""
        return seconds * self._seconds / sum(audio_s for _, _, audio_s in self._jobs)

    @property
    def _seconds(self) -> float:
        return sum(seconds for seconds, _, _ in self._jobs)


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
        if job.state is JobState.DONE and job.text and line.synthesis_s > 0.0 and line.audio_s > 0.0:
            self._paces[job.voice].add(job)
            self._shared[self._pools[job.voice]].add(job)

    def left_s(self, job: Job) -> float | None:
        """Engine seconds that a live job will take before others get their turn; None when not measured."""
        pace = self._paces[job.voice]
        pace = pace if pace.known else self._shared[self._pools[job.voice]]
        if not pace.known:
            return None
        left = max(0.0, pace.of_characters(len(job.text)) - job.timeline.synthesis_s)
        return min(left, pace.of_audio(self._loudspeaker_s)) if job.kind == "speak" else left

    def wait_s(self, voice: str, priority: int, live: Iterable[Job]) -> float | None:
        """Seconds until a new job of this voice and priority gets a slot; None when nobody can tell."""
        pool, slots = self._pools[voice], self._slots[voice]
        before = [job for job in live if job.priority <= priority and not job.ended]
        mine, others = [0.0] * slots, 0.0
        known = spoken = False
        before.sort(key=lambda j: (j.state is JobState.QUEUED, j.priority, j.timeline.received))
        for job in before:
            if job.kind == "speak":
                if spoken:
                    continue
                spoken = True
            left = self.left_s(job)
            known |= left is not None
            if self._pools[job.voice] == pool:
                heapq.heapreplace(mine, mine[0] + (left or 0.0))
            else:
                others += left or 0.0
        if before and not known:
            return None
        wait = slots * mine[0]
        return wait + min(wait, others)  # pools take turns at the engine
