"""Audio on its way back to a client: encodes `synthesize` jobs off the engine thread.

Thread `edged-reply`, one for all jobs. The engine thread puts chunks into a `ReplySink`, this thread
encodes them and hands `Audio` events to `emit` (the server's outbox), and ends the job after its last.
The queue is bounded by readiness: a job with more than `buffer_s` seconds undelivered gets no further
utterance, so it holds at most that plus the one in the making. Neighbours: `encode`, the worker, the server.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from time import monotonic

import numpy as np

from edged.audio.encode import Encoder
from edged.errors import InternalError
from edged.job import AudioChunk, Job
from edged.protocol import Audio, Event

log = logging.getLogger("edged.audio")

Emit = Callable[[Job, Event, "bytes | None"], None]


class ReplySink:
    """One job's audio. `write` and `ready`: engine thread; `sent`: server; `abort`: any thread."""

    def __init__(self, replies: Replies, job: Job, encoder: Encoder, source_rate: int) -> None:
        self.job = job
        self.encoder = encoder
        self.sample_rate = encoder.rate
        self.seq = 0
        self.announced = 0  # samples (at the encoder's rate) that events have told the client of
        self.aborted = False
        self.pending_s = 0.0  # written and not delivered; guarded by the lock of `Replies`
        self._replies = replies
        self._source_rate = source_rate

    def ready(self) -> bool:
        return self.pending_s <= self._replies.buffer_s

    def write(self, chunk: AudioChunk) -> None:
        self._replies.put(self, chunk, len(chunk.samples) / self._source_rate)

    def sent(self, samples: int) -> None:
        """The socket took a piece of `samples` samples (the event's own number)."""
        if not self.encoder.whole:
            self._replies.deliver(self, samples / self.sample_rate)

    def abort(self) -> None:
        self._replies.drop(self)


class Replies:
    """The encoder thread and its queue."""

    def __init__(self, emit: Emit, wake: Callable[[], None], buffer_s: float) -> None:
        self.buffer_s = buffer_s
        self._emit = emit
        self._wake = wake
        self._changed = threading.Condition()
        self._queue: deque[tuple[ReplySink, AudioChunk | None, float]] = deque()  # None: free the encoder
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="edged-reply", daemon=True)
        self._thread.start()

    def sink(self, job: Job, format: str, source_rate: int, target_rate: int, stream: bool) -> ReplySink:
        """The sink of a job. Raises `UnsupportedFormat`; target_rate 0 is the voice's own."""
        return ReplySink(self, job, Encoder(format, source_rate, target_rate, whole=not stream), source_rate)

    def close(self, timeout_s: float = 5.0) -> None:
        """Stops the thread; what is still queued is not delivered."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        self._thread.join(timeout_s)

    # -- called by sinks ------------------------------------------------------------------------

    def put(self, sink: ReplySink, chunk: AudioChunk, seconds: float) -> None:
        with self._changed:
            if not sink.aborted:
                sink.pending_s += seconds
                self._queue.append((sink, chunk, seconds))
                self._changed.notify()

    def deliver(self, sink: ReplySink, seconds: float) -> None:
        with self._changed:
            if sink.aborted:
                return
            was_ready = sink.ready()
            sink.pending_s -= seconds
            now_ready = sink.ready()
        if now_ready and not was_ready:
            self._wake()

    def drop(self, sink: ReplySink) -> None:
        with self._changed:
            if sink.aborted:
                return
            sink.aborted = True
            sink.pending_s = 0.0
            self._queue = deque(entry for entry in self._queue if entry[0] is not sink)
            self._queue.append((sink, None, 0.0))
            self._changed.notify()
        self._wake()

    # -- the thread -----------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            with self._changed:
                while not (self._queue or self._stopping):
                    self._changed.wait()
                if self._stopping:
                    return
                sink, chunk, seconds = self._queue.popleft()
            try:
                if chunk is None:
                    sink.encoder.close()
                elif not sink.job.ended:
                    self._encode(sink, chunk, seconds)
            except Exception as exc:  # whatever an encoder does, the other jobs go on
                log.exception("job %s: encoding %s failed", sink.job.id, sink.encoder.format)
                message = f"encoding {sink.encoder.format} failed: {type(exc).__name__}"
                sink.job.fail(InternalError(message))

    def _encode(self, sink: ReplySink, chunk: AudioChunk, seconds: float) -> None:
        encoder = sink.encoder
        data = encoder.feed(chunk.samples * np.float32(sink.job.params.volume))
        if chunk.last:
            data += encoder.finish()
        if encoder.whole:
            self.deliver(sink, seconds)
            if chunk.last:
                self._send(sink, data, last=True)
                sink.job.done()
            return
        # From here the client is what the job waits for: the samples of this piece are pending until
        # `sent`. What the encoder holds back is not, or a small buffer would wait for itself.
        samples = encoder.samples - sink.announced if data or chunk.last else 0
        self.deliver(sink, seconds - samples / encoder.rate)
        if data or chunk.last:
            self._send(sink, data, chunk.last)
        if chunk.last:
            sink.job.done()

    def _send(self, sink: ReplySink, data: bytes, last: bool) -> None:
        if sink.job.ended:
            return
        if not sink.job.timeline.first_audio:
            sink.job.timeline.first_audio = monotonic()
        event = Audio(
            id=sink.job.client_id,
            job=sink.job.id,
            seq=sink.seq,
            samples=sink.encoder.samples - sink.announced,
            sample_rate=sink.sample_rate,
            format=sink.encoder.format,
            last=last,
        )
        sink.seq += 1
        sink.announced = sink.encoder.samples
        self._emit(sink.job, event, data)
