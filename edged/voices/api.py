"""What a voice is: a frontend that makes ids of words and a synthesizer that speaks them.

Types only. The frontend runs on the text thread, the synthesizer on the engine thread; a voice shares
nothing between the two but its bundle. One package per model family implements both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from edged.controls import COMMON
from edged.errors import EdgedError
from edged.job import Params, Samples, Utterance
from edged.text.document import Alphabet, Encoded, Said
from edged.text.split import Pauses


@dataclass(frozen=True, slots=True)
class VoiceCard:
    """What a client may know about a voice. controls: the fields of a request that steer it; markups: what
    a text for it may be written in; loudness_lufs: as it was measured, None where it was not."""

    name: str
    family: str
    languages: tuple[str, ...]
    sample_rate: int  # Hz
    description: str
    licence: str
    bundle: str
    controls: tuple[str, ...] = COMMON
    markups: tuple[str, ...] = ("plain", "ssml")
    loudness_lufs: float | None = None


class Frontend(Protocol):
    """What a voice makes of words. Text thread only.

    languages: of the words it can say, "*" for all, which are then not read; alphabets: of the phonemes it
    takes as they are; tags: tokens of its model that may stand between words. pauses: what silence it wants
    behind a sentence.
    """

    @property
    def languages(self) -> tuple[str, ...]: ...
    @property
    def alphabets(self) -> frozenset[Alphabet]: ...
    @property
    def tags(self) -> frozenset[str]: ...
    @property
    def pauses(self) -> Pauses: ...

    def encode(self, said: Sequence[Said]) -> Encoded:
        """The ids of a sentence, of any length. Linear in it."""

    def limit(self, params: Params) -> int:
        """Most ids of an utterance that is spoken like this."""

    def utterance(self, index: int, ids: Sequence[int], params: Params) -> Utterance | None:
        """The utterance of at most `limit` ids, which fits the voice's maximum shapes; None of ids without
        any sound. Raises `RequestError`."""


class Stream(Protocol):
    """One utterance being spoken: the state a slot holds. Opaque to the worker."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Output of one step for one stream. `samples` is a view, valid until the next step.

    It may be empty while a stream has nothing to hear yet. error: this utterance failed and the others of
    the step did not; the job fails with it. refined: the text of the utterance as it will be said, once it
    is known, where the job wants to show it.
    """

    samples: Samples
    last: bool
    warning: str = ""
    error: EdgedError | None = None
    refined: str = ""


class Synthesizer(Protocol):
    """Utterances to samples, in steps. Engine thread only.

    A one-pass voice finishes an utterance in one step; an autoregressive one needs many. Both step up to
    `max_batch` streams in one call, and no stream sounds different for it. Voices of one bundle may share a
    synthesizer object: then they share its `max_batch`, and one step may advance streams of several of them.
    """

    max_batch: int

    def bucket(self, utterance: Utterance, params: Params) -> int:
        """The length class of an utterance of a one-pass voice, from 1: those of one class share a call.

        0 where any may join any step, as in an autoregressive voice; such ones never wait for others.
        """

    def open(self, utterance: Utterance, params: Params) -> Stream:
        """Prepares an utterance for stepping."""

    def step(self, streams: Sequence[Stream]) -> Sequence[Piece]:
        """Advances each stream by one step and returns one piece for each, in order."""

    def close(self, stream: Stream) -> None:
        """Frees what the stream holds, ended or not."""


class Voice(Protocol):
    """A loaded voice."""

    card: VoiceCard
    frontend: Frontend
    synthesizer: Synthesizer

    def warm_up(self) -> None:
        """Runs every engine at its maximum and at common shapes, so that serving allocates nothing."""

    def close(self) -> None:
        """Frees the engines."""
