"""Counters since start and percentiles over the last jobs.

`Stats` is written by the server thread when a job or request ends, and read there for `stats`: no locks, one
thread. A `Window` may be written by one thread and read by another.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from time import monotonic

from edged.job import Job, JobState
from edged.protocol import NOTHING, Percentiles

WINDOW = 1024  # jobs that percentiles are taken over


class Window:
    """The last `WINDOW` values of one figure."""

    def __init__(self) -> None:
        self._values: deque[float] = deque(maxlen=WINDOW)

    def add(self, value: float) -> None:
        self._values.append(value)

    def percentiles(self) -> Percentiles:
        """Nearest-rank percentiles; all zero while there is no value. Any thread may ask."""
        values = list(self._values)  # a copy in one go, since another thread may add
        values.sort()
        if not values:
            return NOTHING

        def rank(q: float) -> float:
            return round(values[max(0, math.ceil(q * len(values)) - 1)], 4)

        return Percentiles(
            count=len(values), p50=rank(0.5), p90=rank(0.9), p99=rank(0.99), max=round(values[-1], 4)
        )


class Stats:
    """What happened since start."""

    def __init__(self) -> None:
        self.started = monotonic()
        self.accepted = 0
        self.done = 0
        self.cancelled = 0
        self.failed: Counter[str] = Counter()
        self.rejected: Counter[str] = Counter()
        self.lost_replies = 0  # answers dropped because their client did not read
        self.audio_s = 0.0
        self.synthesis_s = 0.0
        self.first_audio_ms = Window()
        self.rtf = Window()
        self.text_ms = Window()
        self.to_engine_ms = Window()
        self.from_engine_ms = Window()
        self.overhead_ms = Window()

    def add_lost(self, count: int) -> None:
        self.lost_replies += count

    def record(self, job: Job, heard_at_once: bool = True) -> None:
        """Counts an ended job; only completed ones enter the percentiles. heard_at_once: its audio left as it
        was made, so that its first audio says something; that of a whole reply is its last as well."""
        line = job.timeline
        self.audio_s += line.audio_s
        self.synthesis_s += line.synthesis_s
        if job.state is JobState.CANCELLED:
            self.cancelled += 1
            return
        if job.state is JobState.FAILED:
            self.failed[job.error.code if job.error else "error"] += 1
            return
        self.done += 1
        self.rtf.add(rtf(job))
        self.text_ms.add(line.text_s * 1e3)
        if line.engine and line.first_audio:
            to_engine = line.engine - line.received - line.text_s
            # A whole reply leaves after the last step, a stream after the first.
            before = line.finished if line.finished <= line.first_audio else line.produced
            from_engine = line.first_audio - before
            if heard_at_once:
                self.first_audio_ms.add(first_audio_ms(job))
            self.to_engine_ms.add(to_engine * 1e3)
            self.from_engine_ms.add(from_engine * 1e3)
            self.overhead_ms.add((to_engine + from_engine) * 1e3)


def rtf(job: Job) -> float:
    """Real-time factor: engine seconds per second of audio; 0 when there is no audio."""
    line = job.timeline
    return line.synthesis_s / line.audio_s if line.audio_s else 0.0


def first_audio_ms(job: Job) -> float:
    """Receipt of the request to its first audio leaving; 0 when none left."""
    line = job.timeline
    return (line.first_audio - line.received) * 1e3 if line.first_audio else 0.0


def waited_ms(job: Job) -> float:
    """From its first sentence being ready to its first engine step, or to its end without one."""
    line = job.timeline
    return max(0.0, (line.engine or line.ended) - line.prepared) * 1e3 if line.prepared else 0.0
