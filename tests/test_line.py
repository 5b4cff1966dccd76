"""Any order of pauses, resumptions and callbacks: every sample is heard once, and in order.

The ring and all above it are real; the device is a loop that reads, so that each order can be had.
"""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from edged.audio.line import Line
from edged.audio.remote import Remote
from edged.audio.ring import FADE_FRAMES, Ring
from edged.audio.segment import PlayerSink
from edged.job import AudioChunk, Job, Samples
from tests.sounds import make_job

RATE = 48_000
UNIT = 2.0**-18  # samples are numbers in this unit, exact in float32
SPAN = 20_000  # each job has its own numbers, all of them large, so that a fade is steep


class Box:
    """A line with these jobs, and a device that takes audio when it is told to."""

    def __init__(self, lengths: list[int]) -> None:
        self.ring = Ring(6_000, 1)
        self.output = SimpleNamespace(frames=0, latency_frames=500)
        self.line = Line()
        speaker: Any = SimpleNamespace(ring=self.ring, output=self.output)
        self.remote = Remote(
            self.line,
            speaker,
            threading.Condition(),
            poke=lambda: None,
            wake=lambda: None,
            send_back=lambda job, utterance, take: None,
        )
        self.heard: list[Samples] = []
        self.turns: list[tuple[str, bool]] = []
        self.jobs = [self._job(number, length) for number, length in enumerate(lengths)]

    def _job(self, number: int, length: int) -> Job:
        job = make_job(str(number))
        job.on_turn = lambda job, paused, position_s: self.turns.append((job.id, paused))
        sink = PlayerSink(self, job, RATE, 1.0)
        job.sink = sink
        samples = ((number + 1) * SPAN + 1 + np.arange(length)).astype(np.float32) * np.float32(UNIT)
        for at in range(0, length, 700):
            sink.queue(AudioChunk(samples[at : at + 700], at + 700 >= length))
        self.line.join(sink)
        return job

    def may_write(self, sink: PlayerSink) -> bool:
        return True

    put = drop = may_write  # type: ignore[assignment]

    def feed(self) -> None:
        self.remote.settle()
        while self.line.pump(self.ring, RATE):
            pass

    def read(self, frames: int) -> None:
        out = np.zeros((frames, 1), np.float32)
        self.ring.read_into(out)
        self.output.frames += frames
        self.heard.append(out[:, 0])
        ended = self.line.heard(self.ring.read, self.output.frames, self.output.latency_frames)
        self.remote.tell()
        for sink in ended:
            sink.job.done()


STEPS = st.one_of(
    st.tuples(st.just("read"), st.integers(1, 900)),
    st.tuples(st.sampled_from(["pause", "pause", "resume"]), st.integers(0, 2)),
    st.tuples(st.just("feed"), st.just(0)),
)


@settings(max_examples=150, deadline=None)
@given(lengths=st.lists(st.integers(1, 7_000), min_size=3, max_size=3), steps=st.lists(STEPS, max_size=60))
def test_nothing_is_lost_and_nothing_is_heard_twice(lengths: list[int], steps: list[tuple[str, int]]) -> None:
    box = Box(lengths)
    pauses = 0
    for step, value in steps:
        if step == "read":
            box.read(value)
        elif step == "feed":
            box.feed()
        elif step == "pause":
            pauses += box.remote.pause(box.jobs[value])
        else:
            box.remote.resume(box.jobs[value])
    for job in box.jobs:
        box.remote.resume(job)
    for _ in range(200):
        box.feed()
        box.read(300)
    assert all(job.ended for job in box.jobs)
    assert box.line.everybody == []
    numbers = np.concatenate(box.heard) / UNIT
    # A sample that was faded is no number, or has no neighbour that follows it.
    follows = np.flatnonzero((np.diff(numbers) == 1.0) & (numbers[:-1] == np.rint(numbers[:-1])))
    whole = numbers[np.union1d(follows, follows + 1)].astype(int)
    assert len(np.unique(whole)) == len(whole)
    for number, length in enumerate(lengths, 1):
        mine = whole[(whole > number * SPAN) & (whole <= (number + 1) * SPAN)] - number * SPAN
        assert (np.diff(mine) > 0).all()
        missing = np.setdiff1d(np.arange(1, length + 1), mine)
        runs = np.split(missing, np.flatnonzero(np.diff(missing) > 1) + 1) if missing.size else []
        assert all(run.size <= FADE_FRAMES + 2 for run in runs) or pauses > 1
        assert missing.size <= (FADE_FRAMES + 2) * pauses + 2
    for job in box.jobs:  # what fell silent is heard again
        told = [paused for name, paused in box.turns if name == job.id]
        assert not told or not told[-1]


@settings(max_examples=50, deadline=None)
@given(steps=st.lists(STEPS, max_size=30))
def test_while_held_only_what_was_resumed_begins(steps: list[tuple[str, int]]) -> None:
    box = Box([3_000, 3_000, 3_000])
    box.remote.hold(True)
    first = box.line.writer  # it had the loudspeaker already
    asked = {job.id for job in box.jobs if first is not None and job is first.job}
    for step, value in steps:
        if step == "resume" and box.remote.resume(box.jobs[value]):
            asked.add(str(value))
        elif step == "pause":
            box.remote.pause(box.jobs[value])
        elif step == "read":
            box.read(value)
        else:
            box.feed()
    assert {job.id for job in box.jobs if job.timeline.first_audio} <= asked
