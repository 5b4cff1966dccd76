"""Many replies at once: whose audio is encoded next, and what happens when the memory is used up."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

from edged.audio import reply
from edged.audio.outlet import ReplySink
from edged.audio.reply import AHEAD_S, Replies
from edged.job import AudioChunk, Job, JobState, Priority, Samples
from edged.protocol import Audio
from tests.pulse import wait_until
from tests.sounds import noise
from tests.test_reply import Outbox

RATE = 24_000
PIECE = noise(0.25, RATE)
PIECE_BYTES = len(PIECE) * 8 * 4  # as pcm_f32le at 192 kHz
MB = 1 << 20


class Desk:
    """Encoders that write down whose turn it is, and can be held up in any feed (counted from 1)."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.stops: dict[int, tuple[threading.Event, threading.Event]] = {}

    def hold(self, feed: int) -> None:
        self.stops[feed] = threading.Event(), threading.Event()

    def wait(self, feed: int) -> None:
        assert self.stops[feed][0].wait(60)

    def go(self, feed: int) -> None:
        self.stops[feed][1].set()


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    desk = Desk()

    class Logged(reply.Encoder):
        name = ""

        def feed(self, samples: Samples) -> bytes | bytearray:
            desk.log.append(self.name)
            if stop := desk.stops.get(len(desk.log)):
                stop[0].set()
                stop[1].wait(60)
            return super().feed(samples)

    monkeypatch.setattr(reply, "Encoder", Logged)
    yield desk
    for stop in desk.stops.values():
        stop[1].set()


