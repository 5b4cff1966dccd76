"""One speak job's audio on its way into the ring: its queue, its resampler and its place in the ring.

`PlayerSink` is what the engine thread sees (`edged.job.Sink`). All of its state is guarded by the
player's lock, except `ready`, which only reads. Neighbours: `player` calls `pump`, `ring` takes the audio,
`recall` brings it back, `places` knows what lies where. Gains and the limiter are applied here, before the
ring; the fader's boost is the volume beyond 1.
"""

from __future__ import annotations

import sys
from collections import deque
from time import monotonic
from typing import Protocol

import numpy as np

from edged.audio.chime import Chime
from edged.audio.fader import Fader
from edged.audio.level import gain_to
from edged.audio.places import Places, Spot
from edged.audio.recall import Recall
from edged.audio.resample import Resampler
from edged.audio.ring import FADE_FRAMES, Ring
from edged.audio.shaper import Shaper
from edged.job import AudioChunk, Job, News, Resumed, Samples

PIECE_S = 0.1  # audio is resampled and moved in such pieces: what is worked on with the lock held is short

_NOTHING: Samples = np.zeros(0, dtype=np.float32)


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

    def __init__(
        self, owner: Owner, job: Job, sample_rate: int, target_lufs: float, chime: Chime | None = None
    ) -> None:
        """chime: is heard before it."""
        self.job = job
        self.start: int | None = None
        self.end: int | None = None
        self.left_at = 0
        self.dropped = False
        self.take = 0
        self._from = 0  # the utterance that this take begins with
        self._latest = 0  # the utterance of the last chunk
        self._silent = False  # it was paused, and is not heard again yet
        self._owner = owner
        self._chime = chime
        self._rate = sample_rate
        self._target_lufs = target_lufs
        self._volume = self._most = job.params.volume
        self._muted = False
        self._factor = job.params.volume * owner.fader.boost  # of the last sample taken
        self._chunks: deque[AudioChunk] = deque()
        self._queued = 0  # samples in _chunks that were not taken yet
        self._taken = 0  # samples taken of the first chunk
        self._ring: Ring | None = None  # the last one, and its rate
        self._ring_rate = sample_rate
        self._shaper: Shaper | None = None
        self._block: Samples = _NOTHING  # ready for the ring
        self._flushed = False  # _block is the end of the job's audio
        self._fades = False  # _block begins within a sound
        self._places = Places()
        self._adrift = False  # they are counted from the beginning of _block
        self._recall: Recall | None = None

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
        """Something can be moved now, or soon: audio, or the job's end."""
        inside = len(self._block) or self._recall or (self._flushed and self.end is None)
        return bool(inside or any(not chunk.mark for chunk in self._chunks))

    def queue(self, chunk: AudioChunk) -> None:
        self._chunks.append(chunk)
        self._queued += len(chunk.samples)
        self._latest = max(self._latest, chunk.utterance)

    def clear(self) -> None:
        self.dropped = True
        self._recall = None
        self._empty()

    def _empty(self) -> None:
        self._chunks.clear()
        self._queued = self._taken = 0
        self._forget_block()

    def _forget_block(self) -> None:
        self._block, self._flushed, self._fades = _NOTHING, False, False
        self._shaper = None

    # -- into the ring --------------------------------------------------------------------------

    def pump(self, ring: Ring, rate: int) -> bool:
        """Moves one piece into the ring; False when the ring is full or there is nothing to move."""
        if not self.settle(ring):
            return False
        self._use(ring, rate)
        if self._chime is not None and any(len(chunk.samples) for chunk in self._chunks):
            self._block, self._chime = self._chime.at(rate), None
        while not len(self._block) and self._chunks and not self._flushed:
            self._take(ring)
        if not (len(self._block) or self._flushed):
            return False
        if self._flushed and len(self._block) <= ring.room:
            # Before the write, so that the reader never finds the end of the audio and takes it for
            # a gap; a promise, on the other hand, is made after the write that it follows.
            ring.promised = False
        if self._fades:
            self._fades = False
            count = min(FADE_FRAMES, len(self._block))
            self._block[:count] *= np.linspace(0.0, 1.0, count, dtype=np.float32)
        self._land(ring)
        at = ring.written
        moved = ring.write(self._block)
        self._block = self._block[moved:]
        self._places.forget_before(ring.read - ring.frames)
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

    def _take(self, ring: Ring) -> None:
        chunk = self._chunks[0]
        piece = chunk.samples[self._taken : self._taken + max(1, int(self._rate * PIECE_S))]
        time_s = chunk.time_s + self._taken / self._rate
        self._taken += len(piece)
        self._queued -= len(piece)
        last = False
        if self._taken == len(chunk.samples):
            self._chunks.popleft()
            self._taken = 0
            last = chunk.last
        self._shaper = self._shaper or Shaper(self._rate, self._ring_rate)
        self._land(ring)
        position = ring.written + self._shaper.held  # what it holds back comes first
        if chunk.utterance < self._from:  # it was skipped
            piece = piece[:0]
        elif chunk.mark:
            self._places.mark(position, chunk.mark, chunk.time_s)
        elif len(piece):
            self._places.add(Spot(position, chunk.utterance, time_s))
        clean = np.nan_to_num(piece, nan=0.0, posinf=1.0, neginf=-1.0) * self._gain(chunk, len(piece))
        self._block = self._shaper.feed(clean, last)
        self._flushed = last

    def _gain(self, chunk: AudioChunk, count: int) -> Samples:
        """Of the next samples: the voice's, the job's, and the fader's boost; it goes to a new one in a
        straight line."""
        if not count:
            return _NOTHING
        voice = gain_to(self._target_lufs, chunk.loudness_lufs)
        before, self._factor = self._factor, self._most * self._owner.fader.boost
        steps = 1 if before == self._factor else count
        ramp: Samples = np.linspace(voice * before, voice * self._factor, steps, dtype=np.float32)
        return ramp

    def _land(self, ring: Ring) -> None:
        """What follows goes into the ring: from here on places are counted as the ring does."""
        if self._adrift:
            self._places.move(ring.written)
            self._adrift = False

    def _use(self, ring: Ring, rate: int) -> None:
        """Another ring, for another device: what was made for the former one is made fit for it."""
        former, before = self._ring, self._ring_rate
        self._ring, self._ring_rate = ring, rate
        if former is None or former is ring:
            return
        if not self._adrift:
            self._places.move(-former.written)
            self._adrift = True
        if rate == before:
            return
        self._places.move(0, rate / before)
        if self._shaper is not None and not self._flushed:
            self._block = np.concatenate((self._block, self._shaper.feed(_NOTHING, last=True)))
        self._shaper = None
        self._block = Resampler(before, rate).feed(self._block, last=True)

    # -- its volume -----------------------------------------------------------------------------

    @property
    def level(self) -> float:
        """A factor up to 1 for what is in the ring.

        A volume above the highest so far goes before the limiter: it reaches only what is not there yet."""
        if self._muted or not self._most:
            return 0.0
        return self._volume / self._most

    def set_level(self, volume: float | None = None, muted: bool | None = None) -> None:
        """None: stays as it is."""
        self._volume = self._volume if volume is None else volume
        self._most = max(self._most, self._volume)
        self._muted = self._muted if muted is None else muted

    # -- what is heard --------------------------------------------------------------------------

    def heard(self, position: int) -> int:
        """The utterance that is heard at a position of the ring: the first one while nothing is."""
        spot = self._places.at(self._own(position))
        return self._from if spot is None else max(self._from, spot.utterance)  # a skipped one is over

    def heard_s(self, position: int) -> float:
        """How much of the job's audio was heard, in seconds."""
        return self._places.time_s(self._own(position), self._ring_rate)

    def _own(self, position: int) -> int:
        """The position, as places count it."""
        if self._adrift:
            return 0
        return position if self.end is None else min(position, self.end)

    def told(self, position: int) -> list[News]:
        """What of it is to be told once the ring's `position` is heard. The start is the job's to tell."""
        if self.start is None or position <= self.start:
            return []
        news: list[News] = []
        if self._silent:
            self._silent = False
            news.append(Resumed(self._places.time_s(self.start, self._ring_rate)))
        return news + self._places.due(position)

    def next_news(self, position: int) -> int | None:
        """Frames until there is something to tell."""
        if self.start is None:
            return None
        if self._silent or position <= self.start:
            return max(1, self.start + 1 - position)
        at = self._places.next_news()
        return None if at is None else max(1, at - position)

    def silenced(self) -> bool:
        """It is paused from here on; False where it was already, or was not heard yet."""
        news = not self._silent and self.job.announced
        self._silent = self._silent or news
        return news

    # -- what people want -----------------------------------------------------------------------

    def keep(self, ring: Ring) -> None:
        """Takes out of the ring what was not heard of it, to go on there, to the sample."""
        if self._recall is not None:
            return
        if self.start is None:
            if not self._adrift:
                self._places.move(-ring.written)
                self._adrift = True
            return
        end = ring.written if self.end is None else self.end
        self._recall = Recall.of(ring, self.start, end)
        self.start = self.end = None
        self.left_at = 0

    def settle(self, read: Ring | None) -> bool:
        """Whether its audio is here; False while the reader may still be in what was taken out.

        read: the ring that has a reader."""
        if self._recall is None:
            return True
        left = self._recall.left(read)
        if left is None:
            return False
        recall, self._recall = self._recall, None
        self._block = np.concatenate((recall.audio[left - recall.at :], self._block))
        self._fades = left > recall.start
        self._places.move(-left)
        self._adrift = True
        return True

    def skip(self, ring: Ring, position: int) -> bool:
        """Takes the rest of the utterance out that is heard at that position of the ring; False while nothing
        is heard."""
        if self._recall is not None or not (self._adrift or self.start is not None):
            return False
        utterance = self.heard(position)
        if utterance > self._latest:
            return False  # the former one was skipped, and the next one is not there
        behind = self._places.behind(utterance)
        if self.start is None:
            self._block = self._block[len(self._block) if behind is None else behind :]
            self._places.move(-(behind or 0))
            self._fades = False
        else:
            written = ring.written if self.end is None else self.end
            cut = written if behind is None else min(behind, written)
            ring.cut(self.start, cut)
            self._places.forget_between(position, sys.maxsize if behind is None else behind)
            self.start = cut
            if behind is not None and behind > written:
                self._block = self._block[behind - written :]
        if behind is None:
            if self.end is None:
                ring.promised = False  # until there is some of the next one
            self._from = utterance + 1
            self._block = self._block[:0]
            self._shaper = None
        return True

    def respeak(self, ring: Ring) -> int | None:
        """Forgets what comes behind the sentence that is being read.

        The utterance from which on the job is to be spoken anew; None where nothing is there yet, or all is
        on its way."""
        if self.end is not None or self._recall is not None:
            return None
        position = ring.read + FADE_FRAMES * 8  # far enough from the reader
        utterance = self.heard(position)
        if self.start is None and not self._adrift:
            utterance = self._from - 1
        if self._latest <= utterance or not (self._chunks or self._places.behind(utterance)):
            return None
        behind = self._places.behind(utterance)
        if behind is not None:
            base = 0 if self._adrift else ring.written
            if behind < base:
                ring.cut(behind, ring.written)
            self._block = self._block[: max(0, behind - base)]
            self._places.forget_from(behind)
            self._flushed = False
            self._shaper = None
        if self._chunks and self._chunks[0].utterance > utterance:
            self._taken = 0
        self._chunks = deque(chunk for chunk in self._chunks if chunk.utterance <= utterance)
        self._queued = sum(len(chunk.samples) for chunk in self._chunks) - self._taken
        self._latest = utterance
        self.take += 1
        return utterance + 1

    def rewind(self, utterance: int) -> None:
        """Forgets all audio; the job is spoken anew from that utterance on."""
        self.take += 1
        self.start = self.end = self._recall = None
        self.left_at = 0
        self._from = self._latest = utterance
        self._places = Places()
        self._adrift = False
        self._empty()
