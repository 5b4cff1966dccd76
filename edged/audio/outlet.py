"""Where the audio of one `synthesize` job goes: its queue and counters.

Made by `reply`, which owns the thread that empties the queue and the lock that guards it; the worker
writes, the server reports what the socket took.
"""

from __future__ import annotations

from collections import deque
from typing import Protocol

from edged.audio.account import Holding
from edged.audio.encode import Encoder
from edged.job import AudioChunk, Job


class Queue(Protocol):
    """`Replies`, as its sinks see it."""

    def ready(self, sink: ReplySink) -> bool: ...

    def put(self, sink: ReplySink, chunk: AudioChunk) -> None: ...

    def deliver(self, sink: ReplySink, samples: int) -> None: ...

    def drop(self, sink: ReplySink) -> None: ...


class ReplySink:
    """One job's audio. `write` and `ready`: engine thread; `sent`: server; `abort`: any thread."""

    def __init__(self, replies: Queue, job: Job, encoder: Encoder, source_rate: int, arrival: int) -> None:
        self.job = job
        self.encoder = encoder
        self.sample_rate = encoder.rate
        self.source_rate = source_rate
        self.arrival = arrival
        # Reply thread only.
        self.seq = 0
        self.encoded = 0  # chunks
        self.announced = 0  # samples (at the encoder's rate) that events have told the client of
        self._heard_from = 0.0  # when one who plays the stream at once would have begun; pauses moved it on
        # Guarded by the lock of `Replies`.
        self.aborted = False
        self.queue: deque[AudioChunk] = deque()
        self.raw = 0  # samples written and not encoded, at the voice's rate
        self.unsent = 0  # samples of a stream that were emitted and not taken, at the encoder's rate
        self.emitted: deque[int] = deque()  # bytes of each piece that was emitted and not taken
        self.holding = Holding(encoder.whole)
        self._replies = replies

    @property
    def pending_s(self) -> float:
        """Seconds of audio written and not delivered; a whole reply counts as delivered when encoded."""
        return self.raw / self.source_rate + self.unsent / self.sample_rate

    def ran_dry(self, now: float) -> bool:
        """Whether one who plays the stream from its first piece on was kept waiting for the next one, which
        is about to be sent. A client that left earlier pieces unread has them to play."""
        if self.encoder.whole:
            return False
        if self.seq == 0:
            self._heard_from = now
            return False
        behind = self.unsent > self.encoder.samples - self.announced
        late_s = now - (self._heard_from + self.announced / self.sample_rate)
        if behind or late_s <= 0.0:
            return False
        self._heard_from += late_s
        return not self.job.open  # the gap is most likely its client's, who had no more to say

    def ready(self) -> bool:
        return self._replies.ready(self)

    def write(self, chunk: AudioChunk) -> None:
        self._replies.put(self, chunk)

    def sent(self, samples: int) -> None:
        """A piece of `samples` samples (the event's own number) is off our hands: taken, or dropped."""
        self._replies.deliver(self, samples)

    def abort(self) -> None:
        self._replies.drop(self)
