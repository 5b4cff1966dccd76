"""One speak job's audio on its way into the ring: its queue, gain, resampler, limiter and place in the ring.

`PlayerSink` is what the engine thread sees (`edged.job.Sink`). All of its state is guarded by the
player's lock, except `ready`, which only reads. Neighbours: `player` calls `pump`, `ring` takes the audio.
"""

from __future__ import annotations

from collections import deque
from time import monotonic
from typing import Protocol

import numpy as np

from edged.audio.fader import Fader
from edged.audio.level import gain_to
from edged.audio.limiter import Limiter
from edged.audio.resample import Resampler
from edged.audio.ring import Ring
from edged.job import AudioChunk, Job, Samples

PIECE_S = 0.1  # audio is resampled and moved in such pieces: what is worked on with the lock held is short


class Owner(Protocol):
    """What a sink needs of its player."""

    @property
    def fader(self) -> Fader: ...

    def may_write(self, sink: PlayerSink) -> bool: ...

    def put(self, sink: PlayerSink, chunk: AudioChunk) -> None: ...

    def drop(self, sink: PlayerSink) -> None: ...


class PlayerSink:
    """start, end: the job's range in the ring, None while not known. left_at: how many
    frames the device had asked for when the last sample was seen to have left the ring, 0 before. take: how
    often the job was sent back; chunks of former takes are passed over. target_lufs: what the voices of the
    job are brought to."""

    def __init__(self, owner: Owner, job: Job, sample_rate: int, target_lufs: float) -> None:
        self.job = job
        self.start: int | None = None
        self.end: int | None = None
        self.left_at = 0
        self.dropped = False
        self.take = 0
        self._from = 0  # the utterance that this take begins with
        self._places: list[tuple[int, int]] = []  # where an utterance begins in the ring
        self._spoken = 0  # the utterance of the block
        self._owner = owner
        self._rate = sample_rate
        self._target_lufs = target_lufs
        self._boost = owner.fader.boost  # of the last sample taken
        self._chunks: deque[AudioChunk] = deque()
        self._queued = 0  # samples in _chunks that were not taken yet
        self._taken = 0  # samples taken of the first chunk
        self._resampler: Resampler | None = None
        self._limiter: Limiter | None = None
        self._block: Samples = np.zeros(0, dtype=np.float32)  # ready for the ring
        self._flushed = False  # _block is the end of the job's audio

    # -- the engine's side (edged.job.Sink) -----------------------------------------------------

    def ready(self) -> bool:
        return self._owner.may_write(self)

    def write(self, chunk: AudioChunk) -> None:
        self._owner.put(self, chunk)

    def abort(self) -> None:
        self._owner.drop(self)

    # -- the player's side, with its lock held --------------------------------------------------

    @property
    def queued_s(self) -> float:
        return self._queued / self._rate

    @property
    def has_audio(self) -> bool:
        """Something can be moved now: audio, or the job's end."""
        return bool(len(self._block) or self._chunks or (self._flushed and self.end is None))

    def queue(self, chunk: AudioChunk) -> None:
        self._chunks.append(chunk)
        self._queued += len(chunk.samples)

    def clear(self) -> None:
        self.dropped = True
        self._empty()

    def heard(self, position: int) -> int:
        """The utterance that is heard at a position of the ring: the first one while nothing is."""
        heard = self._from
        for start, utterance in self._places:
            if start > position:
                break
            heard = max(heard, utterance)  # one that was skipped is over
        return heard

    def skip(self, ring: Ring, position: int) -> bool:
        """Takes the rest of the utterance out that is heard at that position of the ring; False while nothing
        is heard."""
        if self.start is None:
            return False
        utterance = self.heard(position)
        behind = [start for start, other in self._places if other > utterance]
        written = ring.written if self.end is None else self.end
        ring.cut(self.start, min(behind, default=written))
        if not behind:
            if self.end is None:
                ring.promised = False  # until there is some of the next one
            self._from = utterance + 1
            if self._spoken <= utterance:
                self._block = self._block[:0]
        return True

    def rewind(self, utterance: int) -> None:
        """Forgets all audio; the job is spoken anew from that utterance on."""
        self.take += 1
        self.start = self.end = None
        self.left_at = 0
        self._from = self._spoken = utterance
        self._places = []
        self._resampler, self._limiter, self._flushed = None, None, False
        self._empty()

    def _empty(self) -> None:
        self._chunks.clear()
        self._queued = self._taken = 0
        self._block = self._block[:0]

    def pump(self, ring: Ring, rate: int) -> bool:
        """Moves one piece into the ring; False when the ring is full or there is nothing to move."""
        while not len(self._block) and self._chunks and not self._flushed:
            self._take(rate)
        if not (len(self._block) or self._flushed):
            return False
        if self._flushed and len(self._block) <= ring.room:
            # Before the write, so that the reader never finds the end of the audio and takes it for
            # a gap; a promise, on the other hand, is made after the write that it follows.
            ring.promised = False
        at = ring.written
        moved = ring.write(self._block)
        self._block = self._block[moved:]
        if moved and (not self._places or self._places[-1][1] != self._spoken):
            played = [place for place in self._places if place[0] <= ring.read - ring.frames]
            self._places = [*self._places[max(0, len(played) - 1) :], (at, self._spoken)]
        if self.start is None and (moved or not len(self._block)):
            self.start = at
            line = self.job.timeline
            line.first_audio = line.first_audio or (monotonic() if moved else 0.0)
        if self._flushed and not len(self._block):
            self.end = ring.written
        elif moved:
            # A gap in an open job is most likely its client's, who had no more to say.
            ring.promised = self.has_audio or not self.job.open
        return moved > 0 or self.end is not None

    def _take(self, rate: int) -> None:
        chunk = self._chunks[0]
        piece = chunk.samples[self._taken : self._taken + max(1, int(self._rate * PIECE_S))]
        self._taken += len(piece)
        self._queued -= len(piece)
        last, self._spoken = False, chunk.utterance
        if self._taken == len(chunk.samples):
            self._chunks.popleft()
            self._taken = 0
            last = chunk.last
        if self._resampler is None or self._limiter is None:
            self._resampler, self._limiter = Resampler(self._rate, rate), Limiter(rate)
        if chunk.utterance < self._from:  # it was skipped
            piece = piece[:0]
        clean = np.nan_to_num(piece, nan=0.0, posinf=1.0, neginf=-1.0) * self._gain(chunk, len(piece))
        self._block = self._limiter.feed(self._resampler.feed(clean, last), last)
        self._flushed = last

    def _gain(self, chunk: AudioChunk, count: int) -> Samples:
        """Of the next samples: the job's, the voice's, and the fader's boost, which goes to a new one in a
        straight line."""
        gain = self.job.params.volume * gain_to(self._target_lufs, chunk.loudness_lufs)
        before, self._boost = self._boost, self._owner.fader.boost
        steps = 1 if before == self._boost else count
        ramp: Samples = np.linspace(gain * before, gain * self._boost, steps, dtype=np.float32)
        return ramp
