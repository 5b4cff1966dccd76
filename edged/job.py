"""What a job is: the data that travels from the socket to the loudspeaker, and its one ending.

Leaf module. A `Job` is created on the server thread, filled with utterances by the text thread,
stepped by the engine thread and ended by whichever thread comes first: `Job.finish` lets exactly one
caller win, so every job ends once, in `done`, `cancelled` or `failed`.
"""

from __future__ import annotations

import enum
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from time import monotonic
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from edged.errors import EdgedError

Samples = NDArray[np.float32]


class Priority(enum.IntEnum):
    """Order of service; a smaller number is served first (the classes of speech-dispatcher)."""

    IMPORTANT = 0
    MESSAGE = 1
    TEXT = 2
    NOTIFICATION = 3
    PROGRESS = 4


class JobState(enum.Enum):
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    CANCELLED = "cancelled"
    FAILED = "failed"

    @property
    def ended(self) -> bool:
        return self in (JobState.DONE, JobState.CANCELLED, JobState.FAILED)


@dataclass(frozen=True, slots=True)
class Utterance:
    """One sentence or clause, small enough for the voice's maximum shape.

    symbols: the voice's own input ids (phonemes, characters or tokens), pads included.
    lead_s, pause_s: silence before and after it, in seconds as it is heard. marks, marks_after: names of the
    places before and after it whose times are told. voice: who speaks it, "" for the voice of the job.
    params: how, None for as the job wants it. gain: a factor on the job's volume.
    """

    index: int
    symbols: tuple[int, ...]
    pause_s: float = 0.0
    lead_s: float = 0.0
    marks: tuple[str, ...] = ()
    marks_after: tuple[str, ...] = ()
    voice: str = ""
    params: Params | None = None
    gain: float = 1.0


@dataclass(frozen=True, slots=True)
class Draw:
    """How the sounds of one language are drawn; None is as of the others."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    repetition_penalty: float | None = None


@dataclass(frozen=True, slots=True)
class Params:
    """How a job wants to be spoken. speed 1.0 is the voice's own pace; volume is a linear gain; pitch is
    in semitones up.

    None is the voice's own. What a voice has no control for is None here. oral, laugh, break_: only with
    refine. speaker: a speaker code, or "" for the voice's own. languages: by language, what differs from the
    rest. run_voices: by language, the voice that speaks stretches which the job's own cannot, or "spell".
    """

    speed: float = 1.0
    pitch: float = 0.0
    volume: float = 1.0
    seed: int = 0
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    repetition_penalty: float | None = None
    refine: bool = False
    oral: int | None = None
    laugh: int | None = None
    break_: int | None = None
    show_refined: bool = False
    speaker: str = field(default="", repr=False)
    languages: Mapping[str, Draw] = field(default_factory=dict)
    run_voices: Mapping[str, str] = field(default_factory=dict)

    def of_language(self, language: str) -> Params:
        """As these, but with what is said about the language."""
        draw = self.languages.get(language)
        if draw is None:
            return self
        asked = {f.name: v for f in fields(draw) if (v := getattr(draw, f.name)) is not None}
        return replace(self, **asked)


@dataclass(frozen=True, slots=True)
class AudioChunk:
    """Mono float32 samples at the voice's rate, owned by the receiver; `last` ends the job's audio.

    utterance: whose they are. take: how often the job had been sent back (`Sink`) when they were made.
    time_s: where they begin in the job's audio. mark: a mark of the text that comes before them.
    loudness_lufs: of the voice that speaks here, None of silence or where it was not measured.
    """

    samples: Samples
    last: bool = False
    utterance: int = 0
    take: int = 0
    time_s: float = 0.0
    mark: str = field(default="", repr=False)
    loudness_lufs: float | None = None


@dataclass(frozen=True, slots=True)
class MarkReached:
    """A mark of the text. time_s: where it is in the job's audio, in seconds."""

    name: str = field(repr=False)
    time_s: float


@dataclass(frozen=True, slots=True)
class SentenceReached:
    """The utterance with that number begins to be heard. time_s: as of `MarkReached`."""

    utterance: int
    time_s: float


@dataclass(frozen=True, slots=True)
class Paused:
    """It is silent from that time of its audio on. reason: asked, or interrupted by another job."""

    time_s: float
    reason: str


@dataclass(frozen=True, slots=True)
class Resumed:
    """It is heard again, from that time of its audio on."""

    time_s: float


News = MarkReached | SentenceReached | Paused | Resumed


class Sink(Protocol):
    """Where a job's audio goes. Called by the engine thread; never blocks."""

    def ready(self) -> bool:
        """True when another utterance may be synthesized for this job."""

    def write(self, chunk: AudioChunk) -> None:
        """Takes one chunk. The chunk with `last` makes the sink finish the job when it is delivered."""

    def abort(self) -> None:
        """The job ended early (cancelled or failed): drop what is not delivered. Any thread."""


