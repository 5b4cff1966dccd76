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
from dataclasses import dataclass, field, replace
from time import monotonic

from edged.errors import Busy, EdgedError, InternalError, RequestError, ShuttingDown, UnspeakableText
from edged.job import Job
from edged.log import event as log_event
from edged.text.explain import Account, Explanation, Told
from edged.text.prepare import Preparer
from edged.text.reading import Stretch
from edged.text.script import Prepared, Script
from edged.threads import Pulse, name_thread

log = logging.getLogger("edged.text")
QUESTIONS = 4  # explanations at once; each may hold a text of the largest size


@dataclass(frozen=True, slots=True)
class Piece:
    """A job's text, or a part of it. script: None where nothing of it can be heard, and then left_out counts
    its characters. more: other parts follow."""

    job: Job
    script: Script | None
    more: bool = False
    left_out: int = 0


@dataclass(slots=True, eq=False)
class _Open:
    """A job in preparation. waiting: parts of its text that were not begun. more: others will come."""

    job: Job
    more: bool
    source: Iterator[Stretch | Prepared] | None = None
    waiting: deque[Script] = field(default_factory=deque)
    parts: int = 0
    spent_s: float = 0.0  # on its first utterance

    @property
    def able(self) -> bool:
        """There is something to do: a part, or the end."""
        return self.source is not None or bool(self.waiting) or not self.more


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
        self._incoming: deque[Piece] = deque()
        self._questions: deque[Question] = deque()
        self._wake = threading.Event()
        self._stopping = False
        self.pulse = Pulse()  # a round: one sentence
        self._thread = threading.Thread(target=self._main, name="edged-text", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def submit(self, piece: Piece) -> None:
        """Any thread. The number of jobs is bounded by admission, and so is the length of each one's text."""
        self._incoming.append(piece)
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
            if not (any(w.able for w in work) or self._questions):
                self.pulse.rest()
                self._wake.wait()
            self.pulse.beat()
            self._wake.clear()
            while self._incoming:
                _take(self._incoming.popleft(), work)
            work = [w for w in work if not w.job.ended]
            able = [w for w in work if w.able]
            if able:
                turn = min(able, key=lambda w: (w.job.priority, len(w.job.utterances)))
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
        if turn.source is None and turn.waiting:
            turn.parts += 1
            turn.source = self.preparer.steps(turn.waiting.popleft(), job.voice, job.params)
        try:
            step = next(turn.source, None) if turn.source is not None else None
        except Exception as exc:
            if isinstance(exc, UnspeakableText) and (turn.parts > 1 or turn.more):
                job.warn("a part of the text came to nothing that could be spoken")
                turn.source = None
                return True
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
            turn.source = None
            if turn.waiting or turn.more:
                return True
            job.prepared_all = True
        else:
            job.skipped += sum(skipped.count for skipped in step.skipped)
            for warning in step.warnings:
                job.warn(warning)
            job.utterances.append(replace(step.utterance, index=len(job.utterances)))
        if first:
            job.timeline.prepared = now
            job.timeline.text_s = turn.spent_s
            self._ready(job)
        else:
            self._changed()
        return step is not None


def _take(piece: Piece, work: list[_Open]) -> None:
    """A part of a job that is known, or of a new one."""
    job = piece.job
    known = next((w for w in work if w.job is job), None)
    if known is None:
        known = _Open(job, piece.more)
        work.append(known)
    elif piece.script is not None:  # of the first part admission has told
        job.skipped += piece.script.left_out
    known.more = piece.more
    job.skipped += piece.left_out
    if piece.script is not None:
        known.waiting.append(piece.script)
