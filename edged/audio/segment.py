"""One speak job's audio on its way into the ring: its queue, its resampler and its place in the ring.

`PlayerSink` is what the engine thread sees (`edged.job.Sink`). All of its state is guarded by the
player's lock, except `ready`, which only reads. Neighbours: `player` calls `pump`, `ring` takes the audio,
`recall` brings it back, `script` knows which utterance is where.
"""

from __future__ import annotations

from time import monotonic
from typing import Protocol

import numpy as np

from edged.audio.resample import Resampler
from edged.audio.ring import FADE_FRAMES, Ring
from edged.audio.script import Script
from edged.job import AudioChunk, Job, Samples
from edged.protocol import How

PIECE_S = 0.1  # audio is resampled and moved in such pieces: what is worked on with the lock held is short

_NOTHING: Samples = np.zeros(0, dtype=np.float32)


class Owner(Protocol):
    """What a sink needs of its player."""

    def may_write(self, sink: PlayerSink) -> bool: ...

    def put(self, sink: PlayerSink, chunk: AudioChunk) -> None: ...

    def drop(self, sink: PlayerSink) -> None: ...


class PlayerSink:
    """start, end: the range in the ring of what goes on there, None while not known. before: frames of the
    job's audio that were heard before `start`. left_at: how many frames the device had asked for when the
    last sample was seen to have left the ring, came_at: when the first one had, after a pause; 0 before.

    arrival: its place in the line, 0 before it had audio. paused: it waits for its resumption. how: what that
    asked for, skipping: its utterance is to be ended, both while its audio is on its way back from the ring.
    begun: something of it was heard. silent, sounding: it was paused or resumed, and nobody was told, as that
    is yet to be heard. take: how often the job was sent back; chunks of former takes are passed over.
    """

    def __init__(self, owner: Owner, job: Job, sample_rate: int, gain: float) -> None:
        self.job = job
        self.start: int | None = None
        self.end: int | None = None
        self.before = 0
        self.left_at = self.came_at = 0
        self.arrival = 0
        self.dropped = self.paused = self.begun = self.skipping = False
        self.silent = self.sounding = False
        self.how: How = "exact"
        self.take = 0
        self._owner = owner
        self._rate = sample_rate
        self._ring_rate = sample_rate
        self._gain = np.float32(gain)
        self._script = Script()
        self._resampler: Resampler | None = None
        self._block: Samples = _NOTHING  # ready for the ring
        self._flushed = False  # _block is the end of the job's audio
        self._fades = False  # it goes on within a sound
        self._faded: Samples = _NOTHING  # the first samples from `start` on, as they were before

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
        return self._script.queued / self._rate

    @property
    def has_audio(self) -> bool:
        """Something can be moved now: audio, or the job's end."""
        return bool(len(self._block) or self._script.more or (self._flushed and self.end is None))

    def queue(self, chunk: AudioChunk) -> None:
        self._script.add(chunk)

    def clear(self) -> None:
        self.dropped = True
        self._forget_block()
        self._script = Script()

    def heard(self, position: int) -> int:
        """How many frames of its audio are heard when the ring's `position` is."""
        if self.start is None:
            return self.before
        end = position if self.end is None else min(position, self.end)
        return self.before + max(0, end - self.start)

    def heard_s(self, position: int) -> float:
        return self.heard(position) / self._ring_rate

    def release(self, position: int) -> None:
        """Gives up what can no longer be asked for again, when the ring's `position` is heard."""
        self._script.forget(self.heard(position) * self._rate / self._ring_rate)

    def pump(self, ring: Ring, rate: int) -> bool:
        """Moves one piece into the ring; False when the ring is full or there is nothing to move."""
        if rate != self._ring_rate:
            self._change_rate(rate)
        while not len(self._block) and self._script.more and not self._flushed:
            self._take()
        if not (len(self._block) or self._flushed):
            return False
        if self._flushed and len(self._block) <= ring.room:
            # Before the write, so that the reader never finds the end of the audio and takes it for
            # a gap; a promise, on the other hand, is made after the write that it follows.
            ring.promised = False
        if self._fades and len(self._block):
            self._fades = False
            self._faded = self._block[:FADE_FRAMES].copy()
            ramp = np.linspace(0.0, 1.0, len(self._faded), dtype=np.float32)
            self._block = np.concatenate((self._faded * ramp, self._block[len(ramp) :]))
        at = ring.written
        moved = ring.write(self._block)
        self._block = self._block[moved:]
        if self.start is None and (moved or not len(self._block)):
            self.start = at
            line = self.job.timeline
            line.first_audio = line.first_audio or (monotonic() if moved else 0.0)
        if self._flushed and not len(self._block):
            self.end = ring.written
        elif moved:
            ring.promised = True
        return moved > 0 or self.end is not None

    def _take(self) -> None:
        piece, last = self._script.take(max(1, int(self._rate * PIECE_S)))
        if self._resampler is None:
            self._resampler = Resampler(self._rate, self._ring_rate)
        clean = np.nan_to_num(piece, nan=0.0, posinf=1.0, neginf=-1.0) * self._gain
        self._block = np.clip(self._resampler.feed(clean, last), -1.0, 1.0)
        self._flushed = last

    def _change_rate(self, rate: int) -> None:
        """Another device: what was made for the former one is made fit for it."""
        if self._resampler is not None:
            rest = self._resampler.feed(_NOTHING, last=True) if not self._flushed else _NOTHING
            self._block = Resampler(self._ring_rate, rate).feed(
                np.concatenate((self._block, rest)), last=True
            )
            self._resampler = None
        self.before = round(self.before * rate / self._ring_rate)
        self._ring_rate = rate

    # -- going back -----------------------------------------------------------------------------

    def take_back(self, at: int, audio: Samples, left: int) -> None:
        """Gets its audio in the ring again, from the position `at` on; `left` is where the listener was."""
        if self.start is None:
            return
        whole = np.concatenate((audio, self._block))
        kept = self._faded[at - self.start :]
        whole[: len(kept)] = kept[: len(whole)]
        left = min(max(left, self.start), at + len(audio))
        self._block = whole[left - at :]
        self.before += left - self.start
        self._fades = left > self.start or len(self._faded) > 0
        self.begun = self.begun or left > self.start
        self.start = self.end = None
        self._faded = _NOTHING

    def go_on(self, how: How) -> int | None:
        """Before it is heard again; the utterance from which on the job is to be spoken anew, if it is."""
        if how == "sentence" and not self._script.empty:
            where, utterance = self._script.place(self._heard_samples)
            self._return_to(utterance, where)
        elif how == "restart":
            self._forget_block()
            self._script = Script()
            self.before, self.take = 0, self.take + 1
            return 0
        return None

    def skip(self) -> int | None:
        """Leaves out the rest of the utterance; the one from which on the job is to be spoken anew, if the
        engine has not got beyond this one."""
        if self._flushed and not (len(self._block) or self._script.more):
            return None  # the end is all that is left
        _, utterance = self._script.place(self._heard_samples)
        if (following := self._script.following(utterance)) is not None:
            self._return_to(following, self._heard_samples)
        elif self._script.complete:
            self._forget_block()
            self._flushed = True
            self._script = Script()
        else:
            self._forget_block()
            self._script = Script(self._heard_samples)
            self.take += 1
            return utterance + 1
        return None

    @property
    def _heard_samples(self) -> float:
        return self.before * self._rate / self._ring_rate

    def _return_to(self, utterance: int, where: float) -> None:
        self._forget_block()
        self._script.return_to(utterance, where)
        self.before = round(where * self._ring_rate / self._rate)

    def _forget_block(self) -> None:
        self._block, self._resampler = _NOTHING, None
        self._flushed = self._fades = False
        self._faded = _NOTHING
