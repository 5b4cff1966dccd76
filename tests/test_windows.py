"""Which steps are made to sound together, and that they are in time."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import pytest

from edged.voices.chattts.windows import AHEAD, CHUNKS, FIRST_AHEAD, LONGEST, Window, window


def schedule(steps: int, late: int = 0) -> list[Window]:
    """The windows of an utterance, each made `late` steps after it could be."""
    found: list[Window] = []
    for drawn in range(1, steps + 1):
        start = found[-1].stop if found else 0
        if window(len(found), start, start, drawn - late, ended=False) is not None:
            made = window(len(found), start, start, drawn, ended=False)
            assert made is not None
            found.append(made)
    while not (found and found[-1].last):
        start = found[-1].stop if found else 0
        made = window(len(found), start, start, steps, ended=True)
        assert made is not None
        found.append(made)
    return found


@pytest.mark.parametrize("steps", [1, 5, CHUNKS[0], CHUNKS[0] + FIRST_AHEAD, *range(30, 400, 7)])
def test_chunks_cover_an_utterance_whatever_the_load(steps: int) -> None:
    windows = schedule(steps)
    assert [w.start for w in windows] == [0, *(w.stop for w in windows[:-1])]
    assert [w.last for w in windows] == [False] * (len(windows) - 1) + [True]
    assert windows[-1].stop == windows[-1].end == steps
    for chunk, w in enumerate(windows[:-1]):
        assert w.end - w.stop == (AHEAD if chunk else FIRST_AHEAD)
    assert max(w.end - w.begin for w in windows) <= LONGEST
    for late in (1, 3, 16):
        assert schedule(steps, late) == windows


def test_chunks_grow_from_a_quarter_of_a_second() -> None:
    assert 0.25 < CHUNKS[0] * 512 / 24_000 < 0.33
    assert list(CHUNKS[1:]) == sorted(CHUNKS[1:])


# Milliseconds on two cores: a step by the number of utterances, the prompt of one, a window by its steps.
STEP = (0.0, 4.3, 5.3, 6.5, 7.6)
PROMPT = 45.0
WINDOW = (8.0, 0.68)
SOUND = 21.333


@dataclass
class Listener:
    """An utterance of endless codes, as its listener has it."""

    reads: bool = True
    steps: int = 0
    chunk: int = 0
    sent: int = 0
    heard_since: float = 0.0


def gaps(arrivals: tuple[float, ...], until: int = 400, slow: float = 1.0) -> list[float]:
    """For every chunk but the first ones, how long before its time it comes, in milliseconds. slow: how many
    times longer everything takes.

    The rules of `ChatSynthesizer.step`: a prompt, a step of all, a window of the one with the least sent.
    """
    clock, live, margins = 0.0, [], []
    waiting = sorted(arrivals)
    while not live or min(x.steps for x in live) < until:
        while waiting and waiting[0] <= clock:
            waiting.pop(0)
            live.append(Listener())
        speaking = [x for x in live if not x.reads]
        reading = next((x for x in live if x.reads), None)
        if reading is not None and not any(x.chunk == 1 for x in speaking):
            clock += PROMPT * slow
            reading.reads, reading.steps = False, 1
        clock += (STEP[len(speaking)] + 0.2) * slow
        for x in speaking:
            x.steps += 1
        due = [
            (x.sent, n, w)
            for n, x in enumerate(live)
            if (w := window(x.chunk, x.sent, x.sent, x.steps, False))
        ]
        if due:
            _, n, w = min(due, key=lambda each: each[:2])
            x, clock = live[n], clock + (WINDOW[0] + WINDOW[1] * (w.end - w.begin)) * slow
            if x.chunk:
                margins.append(x.heard_since + x.sent * SOUND - clock)
            else:
                x.heard_since = clock
            x.sent, x.chunk = w.stop, x.chunk + 1
    return margins


@pytest.mark.parametrize("slow", [1.0, 1.25])
@pytest.mark.parametrize("apart", [0.0, 40.0, 150.0, 400.0, 900.0])
def test_no_listener_of_four_waits(apart: float, slow: float) -> None:
    margins = gaps(tuple(n * apart for n in range(4)), slow=slow)
    assert len(margins) > 30
    assert min(margins) > 0


def test_no_listener_waits_for_any_order_of_arrival() -> None:
    for arrivals in itertools.product((0.0, 120.0, 300.0, 700.0), repeat=3):
        assert min(gaps((0.0, *arrivals), slow=1.25)) > 0, arrivals
