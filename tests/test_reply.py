"""Replies: what a client gets for a `synthesize` job, and when the engine has to wait."""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest
import soundfile

from edged.audio import reply
from edged.audio.reply import Replies
from edged.errors import UnsupportedFormat
from edged.job import AudioChunk, Job, JobState, Samples
from edged.protocol import Audio, Event
from tests.pulse import snr_db, wait_until
from tests.sounds import make_job, noise, write_all

RATE = 24_000


class Outbox:
    """Everything that was emitted, endings of jobs included, in order."""

    def __init__(self) -> None:
        self.entries: list[tuple[str, Audio | JobState, bytes]] = []
        self.wakes = 0
        self.open = threading.Event()
        self.open.set()

    def emit(self, job: Job, event: Event, data: bytes | None) -> None:
        self.open.wait(10)
        assert isinstance(event, Audio)
        assert data is not None
        self.entries.append((job.id, event, data))

    def wake(self) -> None:
        self.wakes += 1

    def job(self, id: str = "1", **params: float) -> Job:
        job = make_job(id, **params)
        job.on_end = lambda job: self.entries.append((job.id, job.state, b""))
        job.start()
        return job

    def of(self, job: Job) -> list[tuple[Audio, bytes]]:
        return [(e, data) for number, e, data in self.entries if number == job.id and isinstance(e, Audio)]


@pytest.fixture
def outbox() -> Outbox:
    return Outbox()


@pytest.fixture
def replies(outbox: Outbox) -> Iterator[Replies]:
    replies = Replies(outbox.emit, outbox.wake, buffer_s=2.0)
    yield replies
    outbox.open.set()
    replies.close()
    assert not any(thread.name == "edged-reply" for thread in threading.enumerate())


def finish(job: Job) -> None:
    wait_until(lambda: job.ended, what="the job's end")


def pcm(data: bytes) -> Samples:
    return (np.frombuffer(data, "<i2") / 32767).astype(np.float32)


def test_a_whole_reply_is_one_event(replies: Replies, outbox: Outbox) -> None:
    sound = noise(1.5, RATE)
    job = outbox.job()
    job.sink = replies.sink(job, "wav", RATE, 0, stream=False)
    write_all(job.sink, sound, 5_000)
    finish(job)
    [(id1, event, data), (id2, state, _)] = outbox.entries
    assert (id1, id2, state) == ("1", "1", JobState.DONE)
    assert isinstance(event, Audio)
    assert (event.id, event.job, event.seq, event.last) == ("c1", "1", 0, True)
    assert (event.samples, event.sample_rate, event.format) == (len(sound), RATE, "wav")
    got, rate = soundfile.read(io.BytesIO(data), dtype="float32")
    assert (len(got), rate) == (len(sound), RATE)
    assert snr_db(sound, got) > 70
    assert job.timeline.received <= job.timeline.first_audio <= job.timeline.ended


@pytest.mark.parametrize("format", ["pcm_s16le", "wav", "flac", "ogg_opus", "mp3", "pcm_f32le"])
@pytest.mark.parametrize("rate", [0, 48_000])
def test_a_streamed_reply_is_a_numbered_series(
    replies: Replies, outbox: Outbox, format: str, rate: int
) -> None:
    sound = noise(1.5, RATE)
    job = outbox.job()
    job.sink = replies.sink(job, format, RATE, rate, stream=True)
    write_all(job.sink, sound, 2_400)
    finish(job)
    pieces = outbox.of(job)
    assert outbox.entries[-1][1] is JobState.DONE
    assert len(pieces) > 3
    assert [event.seq for event, _ in pieces] == list(range(len(pieces)))
    assert [event.last for event, _ in pieces] == [False] * (len(pieces) - 1) + [True]
    assert all(data for _, data in pieces[:-1])
    assert sum(event.samples for event, _ in pieces) == len(sound) * (rate or RATE) // RATE
    assert {event.sample_rate for event, _ in pieces} == {rate or RATE}
    if format == "pcm_s16le" and not rate:
        assert snr_db(sound, pcm(b"".join(data for _, data in pieces))) > 70


def test_streamed_and_whole_are_the_same_samples(replies: Replies, outbox: Outbox) -> None:
    sound = noise(1.0, RATE)
    jobs = [outbox.job("whole"), outbox.job("stream")]
    for job, size in zip(jobs, (24_000, 1_000), strict=True):
        job.sink = replies.sink(job, "pcm_s16le", RATE, 16_000, stream=job.id == "stream")
        write_all(job.sink, sound, size)
    for job in jobs:
        finish(job)
    whole, stream = (b"".join(data for _, data in outbox.of(job)) for job in jobs)
    assert whole == stream


