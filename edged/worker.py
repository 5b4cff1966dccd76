"""The engine thread: schedule, run, deliver, in one loop.

Thread `edged-engine`, the only one that touches the voices' synthesizers. Jobs come in through
`submit`, in any state of preparation; audio goes out through each job's sink. The utterances of a job may be
of several voices of one sample rate; each is spoken to its end before the next one begins. Neighbours: the
text stage submits and wakes it, sinks wake it when they have room again, the watchdog takes its `pulse`;
`outflow` is the way from here to a sink.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from time import monotonic

from edged import outflow
from edged.audio import stretch
from edged.controls import SPEEDS
from edged.errors import EdgedError, EngineError, InternalError, ShapeExceeded, UnspeakableText
from edged.job import Job, Params, Utterance
from edged.log import event as log_event
from edged.meter import Meter
from edged.scheduler import Entry, Scheduler
from edged.threads import Pulse, name_thread
from edged.voices.api import Piece, Synthesizer, Voice

log = logging.getLogger("edged.worker")
# A synthesizer that fails this often, without an utterance that comes to its end in between, is taken to be
# broken: the process ends and is restarted.
MAX_CONSECUTIVE_FAULTS = 5


class Worker:
    """Owns the scheduler and the engine thread.

    chunk_s: length of the chunks handed to sinks. on_crash: called when the loop itself dies; the service
    then ends the process. gather_s: how long an utterance of a one-pass voice may wait for others to share
    its call.
    """

    def __init__(
        self,
        voices: Mapping[str, Voice],
        chunk_s: float,
        on_crash: Callable[[BaseException], None],
        meter: Meter | None = None,
        gather_s: float = 0.0,
    ) -> None:
        self.meter = Meter() if meter is None else meter
        self._voices = voices
        self._chunk_s = chunk_s
        self._on_crash = on_crash
        self._scheduler = Scheduler(
            {name: v.synthesizer.max_batch for name, v in voices.items()},
            {name: str(id(v.synthesizer)) for name, v in voices.items()},
            self._bucket,
            gather_s,
        )
        self._incoming: deque[Job] = deque()
        self._sent_back: deque[tuple[Job, int, int]] = deque()
        self._wake = threading.Event()
        self._stopping = False
        self._faults: Counter[int] = Counter()  # by synthesizer: a sound voice says nothing of a broken one
        self._stretching = stretch.library()
        self.pulse = Pulse()  # a round: schedule, one engine call, deliver
        self._thread = threading.Thread(target=self._main, name="edged-engine", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def submit(self, job: Job) -> None:
        """Any thread: the job has at least one utterance, or is known to have none."""
        self._incoming.append(job)
        self._wake.set()

    def send_back(self, job: Job, utterance: int, take: int) -> None:
        """Any thread: the job is spoken anew from that utterance on. take: of the chunks from there on."""
        self._sent_back.append((job, utterance, take))
        self._wake.set()

    def wake(self) -> None:
        """Any thread: something the scheduler looks at has changed."""
        self._wake.set()

    def stop(self, timeout_s: float) -> bool:
        """Ends the loop after the step in progress; False if the thread did not end in time."""
        self._stopping = True
        self._wake.set()
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    # -- the loop -------------------------------------------------------------------------------

    def _main(self) -> None:
        name_thread("edged-engine")
        try:
            while not self._stopping:
                self._loop()
        except BaseException as exc:
            log_event(log, logging.CRITICAL, "the engine thread died", exc_info=True, code="engine_died")
            self._on_crash(exc)

    def _loop(self) -> None:
        self.pulse.beat()
        self._wake.clear()
        while self._incoming:
            self._scheduler.add(self._incoming.popleft(), monotonic())
        while self._sent_back:
            self._rewind(*self._sent_back.popleft())
        self._scheduler.expire(monotonic())
        self._sweep()
        more = self._pour_all()
        batch = self._scheduler.choose(monotonic())
        if batch:
            self._step(batch)
        if batch or more:
            return
        look = self._scheduler.next_look()
        self.pulse.rest()
        self._wake.wait(None if look is None else max(0.0, look - monotonic()))

    def _rewind(self, job: Job, utterance: int, take: int) -> None:
        if not job.ended:
            entry = self._scheduler.find(job, monotonic())
            self._close(entry)
            outflow.send_back(entry, utterance, take)

    def _sweep(self) -> None:
        """Frees what ended jobs hold, and completes jobs whose text turned out to have no more to say."""
        for entry in self._scheduler.entries[:]:
            if entry.exhausted:
                self._complete(entry)
            elif entry.job.ended:
                self._close(entry)
                self._scheduler.remove(entry)

    def _step(self, batch: Sequence[Entry]) -> None:
        begin = monotonic()
        batch = [entry for entry in batch if self._open(entry, begin)]
        if not batch:
            return
        synthesizer = self._voices[batch[0].voice].synthesizer  # all of one pool
        try:
            pieces = synthesizer.step([e.stream for e in batch])
        except Exception as exc:
            self._fault(batch, exc)
            return
        end = monotonic()
        self.meter.step(begin, end, len(batch))
        self._scheduler.spent(batch, end - begin, end)
        for entry, piece in zip(batch, pieces, strict=True):
            line = entry.job.timeline
            line.synthesis_s += (end - begin) / len(batch)
            line.finished = end
            if piece.samples.size:
                line.produced = line.produced or end
                entry.heard_from = entry.heard_from or end
            self._deliver(entry, piece)
            if piece.last and entry.job.error is None:
                self._faults.pop(id(synthesizer), None)

    def _open(self, entry: Entry, now: float) -> bool:
        """Begins the next utterance if none is under way; False if the voice cannot, and the job failed."""
        job = entry.job
        if entry.stream is not None:
            return True
        if not job.timeline.engine:
            job.timeline.engine = now
            if job.timeline.prepared:
                self.meter.slot_wait(max(0.0, now - job.timeline.prepared))
        job.start()
        utterance = job.utterances[job.cursor]
        try:
            voice = self._speaker(entry)
            params = _params(job, utterance)
            entry.stream = voice.synthesizer.open(utterance, _own(params, voice))
            outflow.stretched(entry, params, voice.card.controls, voice.card.sample_rate, self._stretching)
        except ShapeExceeded as exc:  # the text's fault, not the engine's
            job.fail(exc)
            return False
        except Exception as exc:  # the others of the batch go on without it
            self._fault([entry], exc)
            return False
        job.cursor += 1
        entry.utterance = utterance
        entry.sounded = False
        entry.served += 1
        return True

    def _speaker(self, entry: Entry) -> Voice:
        """The voice of the next utterance. Raises `InternalError` for one that cannot speak for the job's."""
        voice = self._voices.get(entry.voice)
        rate = self._rate(entry.job)
        if voice is None or voice.card.sample_rate != rate:
            raise InternalError(f"an utterance names {entry.voice!r}, which is no voice of {rate} Hz")
        return voice

    def _bucket(self, job: Job) -> int:
        utterance = job.utterances[job.cursor]
        voice = self._voices.get(utterance.voice or job.voice)
        return voice.synthesizer.bucket(utterance, _own(_params(job, utterance), voice)) if voice else 0

    def _deliver(self, entry: Entry, piece: Piece) -> None:
        """Hands on a piece, with the marks and silences around its utterance."""
        job, utterance = entry.job, entry.utterance
        assert utterance is not None
        if piece.error is not None:
            self._close(entry)
            job.fail(piece.error)  # the next sweep takes the entry out
            return
        if piece.warning:
            job.warn(piece.warning)
        if piece.refined and job.cursor > len(job.refined):
            job.tell_refined(piece.refined)
        rate = self._rate(job)
        if not entry.sounded and (piece.samples.size or piece.last):
            entry.sounded = True
            outflow.begin(entry, utterance, rate)
        outflow.add(
            entry,
            piece.samples,
            self._chunk(rate),
            utterance.gain,
            self._voices[entry.voice].card.loudness_lufs,
            piece.last,
        )
        if piece.last:
            self._close(entry)
            outflow.end(entry, utterance, rate)
        self._pour(entry)

    def _pour_all(self) -> bool:
        """Hands on what waits behind silences; whether some of it could go on right away."""
        more = [self._pour(entry) for entry in self._scheduler.entries[:] if entry.pending]
        return any(more)

    def _pour(self, entry: Entry) -> bool:
        rate = self._rate(entry.job)
        more = outflow.pour(entry, rate, self._chunk(rate))
        if entry.finished:
            self._scheduler.remove(entry)
        return more

    def _rate(self, job: Job) -> int:
        return self._voices[job.voice].card.sample_rate

    def _chunk(self, rate: int) -> int:
        return max(1, int(rate * self._chunk_s))

    def _complete(self, entry: Entry) -> None:
        """The text ended after its last utterance was already delivered, or had none at all."""
        self._scheduler.remove(entry)
        job = entry.job
        if entry.served == 0:
            job.fail(UnspeakableText("the text has nothing to speak"))
        elif not job.ended and job.sink is not None:
            job.announce()
            job.timeline.synthesized = monotonic()
            job.sink.write(outflow.the_end(entry))

    def _close(self, entry: Entry) -> None:
        if entry.stream is None:
            return
        synthesizer, stream = self._voices[entry.voice].synthesizer, entry.stream
        entry.stream = entry.utterance = None
        if entry.stretch is not None:
            entry.stretch.close()
            entry.stretch = None
        try:
            synthesizer.close(stream)
        except Exception as exc:
            self._fault([entry], exc, synthesizer)

    def _fault(self, batch: Sequence[Entry], exc: Exception, synthesizer: Synthesizer | None = None) -> None:
        """synthesizer: whose fault it is, that of the first entry's voice where none is given."""
        if synthesizer is None and (voice := self._voices.get(batch[0].voice)) is not None:
            synthesizer = voice.synthesizer
        faulty = id(synthesizer)
        self._faults[faulty] += 1
        error = exc if isinstance(exc, EdgedError) else InternalError(f"synthesis failed: {exc!r}")
        log_event(
            log,
            logging.ERROR,
            "synthesis failed",
            exc_info=not isinstance(exc, EdgedError),
            code=error.code,
            phase="synthesis",
            # Of an engine it names tensors, shapes and files; other errors may quote what was to be spoken.
            reason=str(exc) if isinstance(exc, EngineError) else None,
            jobs=len(batch),
            voice=batch[0].voice,
        )
        for entry in batch:
            entry.job.fail(error)
        if self._faults[faulty] >= MAX_CONSECUTIVE_FAULTS:
            raise exc


def _params(job: Job, utterance: Utterance) -> Params:
    params = job.params if utterance.params is None else utterance.params
    if job.pace == 1.0:
        return params
    slowest, fastest = SPEEDS
    return replace(params, speed=min(fastest, max(slowest, params.speed * job.pace)))


def _own(params: Params, voice: Voice) -> Params:
    """What of it the voice is asked for."""
    return params if "speed" in voice.card.controls else replace(params, speed=1.0)
