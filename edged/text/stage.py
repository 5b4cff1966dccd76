"""The text thread: turns the text of admitted jobs into utterances, ahead of the engine.

Thread `edged-text`. A job goes on to the worker as soon as its first utterance is ready; the rest are
prepared while the engine speaks. Jobs take turns sentence by sentence, urgent ones first, so that a
long text does not hold up a short message. Between two sentences it takes a step of an explanation, if one
is asked for. Neighbours: admission submits and asks, the worker receives.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import monotonic

from edged.errors import Busy, EdgedError, InternalError, RequestError, ShuttingDown
from edged.job import Job
from edged.log import event as log_event
from edged.text.explain import Account, Explanation, Told
from edged.text.prepare import Preparer
from edged.text.reading import Stretch
from edged.text.script import Prepared, Script
from edged.threads import Pulse, name_thread

log = logging.getLogger("edged.text")
QUESTIONS = 4  # explanations at once; each may hold a text of the largest size


@dataclass(slots=True, eq=False)
class _Open:
    """A job in preparation."""

    job: Job
    source: Iterator[Stretch | Prepared]
    spent_s: float = 0.0  # on its first utterance


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """An explanation that is asked for. told: gets it, or why there is none, on the text thread."""

    account: Account
    source: Iterator[object]  # fills the account
    told: Told


class TextStage:
    """Owns the text thread and what prepares texts for all voices.

    ready: receives a job when its first utterance is there; changed: called when another one is.
    """

    def __init__(
        self,
        preparer: Preparer,
        ready: Callable[[Job], None],
        changed: Callable[[], None],
        on_crash: Callable[[BaseException], None],
    ) -> None:
        self._on_crash = on_crash
        self.preparer = preparer
        self._ready = ready
        self._changed = changed
        self._incoming: deque[tuple[Job, Script]] = deque()
        self._questions: deque[Question] = deque()
        self._wake = threading.Event()
        self._stopping = False
        self.pulse = Pulse()  # a round: one sentence
        self._thread = threading.Thread(target=self._main, name="edged-text", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def submit(self, job: Job, script: Script) -> None:
        """Any thread. The number of jobs is bounded by admission."""
        self._incoming.append((job, script))
        self._wake.set()

    @property
    def asked(self) -> bool:
        """Any thread: an explanation is not told yet."""
        return bool(self._questions)

    def explain(self, question: Question) -> None:
        """Server thread. Raises `Busy`, and `ShuttingDown` after the stop."""
        if self._stopping:
            raise ShuttingDown("the daemon is stopping")
        if len(self._questions) >= QUESTIONS:
            raise Busy(f"{QUESTIONS} texts are being explained, which is the limit", "try again later")
        self._questions.append(question)
        self._wake.set()

    def stop(self, timeout_s: float) -> None:
        self._stopping = True
        self._wake.set()
        self._thread.join(timeout_s)

    def _main(self) -> None:
        name_thread("edged-text")
        try:
            self._serve()
        except BaseException as exc:
            log_event(
                log, logging.CRITICAL, "the text thread died", code="text_died", fault=type(exc).__name__
            )
            self._on_crash(exc)
        finally:
            while self._questions:
                self._questions.popleft().told(ShuttingDown("the voices were exchanged, or the daemon stops"))

    def _serve(self) -> None:
        work: list[_Open] = []
        while not self._stopping:
            if not (work or self._questions):
                self.pulse.rest()
                self._wake.wait()
            self.pulse.beat()
            self._wake.clear()
            while self._incoming:
                job, script = self._incoming.popleft()
                work.append(_Open(job, self.preparer.steps(script, job.voice, job.params)))
            work = [w for w in work if not w.job.ended]
            if work:
                turn = min(work, key=lambda w: (w.job.priority, len(w.job.utterances)))
                if not self._advance(turn):
                    work.remove(turn)
            if self._questions and not self._step(self._questions[0]):
                self._questions.popleft()

    def _step(self, question: Question) -> bool:
        """Takes one step of an explanation; False when it is told."""
        try:
            if not question.account.full and next(question.source, question) is not question:
                return True
            answer: Explanation | EdgedError = question.account.told()
        except EdgedError as error:
            answer = error
        except Exception as exc:  # its traceback can quote the text
            text = "explaining a text failed"
            log_event(log, logging.ERROR, text, code=InternalError.code, fault=type(exc).__name__)
            log.debug("explanation: traceback", exc_info=True)
            answer = InternalError("the text could not be explained")
        question.told(answer)
        return False

    def _advance(self, turn: _Open) -> bool:
        """Takes one step of a job, which is a stretch that is read or an utterance; False when it has no
        more."""
        job = turn.job
        begin = monotonic()
        try:
            step = next(turn.source, None)
        except Exception as exc:
            error = exc if isinstance(exc, EdgedError) else InternalError("the text could not be prepared")
            # The traceback of a text frontend can quote the text: only its type is logged.
            level = logging.INFO if isinstance(exc, RequestError) else logging.ERROR
            log_event(
                log,
                level,
                "preparing the text failed",
                job=job.id,
                code=error.code,
                voice=job.voice,
                phase="text",
                fault=type(exc).__name__,
            )
            log.debug("job %s: traceback", job.id, exc_info=True)
            job.fail(error)
            return False
        now = monotonic()
        turn.spent_s += now - begin
        if isinstance(step, Stretch):
            return True
        first = not job.utterances
        if step is None:
            job.prepared_all = True
        else:
            job.skipped += sum(skipped.count for skipped in step.skipped)
            for warning in step.warnings:
                job.warn(warning)
            job.utterances.append(step.utterance)
        if first:
            job.timeline.prepared = now
            job.timeline.text_s = turn.spent_s
            self._ready(job)
        else:
            self._changed()
        return step is not None