def test_the_last_chunk_may_be_empty(replies: Replies, outbox: Outbox) -> None:
    for stream in (True, False):
        job = outbox.job(str(stream))
        job.sink = replies.sink(job, "pcm_s16le", RATE, 0, stream)
        job.sink.write(AudioChunk(noise(0.1, RATE)))
        job.sink.write(AudioChunk(np.zeros(0, dtype=np.float32), last=True))
        finish(job)
        events = [event for event, _ in outbox.of(job)]
        assert [event.last for event in events] == ([False, True] if stream else [True])
        assert sum(event.samples for event in events) == 2_400


def test_volume_is_a_gain_that_clips(replies: Replies, outbox: Outbox) -> None:
    job = outbox.job(volume=4.0)
    job.sink = replies.sink(job, "pcm_f32le", RATE, 0, stream=False)
    sound = np.array([0.1, -0.2, 0.5, -0.9], dtype=np.float32)
    write_all(job.sink, sound, 4)
    finish(job)
    got = np.frombuffer(outbox.of(job)[0][1], "<f4")
    assert np.allclose(got, [0.4, -0.8, 1.0, -1.0])
    assert np.allclose(sound, [0.1, -0.2, 0.5, -0.9])


def test_write_never_waits_and_a_stream_is_ready_when_the_socket_took_it(
    replies: Replies, outbox: Outbox
) -> None:
    outbox.open.clear()  # the outbox takes nothing
    job = outbox.job()
    job.sink = sink = replies.sink(job, "pcm_s16le", RATE, 48_000, stream=True)
    second = noise(1.0, RATE)
    began = time.monotonic()
    for _ in range(2):
        assert sink.ready()
        sink.write(AudioChunk(second))
    sink.write(AudioChunk(second[:240]))
    assert time.monotonic() - began < 1.0
    assert not sink.ready()
    outbox.open.set()
    wait_until(lambda: len(outbox.of(job)) == 3)
    time.sleep(0.05)
    assert not sink.ready()  # encoded, but the client has not got it
    wakes = outbox.wakes
    sink.sent(outbox.of(job)[0][0].samples)
    assert sink.ready()
    assert outbox.wakes == wakes + 1
    for event, _ in outbox.of(job)[1:]:
        sink.sent(event.samples)
    assert sink.pending_s == pytest.approx(0, abs=0.05)
    sink.write(AudioChunk(second, last=True))
    finish(job)


def test_a_whole_reply_is_delivered_when_it_is_encoded(replies: Replies, outbox: Outbox) -> None:
    job = outbox.job()
    job.sink = sink = replies.sink(job, "ogg_opus", RATE, 0, stream=False)
    for _ in range(4):
        sink.write(AudioChunk(noise(1.0, RATE)))
    wait_until(sink.ready)
    wait_until(lambda: sink.pending_s == 0)
    assert outbox.entries == []


def test_what_an_encoder_holds_back_does_not_block_a_small_buffer(outbox: Outbox) -> None:
    replies = Replies(outbox.emit, outbox.wake, buffer_s=0.01)
    job = outbox.job()
    job.sink = sink = replies.sink(job, "ogg_opus", RATE, 0, stream=True)
    acknowledged = 0
    for i in range(40):
        wait_until(lambda: sink.ready() or len(outbox.of(job)) > acknowledged)  # noqa: B023
        for event, _ in outbox.of(job)[acknowledged:]:
            sink.sent(event.samples)
            acknowledged += 1
        wait_until(sink.ready)
        sink.write(AudioChunk(noise(0.02, RATE), last=i == 39))
        wait_until(lambda: job.ended or sink.pending_s < 0.02 or len(outbox.of(job)) > acknowledged)  # noqa: B023
    finish(job)
    assert sum(event.samples for event, _ in outbox.of(job)) == 40 * 480
    replies.close()


