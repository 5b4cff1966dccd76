"""Prompt tokens to samples: an utterance holds a row of the generator while its codes are drawn.

Engine thread only. One call of `step` reads one piece of one waiting prompt, draws one code for every
utterance that speaks, and makes the next chunk of sound of one; so its length is bounded, and no utterance
waits for another one's. Neighbours: `generator.py` draws, `sound.py` makes samples of what was drawn.

    PROMPT --(last piece read)--> SPEAK --(ending drawn, or limit)--> TAIL --(sound of all made)--> last piece

With a refine stage, an utterance first reads another prompt and draws words (REFINE), then begins again at
PROMPT with a text made of them; `refine.py` has the rules. A step draws one word for each such utterance.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from edged.errors import BrokenSound, EdgedError, EmptySpeech, EngineError, ShapeExceeded
from edged.job import Params, Samples, Utterance
from edged.voices.api import Piece, Stream
from edged.voices.chattts.data import Sampling
from edged.voices.chattts.generator import Generator, prompt_rows
from edged.voices.chattts.refine import Refinement, Refiner, Vocabulary
from edged.voices.chattts.sound import Sound, Track
from edged.voices.chattts.utterance import ChatUtterance
from edged.voices.chattts.windows import Window

RUNAWAY = "a sentence found no ending and was cut off"
_NOTHING: Samples = np.zeros(0, np.float32)
_WAITING = Piece(_NOTHING, last=False)


class State(enum.Enum):
    PROMPT = enum.auto()
    REFINE = enum.auto()
    SPEAK = enum.auto()
    TAIL = enum.auto()
    FAILED = enum.auto()


@dataclass(frozen=True, slots=True)
class SpeakerData:
    """embedding: [hidden] of length 1, zeros where there is none; prompt: codes [steps, codebooks]."""

    embedding: NDArray[np.float32]
    prompt: NDArray[np.int64]


@dataclass(slots=True, eq=False)
class ChatStream:
    """One utterance. row: in the generator, -1 once its codes are drawn. limit: steps it may take.

    refinement: while words are drawn; refined: what came of it, until it is told.
    """

    ids: NDArray[np.int64]
    text: NDArray[np.int64]
    noise: np.random.Generator
    row: int
    track: Track
    limit: int
    speaker: SpeakerData
    sampling: Sampling
    refinement: Refinement | None = None
    refined: Refinement | None = None
    state: State = State.PROMPT
    read: int = 0
    attempts: int = 0
    warning: str = ""
    error: EdgedError | None = field(default=None, repr=False)


class ChatSynthesizer:
    """Implements `Synthesizer`; shared by all voices of a bundle."""

    def __init__(
        self,
        generator: Generator,
        sound: Sound,
        speakers: Sequence[SpeakerData],
        sampling: Sampling,
        vocabulary: Vocabulary,
        max_steps: int,
    ) -> None:
        """max_steps: of an utterance."""
        self.max_batch = generator.rows
        self.max_steps = max_steps
        self._generator = generator
        self._refiner = Refiner(generator, vocabulary)
        self._sound = sound
        self._speakers = speakers
        self._sampling = sampling
        self._seated: list[ChatStream] = []  # by row

    # -- the interface of voices/api.py ---------------------------------------------------------

    def bucket(self, utterance: Utterance, params: Params) -> int:
        return 0  # rows of any length share a step

    def open(self, utterance: Utterance, params: Params) -> Stream:
        if not self._sound.free or len(self._seated) >= self.max_batch:
            raise EngineError("more utterances at once than the voice has slots")
        if not isinstance(utterance, ChatUtterance):
            raise EngineError("an utterance of another family")
        speaker = self._speakers[utterance.speaker]
        if utterance.vector is not None:
            speaker = SpeakerData(utterance.vector, speaker.prompt[:0])
        # One generator an utterance: no job and no earlier sentence can change how this one sounds.
        noise = np.random.Generator(np.random.PCG64((params.seed, utterance.index)))
        sampling = self._sampling.asked(params)
        ids, text, limit = self._prompt(utterance.symbols, speaker)
        row = len(self._seated)
        stream = ChatStream(ids, text, noise, row, self._sound.open(), limit, speaker, sampling)
        self._seated.append(stream)
        if utterance.refine:
            stream.refinement = self._refiner.begin(row, utterance, params.show_refined)
            stream.ids, stream.text = stream.refinement.rows
        else:
            self._generator.seat(row, speaker.embedding, sampling)
        return stream

    def step(self, streams: Sequence[Stream]) -> Sequence[Piece]:
        mine = [stream for stream in streams if isinstance(stream, ChatStream)]
        waiting = next((s for s in mine if s.state is State.PROMPT), None)
        if any(s.track.chunk == 1 and s.state is State.SPEAK for s in mine):
            waiting = None  # who has heard but one chunk would wait for the second: a prompt takes 60 ms
        refining = [s for s in mine if s.state is State.REFINE]
        speaking = [s for s in mine if s.state is State.SPEAK and self._sound.room(s.track)]
        if waiting is not None:
            self._read(waiting)
        if refining:
            for stream in self._refiner.step(refining):
                self._refined(stream)
        if speaking:
            self._speak(speaking)
        pieces = [self._piece(s) for s in mine]
        # The vocoder is for the one that has the least audio ahead of its listener; last of all, because
        # its samples are a view of the buffer that its next run overwrites.
        due = [(s.track.sent, n, w) for n, s in enumerate(mine) if (w := s.track.window()) is not None]
        if due:
            _, chosen, window = min(due, key=lambda each: each[:2])
            pieces[chosen] = self._hear(mine[chosen], window)
        return pieces

    def close(self, stream: Stream) -> None:
        if isinstance(stream, ChatStream):
            self._unseat(stream)
            self._sound.close(stream.track)

    def shut(self) -> None:
        with ExitStack() as rest:  # both, whatever fails
            rest.callback(self._sound.shut)
            self._generator.close()

    def warm_up(self) -> None:
        self._sound.warm_up()
        self._generator.warm_up()
        self.close(self.open(ChatUtterance(0, (0,)), Params()))  # the first noise imports modules

    # -- prompt, speech, sound ------------------------------------------------------------------

    def _read(self, stream: ChatStream) -> None:
        rest = slice(stream.read, None)
        refine = stream.refinement is not None
        if len(stream.ids) - stream.read <= self._generator.piece:  # this run draws the first code
            self._generator.draw(stream.row, stream.noise, stream.sampling.min_steps > 0 and not refine)
        stream.read += self._generator.prompt(stream.row, stream.ids[rest], stream.text[rest], refine)
        if stream.read < len(stream.ids):
            return
        if not refine:
            stream.state = State.SPEAK
            self._take(stream, fed=False)
        elif self._refiner.take(stream, fed=False):
            self._refined(stream)
        else:
            stream.state = State.REFINE

    def _prompt(
        self, symbols: Sequence[int], speaker: SpeakerData
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
        """A code prompt as the network reads it, and the steps that are left behind it."""
        ids, text = prompt_rows(symbols, speaker.prompt, self._generator.codebooks)
        limit = min(self.max_steps, self._generator.positions - len(ids))
        if limit < 1:
            raise ShapeExceeded(f"a prompt of {len(ids)} tokens; the cache holds {self._generator.positions}")
        return ids, text, limit

    def _refined(self, stream: ChatStream) -> None:
        """The words are drawn: the row begins again, with the code prompt of them."""
        refinement = stream.refinement
        assert refinement is not None
        symbols = self._refiner.finish(refinement)
        stream.ids, stream.text, stream.limit = self._prompt(symbols, stream.speaker)
        stream.refinement, stream.refined = None, refinement
        stream.read = 0
        stream.state = State.PROMPT
        self._generator.seat(stream.row, stream.speaker.embedding, stream.sampling)

    def _speak(self, streams: Sequence[ChatStream]) -> None:
        for stream in streams:
            self._generator.draw(stream.row, stream.noise, stream.track.steps < stream.sampling.min_steps)
        rows = [stream.row for stream in streams]
        self._generator.step(min(rows), max(rows) + 1)
        for stream in sorted(streams, key=lambda s: -s.row):  # unseating moves only the rows after it
            self._take(stream, fed=True)

    def _take(self, stream: ChatStream, fed: bool) -> None:
        """What the run drew for a row: another code, an ending, or an ending before the first sound."""
        generator, row = self._generator, stream.row
        if generator.ended[row]:
            if stream.track.steps:
                self._finish(stream)
            else:
                self._retry(stream)
            return
        generator.accept(row, stream.track.steps, fed)
        self._sound.take(stream.track, generator.engine, row)
        if stream.track.steps >= stream.limit:
            stream.warning = RUNAWAY
            self._finish(stream)

    def _retry(self, stream: ChatStream) -> None:
        """The last token of the prompt is read once more, for another draw."""
        stream.attempts += 1
        if stream.attempts >= stream.sampling.attempts:
            self._fail(stream, EmptySpeech(f"an utterance ended before it began, {stream.attempts} times"))
            return
        stream.state = State.PROMPT
        stream.read -= 1
        self._generator.lengths[stream.row] -= 1

    def _fail(self, stream: ChatStream, error: EdgedError) -> None:
        stream.error = error
        stream.state = State.FAILED
        stream.track.done = True
        self._unseat(stream)

    def _finish(self, stream: ChatStream) -> None:
        stream.state = State.TAIL
        stream.track.ended = True
        self._unseat(stream)

    def _unseat(self, stream: ChatStream) -> None:
        """Frees the row; the last row takes its place, so that a run never covers empty ones."""
        if stream.row < 0:
            return
        last = self._seated.pop()
        if last is not stream:
            self._generator.move(last.row, stream.row)
            last.row = stream.row
            self._seated[last.row] = last
        stream.row = -1

    def _hear(self, stream: ChatStream, window: Window) -> Piece:
        try:
            samples = self._sound.make(stream.track, window)
        except BrokenSound as error:
            self._fail(stream, error)
            return self._piece(stream)
        return Piece(samples, last=window.last, warning=stream.warning if window.last else "")

    def _piece(self, stream: ChatStream) -> Piece:
        if stream.error is not None:
            return Piece(_NOTHING, last=True, error=stream.error)
        if stream.refined is not None:
            refined, stream.refined = stream.refined, None
            return Piece(_NOTHING, last=False, warning=refined.warning, refined=refined.text)
        return _WAITING
