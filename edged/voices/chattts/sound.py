"""Hidden states to samples, window by window: the vocoder, and for each utterance what it needs of the past.

Engine thread only. A lane is a ring of the hidden states that a window may still need. Beside it lie what the
vocoder's convolutions keep, and the samples after the end of the last chunk, into which the next one is
faded, so that no seam is heard where two windows differ a little. Everything is allocated at the start.
Neighbours: `synth.py` feeds it and chooses whose turn it is; `windows.py` says what is in a window.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edged.engine.api import Engine, TensorSpec
from edged.engine.buffers import Arena
from edged.errors import BrokenSound, EngineError
from edged.job import Samples
from edged.voices.chattts import windows
from edged.voices.chattts.windows import AHEAD, LEFT, LONGEST, Window

HOP = 256  # samples from mel frame to mel frame
STEP = 2 * HOP  # samples of a decoder step
LEAD = 2  # frames before a window that are heard in its samples, because the inverse transform overlaps
FADE = HOP  # samples in which one window takes over from the one before
WAITING = 16  # steps that may be drawn while a window waits for the vocoder; then the utterance waits, too
RING = LEFT + LONGEST + WAITING  # steps of a lane
HIDDEN = "hidden"  # output of the decoder network, input of the vocoder

Floats = NDArray[np.float32]


class Vocoder:
    """The engine, with its inputs named. resumes: it keeps what it needs of earlier windows, a row a track;
    those of bundles of before do not, and get some steps before the window again. fixed: the samples of a
    first window, too, begin with those of `LEAD` frames, of silence."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        _, self.longest, self.width = engine.inputs["hidden"].shape
        self.resumes = "past_frames" in engine.inputs
        if self.resumes:
            _, self._kept = engine.inputs["past_frames"].shape
            self._heard = engine.bind("heard", (1,))
            self._fixed = "first" in engine.inputs
            self._start = engine.bind("first" if self._fixed else "lead", (1,))
        self.close = engine.close

    def begin(self, row: int) -> None:
        """Nothing came before."""
        if self.resumes:
            self._engine.clear("past_frames", row)

    def hidden(self, steps: int) -> Floats:
        """Where the hidden states [steps, width] of the next run go, where they are not resident."""
        hidden: NDArray[Any] = self._engine.bind("hidden", (1, steps, self.width))
        return hidden[0]  # type: ignore[no-any-return]

    def run(self, steps: int, row: int = 0, heard: int = 0, first: bool = True) -> Samples:
        """Samples of all steps: a view. heard: the next run of this row begins after so many of them;
        first: nothing came before."""
        extra = 0
        if self.resumes:
            self._heard[0] = heard
            self._start[0] = first if self._fixed else LEAD if first else 0
            extra = LEAD * HOP if self._fixed or not first else 0
            for name in ("past_frames", "present_frames"):
                self._engine.bind(name, (1, self._kept), row)
        made = self._engine.bind("samples", (1, samples_of(steps) + extra))
        self._engine.run()
        samples: Samples = made[0, extra:]
        return samples


@dataclass(slots=True, eq=False)
class Track:
    """The sound of one utterance. steps: taken; begin: of the next window; sent: steps made to sound;
    ended: no more will come."""

    lane: int
    steps: int = 0
    begin: int = 0
    sent: int = 0
    chunk: int = 0
    ended: bool = False
    done: bool = False

    def window(self) -> Window | None:
        """What can be made to sound now."""
        if self.done:
            return None
        return windows.window(self.chunk, self.begin, self.sent, self.steps, self.ended)


