"""The ring between the player thread (the one writer) and the PortAudio callback (the one reader).

Positions are absolute: they count frames since the ring was made and never go back, so a job's audio is
the range [start, end) for ever and no index needs a lap number. Each position has exactly one thread
that stores it, and storing a Python int (or tuple) is atomic; that is all the synchronisation there is.
The reader never locks, logs or makes an array: it copies, multiplies in place and stores ints.
Neighbours: `segment` writes, `output` reads, `line` cuts, `player` rewinds, `fader` sets how loud it is read.
"""

from __future__ import annotations

import numpy as np

from edged.audio.fader import Fader
from edged.job import Samples

FADE_FRAMES = 240  # 5 ms at 48 kHz: long enough not to click, too short to be heard as speech
JUMPS = 8  # cuts whose ends are remembered


class Ring:
    """`frames` x `channels` of float32, allocated and touched once.

    The last `keep` frames that were read are not overwritten, so that they can be played again (`rewind`).
    Mono audio goes to the first two channels (or the only one); what a device has beyond those stays
    silent, since a centre or low-frequency loudspeaker is no place for a second copy.
    """

    def __init__(
        self,
        frames: int,
        channels: int,
        keep: int = 0,
        memory: Samples | None = None,
        fader: Fader | None = None,
    ) -> None:
        """memory: at least frames x channels values of it are used, where it has as many."""
        self.frames = frames
        self.channels = channels
        self.keep = keep
        self.promised = False  # set by the writer: more audio of the open segment is to come
        self.underruns = 0  # times the reader ran dry although audio was promised
        self.starved_frames = 0  # frames of silence it had to play then
        if memory is None or memory.size < frames * channels:
            memory = np.empty(frames * channels, np.float32)
        self._buffer: Samples = memory.reshape(-1)[: frames * channels].reshape(frames, channels)
        self._buffer.fill(0.0)
        self._spoken = self._buffer[:, : min(channels, 2)]
        self._falling: Samples = np.arange(FADE_FRAMES - 1, -1, -1, dtype=np.float32)[:, np.newaxis]
        self._ramp: Samples = np.empty((FADE_FRAMES, 1), np.float32)
        self._written = 0  # stored by the writer only
        self._read = 0  # stored by the reader only
        self._cuts: tuple[tuple[int, int], ...] = ()  # stored by the writer's side only
        # Jobs that are heard at a level of their own: start, end, a factor from 0 to 1; the writer's.
        self.levels: tuple[tuple[int, int, float], ...] = ()
        self._floor = 0  # no rewinding to before here; stored by the writer's side only
        self._jumps: tuple[tuple[int, int], ...] = ()  # the last ones, from where to where; the reader's
        self._starving = False
        self._fader = Fader() if fader is None else fader

    @property
    def written(self) -> int:
        return self._written

    @property
    def read(self) -> int:
        """Everything before this position has been handed to the device or was cut out."""
        return self._read

    @property
    def room(self) -> int:
        return max(0, self.frames - self.keep - (self._written - self._read))

    @property
    def backlog(self) -> int:
        """Frames that will be played before one that is written now."""
        read, written = self._read, self._written
        cut = sum(max(0, min(end, written) - max(start, read)) for start, end in self._cuts)
        return max(0, written - read - cut)

    @property
    def cutting(self) -> bool:
        """The reader is about to jump, and then there will be room."""
        return any(end > self._read for _, end in self._cuts)

    # -- the writer's side ----------------------------------------------------------------------

    def write(self, samples: Samples) -> int:
        """Copies as much mono audio (or frames x channels) as there is room for; returns how much."""
        count = min(len(samples), self.room)
        target = self._spoken if samples.ndim == 1 else self._buffer
        source = samples[:count, np.newaxis] if samples.ndim == 1 else samples[:count]
        at = self._written % self.frames
        first = min(count, self.frames - at)
        target[at : at + first] = source[:first]
        target[: count - first] = source[first:]
        self._written += count  # last: the reader may use the frames from here on
        return count

    def cut(self, start: int, end: int) -> None:
        """Takes [start, end) out: the reader jumps over what it has not read of it.

        A range, not just a position to jump to, because a job can be cancelled while its audio lies
        in the ring behind that of another job, which must be heard to its end. Callers of `cut` must
        exclude each other and the writer.
        """
        end = min(end, self._written)
        self._floor = max(self._floor, end)
        read = self._read
        if end <= max(start, read):
            return
        # In order and apart, as the reader takes them one after the other.
        apart: list[tuple[int, int]] = []
        for cut in sorted((*(cut for cut in self._cuts if cut[1] > read), (start, end))):
            if apart and cut[0] < apart[-1][1]:
                apart[-1] = (apart[-1][0], max(cut[1], apart[-1][1]))
            else:
                apart.append(cut)
        self._cuts = tuple(apart)

    def copy(self, start: int, end: int) -> Samples:
        """The mono audio of [start, end), which was not overwritten yet. Must exclude the writer."""
        return np.concatenate([span[:, 0] for span in self._spans(start, end)])

    def left(self, start: int, end: int) -> int | None:
        """Where the reader left [start, end), which was cut out; None while it has not passed it."""
        if self._read < end:
            return None
        for left, to in self._jumps:
            if left < end <= to:
                return max(left, start)
        return end

    def _spans(self, start: int, end: int) -> tuple[Samples, Samples]:
        at = start % self.frames
        first = min(end - start, self.frames - at)
        return self._spoken[at : at + first], self._spoken[: end - start - first]

    def skip_to(self, position: int) -> None:
        """Takes out everything before `position`."""
        self.cut(self._read, position)

    def reset(self) -> None:
        """Forgets what was not read. Only while there is no reader."""
        self._cuts = ()
        self._jumps = (*self._jumps[1 - JUMPS :], (self._read, self._written))
        self._read = self._floor = self._written
        self.promised = self._starving = False

    def rewind(self, frames: int) -> None:
        """The last `frames` that were read will be read again, but nothing that was cut out.

        Only while there is no reader; it must exclude the writer and `cut`, too.
        """
        oldest = max(self._read - frames, self._written - self.frames, self._floor)
        self._read = min(self._read, oldest)

    # -- the reader's side: the PortAudio callback ----------------------------------------------

    def read_into(self, out: Samples) -> int:
        """Fills `out` (frames x channels), with silence where there is no audio; returns the audio frames."""
        wanted = len(out)
        filled = 0
        read = self._read
        # The order matters: a cut ends at or before the `written` of its time, so with `written` loaded
        # after `_cuts` no jump can pass it.
        cuts = self._cuts
        written = self._written
        level = 1.0
        for start, end, factor in self.levels:
            if start <= read < end:
                level = factor
        for start, end in cuts:
            if end <= read:
                continue
            if start < read:  # this audio is being heard: let it die away
                count = min(FADE_FRAMES, end - read, wanted - filled)
                self._copy(read, out, filled, count)
                faded = out[filled : filled + count]
                ramp = self._ramp[:count]
                np.multiply(self._falling[FADE_FRAMES - count :], 1.0 / max(1, count - 1), out=ramp)
                np.multiply(faded, ramp, out=faded)
                filled += count
            else:
                count = min(start - read, wanted - filled)
                self._copy(read, out, filled, count)
                filled += count
                if read + count < start:
                    read += count
                    break  # `out` is full before the cut is reached
            self._jumps = (*self._jumps[1 - JUMPS :], (max(start, read), end))
            read = end
        count = min(written - read, wanted - filled)
        self._copy(read, out, filled, count)
        filled += count
        self._read = read + count
        out[filled:] = 0.0
        self._fader.apply(out, filled, level)
        if filled < wanted and self.promised:
            self.starved_frames += wanted - filled
            if not self._starving:
                self.underruns += 1
            self._starving = True
            return filled
        self._starving = False
        return filled

    def _copy(self, position: int, out: Samples, offset: int, count: int) -> None:
        at = position % self.frames
        first = min(count, self.frames - at)
        out[offset : offset + first] = self._buffer[at : at + first]
        out[offset + first : offset + count] = self._buffer[: count - first]