def test_a_cancelled_job_is_silent_and_others_go_on(replies: Replies, outbox: Outbox) -> None:
    outbox.open.clear()
    first, second = outbox.job("1"), outbox.job("2")
    first.sink = replies.sink(first, "pcm_s16le", RATE, 0, stream=True)
    second.sink = replies.sink(second, "flac", RATE, 0, stream=True)
    for _ in range(5):
        first.sink.write(AudioChunk(noise(1.0, RATE)))
    write_all(second.sink, noise(1.0, RATE), 9_000)
    wakes = outbox.wakes
    assert first.cancel()
    assert outbox.wakes > wakes
    assert first.sink.pending_s == 0  # type: ignore[attr-defined]
    outbox.open.set()
    finish(second)
    first.sink.write(AudioChunk(noise(1.0, RATE), last=True))  # the engine did not know yet
    time.sleep(0.1)
    assert len(outbox.of(first)) <= 1  # at most the one that was under way
    assert [
        state for number, state, _ in outbox.entries if number == "1" and isinstance(state, JobState)
    ] == [JobState.CANCELLED]
    assert sum(event.samples for event, _ in outbox.of(second)) == RATE


def test_a_broken_encoder_fails_its_job_only(
    replies: Replies, outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken(reply.Encoder):
        def feed(self, samples: Samples) -> bytes:
            raise OSError("disk of the codec is full")

    bad, good = outbox.job("bad"), outbox.job("good")
    with monkeypatch.context() as patch:
        patch.setattr(reply, "Encoder", Broken)
        bad.sink = replies.sink(bad, "mp3", RATE, 0, stream=False)
    good.sink = replies.sink(good, "mp3", RATE, 0, stream=False)
    write_all(bad.sink, noise(0.5, RATE), 1_000)
    write_all(good.sink, noise(0.5, RATE), 1_000)
    finish(good)
    assert bad.state is JobState.FAILED
    assert bad.error is not None
    assert bad.error.code == "internal"
    assert good.state is JobState.DONE
    assert outbox.of(bad) == []


def test_a_format_is_refused_before_anything_is_made(replies: Replies, outbox: Outbox) -> None:
    with pytest.raises(UnsupportedFormat):
        replies.sink(outbox.job(), "ogg_opus", RATE, 44_100, stream=True)


def test_many_jobs_at_once_keep_their_audio_apart(replies: Replies, outbox: Outbox) -> None:
    jobs = [outbox.job(str(i)) for i in range(8)]
    sounds = [noise(1.0, RATE, seed=i) for i in range(8)]
    for job in jobs:
        job.sink = replies.sink(job, "pcm_s16le", RATE, 0, stream=True)
    for start in range(0, RATE, 2_400):
        for job, sound in zip(jobs, sounds, strict=True):
            assert job.sink is not None
            chunk = AudioChunk(sound[start : start + 2_400], last=start + 2_400 == RATE)
            job.sink.write(chunk)
    for job, sound in zip(jobs, sounds, strict=True):
        finish(job)
        assert snr_db(sound, pcm(b"".join(data for _, data in outbox.of(job)))) > 70


def test_a_late_piece_of_a_stream_is_an_underrun_once(outbox: Outbox) -> None:
    underruns: list[int] = []
    replies = Replies(outbox.emit, outbox.wake, buffer_s=9.0, on_underrun=lambda: underruns.append(1))
    try:
        job = outbox.job()
        sink = job.sink = replies.sink(job, "pcm_s16le", RATE, 0, stream=True)

        def write(seconds: float, last: bool = False, take: bool = True) -> None:
            count = len(outbox.of(job))
            sink.write(AudioChunk(np.zeros(int(seconds * RATE), np.float32), last))
            wait_until(lambda: len(outbox.of(job)) > count, what="the piece")
            if take:
                sink.sent(outbox.of(job)[-1][0].samples)

        write(0.1)
        time.sleep(0.3)  # a listener has nothing for 0.2 s
        write(5.0)
        assert len(underruns) == 1
        write(0.1)  # it has 5 s to play
        assert len(underruns) == 1
        write(0.1, last=True)
        finish(job)
        assert len(underruns) == 1

        whole = outbox.job("2")
        whole.sink = replies.sink(whole, "pcm_s16le", RATE, 0, stream=False)
        whole.sink.write(AudioChunk(np.zeros(100, np.float32)))
        time.sleep(0.1)
        whole.sink.write(AudioChunk(np.zeros(100, np.float32), last=True))
        finish(whole)
        slow = outbox.job("3")
        sink, job = replies.sink(slow, "pcm_s16le", RATE, 0, stream=True), slow
        slow.sink = sink
        write(0.05, take=False)  # a client that does not read: the daemon is not what is late
        time.sleep(0.2)
        write(0.05, last=True)
        assert len(underruns) == 1
    finally:
        replies.close()
