"""What the client hands to an application, and how events become results or exceptions.

Pure functions and frozen data, no socket and no thread. Neighbours: `blocking` and `aio` call it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

from edged.errors import BadReply, JobCancelled, from_wire
from edged.protocol import AnyEvent, Audio, Cancelled, Done, Event, Failed

E = TypeVar("E", bound=Event)


@dataclass(frozen=True, slots=True)
class Chunk:
    """One piece of streamed mono audio: `samples` samples at `sample_rate`, encoded in `data`."""

    data: bytes = field(repr=False)
    seq: int
    samples: int
    sample_rate: int
    format: str
    last: bool


@dataclass(frozen=True, slots=True)
class Synthesis:
    """A whole synthesis: the encoded audio and the daemon's account of it."""

    data: bytes = field(repr=False)
    format: str
    sample_rate: int
    samples: int
    done: Done

    @property
    def duration_s(self) -> float:
        return self.samples / self.sample_rate if self.sample_rate else 0.0


def chunk(event: Audio, data: bytes) -> Chunk:
    return Chunk(data, event.seq, event.samples, event.sample_rate, event.format, event.last)


def join(chunks: list[Chunk], done: Done) -> Synthesis:
    """The whole audio. The daemon sends it as one piece, so nothing is copied in the usual case."""
    if not chunks:
        raise BadReply("the daemon ended the job without sending its audio")
    data = chunks[0].data if len(chunks) == 1 else b"".join(piece.data for piece in chunks)
    samples = sum(piece.samples for piece in chunks)
    return Synthesis(data, chunks[0].format, chunks[0].sample_rate, samples, done)


def checked(event: AnyEvent) -> AnyEvent:
    """The event, unless it is a bad ending: then the exception that stands for it."""
    if isinstance(event, Failed):
        raise from_wire(event.code, event.message, event.hint)
    if isinstance(event, Cancelled):
        raise JobCancelled(f"the job was cancelled{f': {event.reason}' if event.reason else ''}")
    return event


def expect(event: AnyEvent, kind: type[E]) -> E:
    """The event as `kind`, for an operation that has exactly one good answer."""
    if not isinstance(checked(event), kind):
        raise BadReply(f"expected {kind.__name__} from the daemon, but it sent {type(event).__name__}")
    return event  # type: ignore[return-value]