@pytest.fixture(autouse=True)
def one_chunk_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole replies are encoded several chunks at a time; here each one is to be seen."""
    monkeypatch.setattr(reply, "MERGED", 1)


@pytest.fixture
def outbox() -> Outbox:
    return Outbox()


@pytest.fixture
def replies(outbox: Outbox) -> Iterator[Replies]:
    replies = Replies(outbox.emit, outbox.wake, buffer_s=2.0, reply_bytes=MB)
    yield replies
    replies.close(60)


def open_job(
    replies: Replies,
    outbox: Outbox,
    name: str,
    format: str = "pcm_f32le",
    rate: int = 192_000,
    stream: bool = False,
    priority: Priority = Priority.TEXT,
) -> tuple[Job, ReplySink]:
    job = outbox.job(name)
    job.priority = priority
    job.sink = sink = replies.sink(job, format, RATE, rate, stream)
    sink.encoder.name = name  # type: ignore[attr-defined]
    return job, sink


def write(sink: ReplySink, pieces: int, last: bool = True) -> None:
    for i in range(pieces):
        sink.write(AudioChunk(PIECE, last=last and i == pieces - 1))


def held(replies: Replies) -> int:
    return replies._account.total


# -- order --------------------------------------------------------------------------------------


def test_an_important_job_is_encoded_before_the_next_piece_of_twenty_others(
    desk: Desk, outbox: Outbox
) -> None:
    replies = Replies(outbox.emit, outbox.wake, buffer_s=30.0)
    desk.hold(1)
    desk.hold(25)
    jobs = [open_job(replies, outbox, f"{i}", "flac") for i in range(20)]
    for _, sink in jobs:
        write(sink, 3)
    desk.go(1)
    desk.wait(25)  # in the second piece of the fifth job
    urgent, sink = open_job(replies, outbox, "urgent", "wav", 0, priority=Priority.IMPORTANT)
    urgent.on_end = lambda job: desk.log.append("urgent ended")
    write(sink, 1)
    desk.go(25)
    wait_until(lambda: len(desk.log) == 62, timeout_s=60)
    turns = [f"{i}" for i in range(20)]  # the others take turns, before and after
    assert desk.log == [*turns, *turns[:5], "urgent", "urgent ended", *turns[5:], *turns]
    for job, _ in jobs:
        wait_until(lambda: job.state is JobState.DONE, timeout_s=60)  # noqa: B023
    replies.close(60)


def test_equal_jobs_take_turns_and_the_least_served_is_first(
    desk: Desk, replies: Replies, outbox: Outbox
) -> None:
    desk.hold(3)
    _, long = open_job(replies, outbox, "long", "ogg_opus", 0)
    write(long, 6)
    desk.wait(3)  # the third piece of the long one
    for name, pieces in (("a", 4), ("b", 2)):
        write(open_job(replies, outbox, name, "wav", 8_000)[1], pieces)
    desk.go(3)
    wait_until(lambda: len(desk.log) == 12, timeout_s=60)
    assert desk.log == "long long long a b a b a long a long long".split()


def test_a_dropped_job_leaves_the_order_of_the_others_alone(
    desk: Desk, replies: Replies, outbox: Outbox
) -> None:
    desk.hold(1)
    jobs = {name: open_job(replies, outbox, name, "wav", 8_000) for name in "abcd"}
    write(jobs["a"][1], 2)
    desk.wait(1)
    for name in "bcd":
        write(jobs[name][1], 2)
    jobs["c"][0].cancel()
    jobs["a"][0].cancel()
    desk.go(1)
    wait_until(lambda: jobs["b"][0].ended and jobs["d"][0].ended, timeout_s=60)
    assert desk.log == "a b d b d".split()
    states = [state for name, state, _ in outbox.entries if name in "ac" and isinstance(state, JobState)]
    assert states == [JobState.CANCELLED] * 2


@pytest.mark.parametrize("stream", [True, False])
def test_the_engine_does_not_run_far_ahead_of_the_encoding(desk: Desk, outbox: Outbox, stream: bool) -> None:
    replies = Replies(outbox.emit, outbox.wake, buffer_s=30.0)
    desk.hold(1)
    _, sink = open_job(replies, outbox, "a", "mp3", 0, stream)
    pieces = 0
    while sink.ready():
        write(sink, 1, last=False)
        pieces += 1
    assert AHEAD_S <= pieces * 0.25 <= AHEAD_S + 0.5
    wakes = outbox.wakes
    desk.go(1)
    wait_until(sink.ready, timeout_s=60)
    wait_until(lambda: outbox.wakes > wakes, timeout_s=60)
    replies.close(60)


# -- memory -------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", ["pcm_f32le", "wav"])
def test_a_result_that_is_too_large_fails_alone(replies: Replies, outbox: Outbox, format: str) -> None:
    large, sink = open_job(replies, outbox, "large", format)
    small, other = open_job(replies, outbox, "small", "wav", 0)
    write(other, 1, last=False)
    while not large.ended:
        if sink.ready():
            write(sink, 1, last=False)
        assert held(replies) <= MB
    assert large.error is not None
    assert (large.error.code, large.error.retryable) == ("result_too_large", False)
    assert "the limit for a whole result is 0.6 MB" in large.error.message
    assert "stream" in large.error.hint
    write(other, 1)
    wait_until(lambda: small.state is JobState.DONE, timeout_s=60)
    other.sent(0)
    wait_until(lambda: held(replies) == 0, timeout_s=60)
    assert outbox.of(large) == []


def test_whole_replies_wait_for_each_other_but_never_all(replies: Replies, outbox: Outbox) -> None:
    """The engine's part is played here: a quarter of a second for every job that is ready."""
    pieces = 2  # of 192 kB each: two jobs' worth is more than the quarter that all but one share
    jobs = [open_job(replies, outbox, f"{i}") for i in range(12)]
    left = {job.id: pieces for job, _ in jobs}
    peak, until = 0, time.monotonic() + 100
    while not all(job.ended for job, _ in jobs):
        assert time.monotonic() < until, "all wait for each other"
        for job, sink in reversed(jobs):  # the order that is worst for the oldest
            if left[job.id] and sink.ready():
                left[job.id] -= 1
                sink.write(AudioChunk(PIECE, last=not left[job.id]))
            peak = max(peak, held(replies))
        done = [(job, sink) for job, sink in jobs if outbox.of(job) and sink.emitted]
        if len(done) > 1 or not any(sink.ready() for job, sink in jobs if left[job.id]):
            for _, sink in done:  # the socket takes them
                sink.sent(0)
        time.sleep(0.001)
    assert all(job.state is JobState.DONE for job, _ in jobs)
    for _, sink in jobs:
        sink.sent(0)
    assert held(replies) == 0
    assert MB // 2 < peak <= MB + PIECE_BYTES
    sizes = {len(data) for job, _ in jobs for _, data in outbox.of(job)}
    assert sizes == {pieces * PIECE_BYTES}


