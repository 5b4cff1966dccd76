"""Audio on its way back to a client: encodes `synthesize` jobs off the engine thread.

Thread `edged-reply`, one for all jobs. The engine thread puts chunks into a `ReplySink`, this thread
encodes them, one piece of one job at a time, and hands `Audio` events to `emit` (the server's outbox);
it ends the job after its last. Nothing here blocks the engine: a job that is ahead of its encoding
(`AHEAD_S`), of its client (`buffer_s`) or of the memory for replies (`account`) is not `ready`, gets no
further utterance, and so holds at most that plus the one in the making. Neighbours: `outlet` (the sinks),
`encode`, the worker, the server.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from time import monotonic
from typing import cast

import numpy as np

from edged.audio.account import Account
from edged.audio.encode import Data, Encoder
from edged.audio.outlet import ReplySink
from edged.errors import InternalError, ResultTooLarge
from edged.job import AudioChunk, Job
from edged.log import event as log_event
from edged.protocol import Audio, Event
from edged.threads import name_thread

log = logging.getLogger("edged.audio")

MERGED = 4  # chunks of a whole reply that are encoded at once
AHEAD_S = 2.0  # audio of a job that waits to be encoded; more would only be memory
_FLOAT = 4  # bytes of a sample as the voice makes it
# Bytes of a piece besides its audio, from here until the socket took it: the event, its frames and objects.
# With chunks of 20 ms they are most of what a compressed stream holds.
ENVELOPE = 768

Emit = Callable[[Job, Event, "bytes | None"], None]


def _merged(queue: deque[AudioChunk]) -> AudioChunk:
    """The next chunks as one: each costs about as much to hand on as to encode, and a whole reply shows
    no seams."""
    chunks = [queue.popleft() for _ in range(min(len(queue), MERGED))]
    return AudioChunk(np.concatenate([c.samples for c in chunks]), chunks[-1].last)


class Replies:
    """The encoder thread and the queues of its sinks. reply_bytes: kept for clients, over all jobs."""

    def __init__(
        self,
        emit: Emit,
        wake: Callable[[], None],
        buffer_s: float,
        reply_bytes: int = 64 << 20,
        on_underrun: Callable[[], None] = lambda: None,
    ) -> None:
        """on_underrun: called when a piece of a stream comes too late for one who plays it at once."""
        self.buffer_s = buffer_s
        self._on_underrun = on_underrun
        self._emit = emit
        self._wake = wake
        self._lock = threading.Lock()  # guards all that follows, and never for longer than it takes to count
        self._changed = threading.Condition(self._lock)
        self._account = Account(reply_bytes)
        self._busy: dict[ReplySink, None] = {}  # sinks with something to encode
        self._dropped: deque[ReplySink] = deque()  # sinks whose encoder is to be freed
        self._refused = False  # since the last `wake`, a sink was not ready
        self._stopping = False
        self._arrivals = 0  # server thread only
        self._thread = threading.Thread(target=self._run, name="edged-reply", daemon=True)
        self._thread.start()

    def sink(self, job: Job, format: str, source_rate: int, target_rate: int, stream: bool) -> ReplySink:
        """The sink of a job. Raises `UnsupportedFormat`; target_rate 0 is the voice's own."""
        self._arrivals += 1
        encoder = Encoder(format, source_rate, target_rate, whole=not stream)
        return ReplySink(self, job, encoder, source_rate, self._arrivals)

    def close(self, timeout_s: float = 5.0) -> None:
        """Stops the thread; what is still queued is not delivered."""
        with self._lock:
            self._stopping = True
            self._changed.notify()
        self._thread.join(timeout_s)

    # -- called by sinks ------------------------------------------------------------------------

    def ready(self, sink: ReplySink) -> bool:
        with self._lock:
            ready = self._may_write(sink)
            self._refused |= not ready
            return ready

    def put(self, sink: ReplySink, chunk: AudioChunk) -> None:
        with self._lock:
            if not sink.aborted:
                sink.raw += len(chunk.samples)
                sink.queue.append(chunk)
                self._busy[sink] = None
                self._changed.notify()

    def deliver(self, sink: ReplySink, samples: int) -> None:
        with self._lock:
            if sink.aborted or not sink.emitted:
                return
            if not sink.encoder.whole:
                sink.unsent -= samples
            wake = self._release(sink, sink.emitted.popleft())
        if wake:
            self._wake()

    def drop(self, sink: ReplySink) -> None:
        with self._lock:
            if sink.aborted:
                return
            sink.aborted = True
            sink.raw = sink.unsent = 0
            sink.queue.clear()
            sink.emitted.clear()
            self._busy.pop(sink, None)
            self._dropped.append(sink)
            self._changed.notify()
        self._wake()

    # -- under the lock -------------------------------------------------------------------------

    def _may_write(self, sink: ReplySink) -> bool:
        if sink.raw > AHEAD_S * sink.source_rate or not self._account.room(sink.holding):
            return False
        if sink.encoder.whole:
            return True
        # In bytes as well: what the client asked for can be eight times as large as what the voice makes.
        most = self.buffer_s * sink.source_rate * _FLOAT
        return sink.pending_s <= self.buffer_s and sink.holding.nbytes <= most

    def _release(self, sink: ReplySink, nbytes: int) -> bool:
        """Gives bytes back to the account; True when the worker is to be woken."""
        self._account.release(sink.holding, nbytes)
        self._changed.notify()
        wake, self._refused = self._refused, False
        return wake

    def _pick(self) -> ReplySink | None:
        """Whose next piece is encoded: the scheduler's order, among those that may add to the account."""
        return min(
            (sink for sink in self._busy if self._account.room(sink.holding)),
            key=lambda sink: (sink.job.priority, sink.encoded, sink.arrival),
            default=None,
        )

    # -- the thread -----------------------------------------------------------------------------

    def _run(self) -> None:
        name_thread("edged-reply")
        while (work := self._next()) is not None:
            sink, chunk = work
            try:
                if chunk is None:
                    self._free(sink)
                elif not sink.job.ended:
                    self._encode(sink, chunk)
            except Exception as exc:  # whatever an encoder does, the other jobs go on
                message = f"encoding {sink.encoder.format} failed: {type(exc).__name__}"
                log_event(
                    log,
                    logging.ERROR,
                    message,
                    exc_info=True,
                    job=sink.job.id,
                    code="encoding_failed",
                    phase="delivery",
                )
                sink.job.fail(InternalError(message))

    def _next(self) -> tuple[ReplySink, AudioChunk | None] | None:
        """Waits for a sink and its next chunk, None for one that was dropped; None after `close`."""
        with self._lock:
            while not self._stopping:
                if self._dropped:  # first: it gives memory back and costs little
                    return self._dropped.popleft(), None
                sink = self._pick()
                if sink is not None:
                    chunk = _merged(sink.queue) if sink.encoder.whole else sink.queue.popleft()
                    if not sink.queue:
                        del self._busy[sink]
                    return sink, chunk
                self._changed.wait()
            return None

    def _free(self, sink: ReplySink) -> None:
        try:
            sink.encoder.close()
        finally:
            with self._lock:
                wake = self._release(sink, sink.holding.nbytes)
            if wake:
                self._wake()

    def _encode(self, sink: ReplySink, chunk: AudioChunk) -> None:
        encoder = sink.encoder
        volume = sink.job.params.volume
        data: Data = encoder.feed(chunk.samples if volume == 1.0 else chunk.samples * np.float32(volume))
        if chunk.last:
            rest = encoder.finish()
            data = data + rest if data else rest  # never a second copy of a whole reply
        sink.encoded += 1
        emits = bool(data) or chunk.last
        size = encoder.kept + len(data)
        with self._lock:
            if sink.aborted:
                return
            if not encoder.whole:
                size += ENVELOPE if emits else 0
            self._account.add(sink.holding, size - sink.holding.nbytes if encoder.whole else size)
            # From here the client is what a stream waits for: the samples of this piece are pending until
            # `sent`. What the encoder holds back is not, or a small buffer would wait for itself.
            sink.raw -= len(chunk.samples)
            if emits:
                sink.emitted.append(len(data) if encoder.whole else len(data) + ENVELOPE)
                sink.unsent += 0 if encoder.whole else encoder.samples - sink.announced
            wake = self._refused and self._may_write(sink)
            if wake:
                self._refused = False
        if encoder.whole and size > self._account.share:
            sink.job.fail(self._too_large(size))
            return
        if emits:
            self._send(sink, data, chunk.last)
        if chunk.last:
            sink.job.done()
        if wake:  # after the audio was sent, which somebody waits for
            self._wake()

    def _too_large(self, size: int) -> ResultTooLarge:
        made, most = (f"{count / (1 << 20):.1f} MB" for count in (size, self._account.share))
        return ResultTooLarge(f"the audio has {made} so far, the limit for a whole result is {most}")

    def _send(self, sink: ReplySink, data: Data, last: bool) -> None:
        if sink.job.ended:
            return
        now = monotonic()
        if not sink.job.timeline.first_audio:
            sink.job.timeline.first_audio = now
        if sink.ran_dry(now):
            self._on_underrun()
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
        # A bytearray from here on is as good as bytes: nobody keeps it to write to it.
        self._emit(sink.job, event, cast(bytes, data))
