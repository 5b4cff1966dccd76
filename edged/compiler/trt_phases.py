"""TensorRT's nested build phases as one fraction that only grows.

CLI process only; TensorRT reports from threads of its own, one phase inside another and some beside each
other. No TensorRT here: `trt.py` hands the calls on. An exception out of one of these calls would go through
native code, so it is kept, the build is told to stop, and `trt.py` raises it afterwards. A signal is served
by Python on the main thread only, which must therefore not be the one that is in native code for minutes.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from edged.compiler.parts import Progress

SIGNALS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
LOOK_S = 0.2  # how often the main thread looks for signals, as a join without an end would not
T = TypeVar("T")


@dataclass(slots=True)
class _Phase:
    begin: float
    span: float
    steps: int
    done: int = 0

    def slot(self) -> tuple[float, float]:
        """Begin and span of the step that runs now."""
        span = self.span / self.steps
        return self.begin + span * min(self.done, self.steps - 1), span

    def fraction(self) -> float:
        return self.begin + self.span * min(self.done, self.steps) / self.steps


class Phases:
    """`start`, `step` and `finish` may be called from any thread."""

    def __init__(self, name: str, progress: Progress) -> None:
        """name: of what is built, shown with each phase."""
        self._name = name
        self._progress = progress
        self._lock = threading.Lock()
        self._phases: dict[str, _Phase] = {}
        self._reached = 0.0
        self.failure: BaseException | None = None

    def stop(self, reason: BaseException) -> None:
        """The next step ends the build."""
        self.failure = self.failure or reason

    def start(self, phase: str, parent: str | None, steps: int) -> None:
        with self._lock:
            above = self._phases.get(parent or "")
            begin, span = above.slot() if above else (self._reached, 1.0 - self._reached)
            self._phases[phase] = _Phase(begin, span, max(1, steps))
            self._tell(phase, begin)

    def step(self, phase: str, step: int) -> bool:
        """False stops the build."""
        with self._lock:
            found = self._phases.get(phase)
            if found is not None:
                found.done = step + 1
                self._tell(phase, found.fraction())
            return self.failure is None

    def finish(self, phase: str) -> None:
        with self._lock:
            found = self._phases.pop(phase, None)
            if found is not None:
                self._tell(phase, found.begin + found.span)

    def _tell(self, phase: str, fraction: float) -> None:
        self._reached = min(1.0, max(self._reached, fraction))
        try:
            self._progress(f"{self._name}: {phase}", self._reached)
        except BaseException as error:  # a Ctrl-C, too: it arrives in whatever Python runs
            self.stop(error)


def stoppable(build: Callable[[], T], phases: Phases) -> T:
    """What a native build gives, on a thread of its own. Raises what that raised.

    A Ctrl-C on this thread is kept in `phases`, which ends the build at its next step, and where the caller
    looks. A second one does not wait for that.
    """
    made: list[T] = []
    raised: list[BaseException] = []

    def work() -> None:
        try:
            made.append(build())
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=work, name="edged-build", daemon=True)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # for that thread: they are for this one
    thread.start()
    while True:
        try:
            # At least once, however short the build was: what is blocked here, child processes inherit.
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            if made or raised:
                break
            thread.join(LOOK_S)
        except KeyboardInterrupt as error:
            if phases.failure is not None:
                raise
            phases.stop(error)
    if raised:
        raise raised[0]
    return made[0]
