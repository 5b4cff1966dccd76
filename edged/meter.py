"""What the step loop measures about itself: steps, rows, waits for a slot; and late pieces of streams.

Written by the engine thread (the worker) and, for streams, by the reply thread; read by the server thread
for `stats`, without a lock: the windows are copied in one C call, which no other thread can interrupt. For
some seconds after a reload there are two engine threads, so they take turns here.
"""

from __future__ import annotations

import threading
from collections import deque
from time import monotonic

from edged.stats import Window

RECENT_S = 10.0  # what rates are taken over
RECENT_STEPS = 4096  # and at most so many steps: 10 s of the fastest voices


class Meter:
    """Counters since start, and windows over the last steps."""

    def __init__(self) -> None:
        self.steps = 0
        self.row_steps = 0  # steps times the utterances in each
        self.stream_underruns = 0
        self.step_ms = Window()
        self.slot_wait_ms = Window()
        self._started = monotonic()
        self._lock = threading.Lock()
        self._recent: deque[tuple[float, int]] = deque(maxlen=RECENT_STEPS)  # end of the step, rows

    def step(self, begin: float, end: float, rows: int) -> None:
        """Engine thread: one call of a voice for so many utterances."""
        with self._lock:
            self.steps += 1
            self.row_steps += rows
            self.step_ms.add((end - begin) * 1e3)
            self._recent.append((end, rows))

    def slot_wait(self, seconds: float) -> None:
        """Engine thread: how long a job was ready before its first step began."""
        with self._lock:
            self.slot_wait_ms.add(seconds * 1e3)

    def stream_underrun(self) -> None:
        """Reply thread: a piece of a stream came too late."""
        self.stream_underruns += 1

    def recent(self, now: float) -> tuple[float, float]:
        """Steps a second and utterances a step over the last seconds; both 0 when there was no step."""
        steps = list(self._recent)
        span = min(RECENT_S, now - self._started)
        if len(steps) == RECENT_STEPS:  # older ones were dropped
            span = min(span, now - steps[0][0])
        rows = [count for end, count in steps if now - end <= span]
        if not rows or span <= 0.0:
            return 0.0, 0.0
        return len(rows) / span, sum(rows) / len(rows)