@dataclass(slots=True)
class Timeline:
    """Monotonic times of one job in seconds, 0.0 while a moment has not come yet."""

    received: float = 0.0
    prepared: float = 0.0  # first utterance ready for the engine
    text_s: float = 0.0  # time spent preparing that first utterance
    engine: float = 0.0  # first engine step began
    produced: float = 0.0  # first engine step with audio ended
    finished: float = 0.0  # last engine step ended
    synthesized: float = 0.0  # all of its audio was handed to the sink
    first_audio: float = 0.0  # first audio handed to the socket or the loudspeaker
    ended: float = 0.0
    heard_s: float = 0.0  # audio that was heard, of a job for the loudspeaker
    synthesis_s: float = 0.0  # engine time spent on this job
    audio_s: float = 0.0  # audio produced


@dataclass(slots=True, eq=False)
class Job:
    """One request for speech, alive from admission to its ending.

    Written by one thread at a time along the pipeline; `utterances` is appended by the text thread
    and read by the engine thread (list append is atomic), `prepared_all` is set after the last append.
    """

    id: str
    client: bytes
    client_id: str
    kind: str  # "speak" or "synthesize"
    text: str
    voice: str
    params: Params
    priority: Priority
    deadline: float | None = None  # monotonic seconds by which it must have started (speak: be heard)
    timeline: Timeline = field(default_factory=Timeline)
    sink: Sink | None = None
    utterances: list[Utterance] = field(default_factory=list)
    prepared_all: bool = False
    paused: bool = False  # people want it to be; the player sets it
    aloud: bool = False  # its start and its marks are told by the loudspeaker, when they are heard
    pace: float = 1.0  # a factor on its speed from the next utterance on; the player sets it
    open: bool = False  # more text may come; the server thread sets it
    cursor: int = 0  # next utterance to synthesize
    error: EdgedError | None = None
    reason: str = ""  # why it was cancelled, where nobody asked for that
    # Of each utterance that was begun, in seconds of the job's audio.
    starts: list[float] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    skipped: int = 0  # characters that are not spoken; admission sets it, the text thread adds to it
    marks: list[tuple[str, float]] = field(default_factory=list, repr=False)  # told: name, seconds of audio
    refined: list[str] = field(default_factory=list, repr=False)  # with show_refined: sentence by sentence
    on_start: Callable[[Job], None] | None = None
    on_end: Callable[[Job], None] | None = None
    on_news: Callable[[Job, News], None] | None = None
    _announced: bool = False
    _state: JobState = JobState.QUEUED
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def state(self) -> JobState:
        return self._state

    @property
    def ended(self) -> bool:
        return self._state.ended

    @property
    def prepared(self) -> bool:
        """There is text to synthesize, or there will never be."""
        return self.prepared_all or self.cursor < len(self.utterances)

    @property
    def announced(self) -> bool:
        """Its start was told."""
        return self._announced

    @property
    def phase(self) -> str:
        """How far it is, or got: text, waiting (for the engine), synthesis, delivery; or paused."""
        line = self.timeline
        if self.paused:
            return "paused"
        if line.engine:
            return "delivery" if line.synthesized else "synthesis"
        return "waiting" if line.prepared else "text"

    def start(self) -> bool:
        """Moves a queued job to running; True for the one call that did it."""
        with self._lock:
            if self._state is not JobState.QUEUED:
                return False
            self._state = JobState.RUNNING
        if not self.params.show_refined:
            self.announce()
        return True

    def announce(self, heard: bool = False) -> None:
        """Engine thread: tells the start, once. With show_refined that is when the first sentence is refined,
        or when there is something to hear that no voice has refined.

        heard: the player, of an `aloud` job: its first sample is heard."""
        if not self._announced and heard >= self.aloud:
            self._announced = True
            if self.on_start is not None:
                self.on_start(self)

    def tell_refined(self, text: str) -> None:
        """Engine thread: the next sentence as it will be said. The first one is told with the start."""
        self.refined.append(text)
        self.announce()

    def tell(self, news: News) -> None:
        """Whoever delivers it: what happened on the way to its listener."""
        if isinstance(news, MarkReached):
            self.marks.append((news.name, news.time_s))
        if self.on_news is not None and not self.ended:
            self.on_news(self, news)

    def warn(self, text: str) -> None:
        """Text or engine thread: a warning for the client, which is told each one once."""
        if text not in self.warnings:
            self.warnings.append(text)

    def finish(self, state: JobState, error: EdgedError | None = None) -> bool:
        """Ends the job; True for the one caller whose ending counts.

        The winner tells the sink (unless the job is done, when the sink itself called) and `on_end`.
        """
        with self._lock:
            if self._state.ended:
                return False
            self._state = state
            self.error = error
            self.timeline.ended = monotonic()
        if self.sink is not None and state is not JobState.DONE:
            self.sink.abort()
        if self.on_end is not None:
            self.on_end(self)
        return True

    def done(self) -> bool:
        return self.finish(JobState.DONE)

    def cancel(self, reason: str = "") -> bool:
        if not self.ended:
            self.reason = reason
        return self.finish(JobState.CANCELLED)

    def fail(self, error: EdgedError) -> bool:
        return self.finish(JobState.FAILED, error)