class Sound:
    """The vocoder of up to `tracks` utterances at once."""

    def __init__(self, engine: Engine, arena: Arena, owner: str, tracks: int) -> None:
        self._vocoder = Vocoder(engine)
        self.longest = self._vocoder.longest
        self._lanes = engine.lanes(rings(tracks, engine.inputs.values()), HIDDEN, arena, owner)
        self._tails = arena.array("tails", (tracks, FADE), owner=owner)
        rise = np.sin(np.linspace(0, np.pi / 2, FADE + 2)[1:-1]) ** 2
        self._rise: Floats = rise.astype(np.float32)
        self._fall: Floats = 1 - self._rise
        self._free = list(range(tracks))

    @property
    def free(self) -> int:
        """Tracks that can be opened now."""
        return len(self._free)

    def open(self) -> Track:
        if not self._free:
            raise EngineError("more utterances at once than the voice has slots")
        self._vocoder.begin(self._free[-1])  # which may fail, and must not cost a lane
        return Track(self._free.pop())

    def close(self, track: Track) -> None:
        if track.lane >= 0:
            self._free.append(track.lane)
            track.lane = -1

    def room(self, track: Track) -> bool:
        """Whether another step may be drawn: what the next window needs must not be overwritten."""
        return track.steps - track.begin < RING

    def take(self, track: Track, source: Engine, row: int) -> None:
        """The hidden state of the next step: a row of what the decoder network made."""
        self._lanes.put(track.lane, track.steps, source, HIDDEN, row)
        track.steps += 1

    def make(self, track: Track, window: Window) -> Samples:
        """The samples of a window's chunk: a view, valid until the next call. Raises `BrokenSound`."""
        # A first window sees less far ahead than what is kept of it should: its last steps come again.
        after = min(window.stop, window.end - AHEAD) if self._vocoder.resumes else window.stop - LEFT
        after = window.end if window.last else max(window.begin, after)
        self._lanes.fill(track.lane, window.begin, window.end - window.begin)
        whole = self._vocoder.run(
            window.end - window.begin, track.lane, after - window.begin, first=track.chunk == 0
        )
        first, end = ((step - window.begin) * STEP for step in (window.start, window.stop))
        samples: Samples = whole[first:] if window.last else whole[first:end]
        if not np.isfinite(samples.min() + samples.max()):  # unlike isfinite of all, it allocates nothing
            raise BrokenSound("the vocoder made samples that are no numbers")
        if window.start:
            self._fade(samples, self._tails[track.lane])
        if not window.last:
            self._tails[track.lane] = whole[end : end + FADE]
        track.begin, track.sent, track.done = after, window.stop, window.last
        track.chunk += 1
        return samples

    def warm_up(self) -> None:
        """The largest shape first, so that the runtime's workspace is cut from one piece."""
        most = min(LONGEST if self._vocoder.resumes else LEFT + LONGEST, self.longest)
        for steps in (most, min(most, windows.CHUNKS[0] + windows.FIRST_AHEAD)):
            self._lanes.fill(0, 0, steps)
            for first in (False, True):
                self._vocoder.run(steps, 0, 1, first)

    def shut(self) -> None:
        self._vocoder.close()

    def _fade(self, samples: Samples, tail: Floats) -> None:
        """From what the window before made of these samples to what this one did."""
        count = min(FADE, len(samples))
        head = samples[:count]
        head *= self._rise[:count]
        tail *= self._fall
        head += tail[:count]


def rings(tracks: int, inputs: Iterable[TensorSpec]) -> TensorSpec:
    """The lanes of so many tracks before a vocoder with these inputs."""
    hidden = next(spec for spec in inputs if spec.name == HIDDEN)
    return TensorSpec("hidden", hidden.dtype, (tracks, RING, hidden.shape[2]))


def whole(engine: Engine, hidden: Floats) -> Samples:
    """The samples of all hidden states [steps, width] in one run, of as many as the engine takes."""
    vocoder = Vocoder(engine)
    vocoder.begin(0)
    vocoder.hidden(len(hidden))[:] = hidden
    return vocoder.run(len(hidden))


def samples_of(steps: int) -> int:
    """Samples that the vocoder makes of so many steps: two mel frames a step, 256 samples between frames."""
    return (2 * steps - 1) * HOP