def test_a_paused_reply_is_not_encoded_either_and_goes_on_when_another_is_delivered(
    desk: Desk, replies: Replies, outbox: Outbox
) -> None:
    first, oldest = open_job(replies, outbox, "first")
    write(oldest, 1)
    wait_until(lambda: first.state is JobState.DONE)
    desk.hold(2)
    second, paused = open_job(replies, outbox, "second")
    write(paused, 2)  # encoded they are 384 kB, and all but the oldest have 256 kB together
    desk.wait(2)
    third, last = open_job(replies, outbox, "third")
    write(last, 2)
    fourth, short = open_job(replies, outbox, "fourth", "pcm_s16le", 8_000)
    write(short, 1)
    desk.go(2)
    wait_until(lambda: fourth.state is JobState.DONE, timeout_s=60)  # it was written last
    time.sleep(0.05)
    assert desk.log == "first second third fourth".split()
    assert not any(job.ended or sink.ready() for job, sink in ((second, paused), (third, last)))
    assert held(replies) <= MB
    wakes = outbox.wakes
    oldest.sent(0)
    assert outbox.wakes > wakes
    wait_until(lambda: second.state is JobState.DONE, timeout_s=60)
    paused.sent(0)
    wait_until(lambda: third.state is JobState.DONE, timeout_s=60)
    last.sent(0)
    short.sent(0)
    assert held(replies) == 0


def test_a_stream_is_bounded_in_bytes(outbox: Outbox) -> None:
    replies = Replies(outbox.emit, outbox.wake, buffer_s=2.0)
    job, sink = open_job(replies, outbox, "a", stream=True)
    limit = 2.0 * RATE * 4  # two seconds as the voice makes them, a quarter of one as this client wants it
    written = 0
    for _ in range(8):
        if sink.ready():
            write(sink, 1, last=False)
            written += 1
            wait_until(lambda: len(outbox.of(job)) == written)  # noqa: B023
    assert limit < held(replies) <= limit + PIECE_BYTES
    assert written < 4
    taken = 0
    while held(replies):
        assert sink.ready() == (held(replies) <= limit)
        sink.sent(outbox.of(job)[taken][0].samples)
        taken += 1
    assert sink.ready()
    write(sink, 1)
    wait_until(lambda: job.ended)
    for event, _ in outbox.of(job)[taken:]:
        sink.sent(event.samples)
    assert held(replies) == 0
    assert sink.pending_s == 0
    replies.close(60)


def test_cancelled_jobs_give_back_what_they_hold(replies: Replies, outbox: Outbox) -> None:
    jobs = [open_job(replies, outbox, f"{i}", stream=i % 2 == 0) for i in range(4)]
    for _, sink in jobs:
        write(sink, 1, last=False)
    wait_until(lambda: held(replies) > 0)
    for job, _ in jobs:
        job.cancel()
    wait_until(lambda: held(replies) == 0, timeout_s=60)
    after, sink = open_job(replies, outbox, "after")
    assert sink.ready()
    write(sink, 2)
    wait_until(lambda: after.state is JobState.DONE, timeout_s=60)
    [(event, data)] = outbox.of(after)
    assert isinstance(event, Audio)
    assert np.frombuffer(data, "<f4").size == event.samples == 2 * len(PIECE) * 8
