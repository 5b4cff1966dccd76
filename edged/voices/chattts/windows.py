"""Which steps of an utterance are made to sound together. Pure functions; no thread, no arrays.

An utterance leaves in chunks. The vocoder makes each of them from a window: the chunk's own steps and some
after it, because its convolutions look both ways; what it must know of the steps before, it kept. What is in
a window depends on the number of steps alone, never on load or on who listens: so the same codes give the
same samples, whole or streamed, alone or beside others. Neighbours: `sound.py` runs the windows.
"""

from __future__ import annotations

from dataclasses import dataclass

# Steps a window looks ahead. Measured on random weights of full size, where every layer is as loud as it can
# be, against the same samples of the whole utterance, in a chunk of 10 and one of 32: 12 steps 49 and 57 dB,
# 13 steps 54 and 62 dB, 14 steps 61 and 69 dB.
AHEAD = 13
FIRST_AHEAD = 11  # of the first chunk, 47 dB: what is heard first may be less exact, but comes early
LEFT = 13  # steps before the chunk, for a vocoder that keeps nothing
# Steps of the chunks, the last one for all that follow. Each has to be made while those before it are heard,
# so they can grow only as an utterance gets ahead of its listener; long ones cost less, as what a window
# looks ahead is computed again by the next. Simulated with four utterances at once and the times measured for
# them (tests/test_windows.py), the listener of the worst start is 80 ms from waiting, and 30 ms on a machine
# that is a quarter slower; with 12, 10, 13, 17, 22, 28, 36 and 48 it waits there.
CHUNKS = (15, 12, 13, 16, 20, 25, 32, 40, 48, 56, 64)
LONGEST = CHUNKS[-1] + AHEAD  # steps of a window


@dataclass(frozen=True, slots=True)
class Window:
    """Steps begin..end - 1 are the input; start..stop - 1 of them are heard."""

    begin: int
    end: int
    start: int
    stop: int
    last: bool


def window(chunk: int, begin: int, start: int, steps: int, ended: bool) -> Window | None:
    """The window of a chunk (counted from 0), when it can be made.

    begin: the first step of its input; start: of the chunk; steps: drawn so far; ended: there will be no
    more, so the next chunk may be the last.
    """
    stop = start + CHUNKS[min(chunk, len(CHUNKS) - 1)]
    end = stop + (AHEAD if chunk else FIRST_AHEAD)
    if steps >= end:
        return Window(begin, end, start, stop, last=False)
    return Window(begin, steps, start, steps, last=True) if ended else None
