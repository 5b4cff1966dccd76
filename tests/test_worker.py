"""The engine thread: delivery, pauses, cancel between steps, and what a failing voice does to it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from edged.errors import EdgedError, EngineError, ShapeExceeded, UnspeakableText
from edged.job import AudioChunk, Job, JobState, Params, Samples, Utterance
from edged.log import body
from edged.voices.api import Piece, Stream, VoiceCard
from edged.worker import MAX_CONSECUTIVE_FAULTS, Worker
from tests import bundles
from tests.test_job import make_job

RATE = 24_000
CHUNK_S = 0.25


@dataclass
class Basket:
    """A sink that keeps what it gets and ends the job with the last chunk, as real sinks do."""

    job: Job | None = None
    room: bool = True
    chunks: list[AudioChunk] = field(default_factory=list)
    aborted: bool = False
    done: threading.Event = field(default_factory=threading.Event)

    def ready(self) -> bool:
        return self.room

    def write(self, chunk: AudioChunk) -> None:
        self.chunks.append(chunk)
        if chunk.last and self.job is not None:
            self.job.done()

    def abort(self) -> None:
        self.aborted = True

    @property
    def samples(self) -> Samples:
        return np.concatenate([c.samples for c in self.chunks])


class Scripted:
    """A voice of a given number of steps per utterance, for what a real one cannot be made to do."""

    max_batch = 2

    def __init__(
        self, steps: int = 1, fail: Any = None, delay_s: float = 0.0, name: str = "v", calls: Any = None
    ) -> None:
        self.card = VoiceCard(name, "scripted", ("*",), RATE, "", "", "")
        self.calls = calls if calls is not None else []
        self.synthesizer = self
        self.steps, self.fail, self.delay_s = steps, fail, delay_s
        self.open_streams: set[int] = set()
        self.batches: list[int] = []

    def bucket(self, utterance: Utterance, params: Params) -> int:
        return 0

    def open(self, utterance: Utterance, params: Params) -> Stream:
        stream = [self.steps, utterance.index]
        self.open_streams.add(id(stream))
        return stream

    def step(self, streams: Sequence[Any]) -> Sequence[Piece]:
        begin = time.monotonic()
        time.sleep(self.delay_s)
        self.calls.append((self.card.name, time.monotonic() - begin))
        if self.fail is not None:
            raise self.fail
        self.batches.append(len(streams))
        pieces = []
        for stream in streams:
            stream[0] -= 1
            # One sample buffer for all: a piece is only valid until the next step.
            pieces.append(Piece(np.full(1_000, stream[1] + 1, np.float32), last=stream[0] == 0))
        return pieces

    def close(self, stream: Any) -> None:
        self.open_streams.discard(id(stream))


@pytest.fixture
def make() -> Iterator[Any]:
    workers = []

    def start(*voices: Any, crashes: list[BaseException] | None = None, gather_s: float = 0.0) -> Worker:
        on_crash = (crashes if crashes is not None else []).append
        worker = Worker({v.card.name: v for v in voices}, CHUNK_S, on_crash, gather_s=gather_s)
        worker.start()
        workers.append(worker)
        return worker

    yield start
    for worker in workers:
        assert worker.stop(5.0)


def job(voice: str, *utterances: Utterance, prepared: bool = True, **fields: Any) -> tuple[Job, Basket]:
    basket = Basket()
    made = make_job(voice=voice, sink=basket, on_end=lambda _: basket.done.set(), **fields)
    basket.job = made
    made.utterances = list(utterances)
    made.prepared_all = prepared
    return made, basket


def test_a_real_voice_is_delivered_in_chunks_with_its_pauses(make: Any) -> None:
    voice = bundles.voice(bundles.tone())
    worker = make(voice)
    first, second = (Utterance(n, (1, 2, 3, 4) * 8, pause_s=0.5) for n in range(2))
    made, basket = job("tone", first, second)
    worker.submit(made)
    assert basket.done.wait(5)
    assert made.state is JobState.DONE
    assert all(c.samples.size <= RATE * CHUNK_S for c in basket.chunks)
    assert [c.last for c in basket.chunks] == [False] * (len(basket.chunks) - 1) + [True]
    spoken = basket.samples
    alone = voice.synthesizer.step([voice.synthesizer.open(first, Params())])[0].samples.copy()
    pause = np.zeros(RATE // 2, np.float32)
    assert np.array_equal(spoken, np.concatenate([alone, pause, alone, pause]))
    assert made.timeline.audio_s == pytest.approx(spoken.size / RATE)
    assert 0 < made.timeline.synthesis_s < 5
    assert made.timeline.engine <= made.timeline.produced <= made.timeline.finished


def test_utterances_prepared_later_continue_the_job(make: Any) -> None:
    worker = make(Scripted())
    made, basket = job("v", Utterance(0, (1,)), prepared=False)
    worker.submit(made)
    time.sleep(0.1)
    assert not made.ended
    made.utterances.append(Utterance(1, (1,)))
    worker.wake()
    time.sleep(0.1)
    made.prepared_all = True
    worker.wake()
    assert basket.done.wait(5)
    assert list(basket.samples[::1_000]) == [1, 2]
    assert basket.chunks[-1].last


def test_a_text_with_nothing_to_speak_fails(make: Any) -> None:
    worker = make(Scripted())
    made, basket = job("v")
    worker.submit(made)
    assert basket.done.wait(5)
    assert made.error is not None
    assert made.error.code == "unspeakable_text"


def test_streams_of_many_steps_share_a_call_up_to_the_slots_and_never_mix(make: Any) -> None:
    voice = Scripted(steps=5, delay_s=0.005)
    worker = make(voice)
    jobs = [job("v", Utterance(n, (1,)), id=str(n)) for n in range(3)]
    for made, _ in jobs:
        worker.submit(made)
    for number, (made, basket) in enumerate(jobs):
        assert basket.done.wait(5)
        assert made.state is JobState.DONE
        assert np.array_equal(basket.samples, np.full(5_000, number + 1, np.float32))
    assert max(voice.batches) == 2
    assert voice.open_streams == set()


def test_cancel_between_steps_frees_the_slot_and_delivers_nothing_more(make: Any) -> None:
    voice = Scripted(steps=1_000, delay_s=0.005)
    worker = make(voice)
    made, basket = job("v", Utterance(0, (1,)))
    worker.submit(made)
    while len(basket.chunks) < 3:
        time.sleep(0.005)
    assert made.cancel()
    delivered = len(basket.chunks)
    worker.wake()
    time.sleep(0.1)
    assert len(basket.chunks) <= delivered + 1  # the step under way when it was cancelled
    assert basket.aborted
    assert voice.open_streams == set()


def test_a_sink_without_room_holds_its_own_job_only(make: Any) -> None:
    worker = make(Scripted())
    held, full = job("v", Utterance(0, (1,)))
    full.room = False
    free, basket = job("v", Utterance(0, (1,)))
    worker.submit(held)
    worker.submit(free)
    assert basket.done.wait(5)
    assert not held.ended
    full.room = True
    worker.wake()
    assert full.done.wait(5)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [(EngineError("decoder: out of memory"), "decoder: out of memory"), (UnspeakableText("'hush'"), None)],
)
def test_the_log_has_the_cause_of_a_fault_and_no_text(
    make: Any, caplog: pytest.LogCaptureFixture, fault: EdgedError, reason: str | None
) -> None:
    made, basket = job("v", Utterance(0, (1,)))
    fault.hint = ""
    make(Scripted(fail=fault)).submit(made)
    assert basket.done.wait(5)
    (record,) = [r for r in caplog.records if r.getMessage() == "synthesis failed"]
    assert record.fields["reason"] == reason  # type: ignore[attr-defined]
    assert "hush" not in body(record)


def test_a_failing_voice_fails_its_jobs_and_the_next_one_is_served(make: Any) -> None:
    voice, crashes = Scripted(fail=EngineError("broken")), []
    worker = make(voice, crashes=crashes)
    made, basket = job("v", Utterance(0, (1,)))
    worker.submit(made)
    assert basket.done.wait(5)
    assert made.error is not None
    assert made.error.code == "engine"
    assert basket.aborted
    voice.fail = None
    made, basket = job("v", Utterance(0, (1,)))
    worker.submit(made)
    assert basket.done.wait(5)
    assert made.state is JobState.DONE
    assert crashes == []
    assert voice.open_streams == set()


def test_an_engine_that_keeps_failing_ends_the_worker(make: Any) -> None:
    crashes: list[BaseException] = []
    worker = make(Scripted(fail=RuntimeError("native fault")), crashes=crashes)
    for _ in range(MAX_CONSECUTIVE_FAULTS):
        made, basket = job("v", Utterance(0, (1,)))
        worker.submit(made)
        assert basket.done.wait(5)
        assert made.error is not None
        assert made.error.code == "internal"
    until = time.monotonic() + 5
    while not crashes and time.monotonic() < until:
        time.sleep(0.01)
    assert [type(c) for c in crashes] == [RuntimeError]


def _crashed(crashes: list[BaseException]) -> bool:
    until = time.monotonic() + 5
    while not crashes and time.monotonic() < until:
        time.sleep(0.01)
    return bool(crashes)


def test_a_broken_engine_is_not_excused_by_another_voice(make: Any) -> None:
    crashes: list[BaseException] = []
    worker = make(Scripted(name="a", fail=EngineError("broken")), Scripted(name="b"), crashes=crashes)
    for number in range(2 * MAX_CONSECUTIVE_FAULTS - 1):
        assert not crashes
        made, basket = job("ab"[number % 2], Utterance(0, (1,)))
        worker.submit(made)
        assert basket.done.wait(5)
    assert _crashed(crashes)


def test_steps_that_lead_nowhere_do_not_excuse_an_engine(make: Any) -> None:
    """As where the decoder works and the vocoder does not."""
    voice, crashes = Scripted(steps=3), []
    speak = voice.step

    def step(streams: Sequence[Any]) -> Sequence[Piece]:
        return fail(EngineError("no sound")) if any(s[0] == 1 for s in streams) else speak(streams)

    voice.step = step  # type: ignore[method-assign]
    worker = make(voice, crashes=crashes)
    for _ in range(MAX_CONSECUTIVE_FAULTS):
        assert not crashes
        made, basket = job("v", Utterance(0, (1,)))
        worker.submit(made)
        assert basket.done.wait(5)
        assert made.state is JobState.FAILED
    assert _crashed(crashes)


def test_an_utterance_that_comes_to_its_end_excuses_what_failed_before(make: Any) -> None:
    voice, crashes = Scripted(), []
    worker = make(voice, crashes=crashes)
    for number in range(3 * MAX_CONSECUTIVE_FAULTS):
        voice.fail = EngineError("broken") if number % MAX_CONSECUTIVE_FAULTS else None
        made, basket = job("v", Utterance(0, (1,)))
        worker.submit(made)
        assert basket.done.wait(5)
    assert crashes == []


def test_a_stream_that_cannot_be_closed_is_a_fault_of_its_voice(make: Any) -> None:
    voice, crashes = Scripted(), []
    close = voice.close
    voice.close = lambda stream: fail(EngineError("cannot move a row"))  # type: ignore[method-assign]
    worker = make(voice, crashes=crashes)
    made, basket = job("v", Utterance(0, (1,)))
    worker.submit(made)
    assert basket.done.wait(5)
    assert made.state is JobState.FAILED
    voice.close = close  # type: ignore[method-assign]
    made, basket = job("v", Utterance(0, (1,)))
    worker.submit(made)
    assert basket.done.wait(5)
    assert made.state is JobState.DONE
    assert crashes == []
    voice.close = lambda stream: fail(EngineError("cannot move a row"))  # type: ignore[method-assign]
    for _ in range(MAX_CONSECUTIVE_FAULTS):
        assert not crashes
        made, basket = job("v", Utterance(0, (1,)))
        worker.submit(made)
        assert basket.done.wait(5)
    assert _crashed(crashes)


def test_the_pulse_tells_a_hanging_engine_from_a_quiet_one(make: Any) -> None:
    voice = Scripted(delay_s=0.6)
    worker = make(voice)
    assert worker.pulse.busy_s(time.monotonic()) < 0.1
    made, basket = job("v", Utterance(0, (1,)))
    worker.submit(made)
    time.sleep(0.3)
    assert 0.1 < worker.pulse.busy_s(time.monotonic()) < 10.0
    assert basket.done.wait(5)
    assert worker.pulse.busy_s(time.monotonic()) < 0.1


def test_a_waiting_job_fails_at_its_deadline_without_any_other_event(make: Any) -> None:
    worker = make(Scripted())
    made, basket = job("v", Utterance(0, (1,)), deadline=time.monotonic() + 0.2)
    basket.room = False
    worker.submit(made)
    assert basket.done.wait(2)
    assert made.error is not None
    assert made.error.code == "deadline"


def test_a_job_that_gets_no_slot_by_its_deadline_fails_and_the_others_go_on(make: Any) -> None:
    voice = Scripted(steps=100_000, delay_s=0.005)
    worker = make(voice)
    running = [job("v", Utterance(0, (1,)), id=str(n)) for n in range(voice.max_batch)]
    for made, _ in running:
        worker.submit(made)
    while len(running[-1][1].chunks) < 2:
        time.sleep(0.005)
    late, basket = job("v", Utterance(0, (1,)), deadline=time.monotonic() + 0.2)
    worker.submit(late)
    assert basket.done.wait(5)
    assert late.error is not None
    assert (late.error.code, basket.chunks) == ("deadline", [])
    for made, sink in running:
        delivered = len(sink.chunks)
        while len(sink.chunks) == delivered:
            time.sleep(0.005)
        made.cancel()
    worker.wake()


def test_steps_rows_and_waits_are_measured(make: Any) -> None:
    voice = Scripted(steps=4, delay_s=0.01)
    worker = make(voice)
    jobs = [job("v", Utterance(n, (1,)), id=str(n)) for n in range(3)]  # for two slots
    for made, _ in jobs:
        made.timeline.prepared = time.monotonic()
        worker.submit(made)
    for _, basket in jobs:
        assert basket.done.wait(5)
    meter = worker.meter
    assert meter.steps == len(voice.batches)
    assert meter.row_steps == sum(voice.batches) == 12
    assert meter.step_ms.percentiles().p50 >= 10.0
    waits = meter.slot_wait_ms.percentiles()
    assert waits.count == 3
    assert waits.max >= 30.0, "the third job waited for the steps of another"


def test_jobs_that_wait_share_a_call_and_sound_as_alone(make: Any) -> None:
    voice = bundles.voice(bundles.tone(work=20))
    assert voice.synthesizer.max_batch == 4
    utterances = [Utterance(0, (1 + n, 2, 3, 4) * 5) for n in range(4)]
    open_, step = voice.synthesizer.open, voice.synthesizer.step
    alone = [step([open_(utterance, Params())])[0].samples.copy() for utterance in utterances]
    worker = make(voice, gather_s=30.0)
    jobs = [job(voice.card.name, u) for u in utterances]
    jobs[2][0].params = Params(speed=1.1)  # of the same class, and another length
    for made, _ in jobs:
        worker.submit(made)
    for number, (made, basket) in enumerate(jobs):
        assert basket.done.wait(10)  # a full call does not wait for more
        assert made.state is JobState.DONE
        assert np.array_equal(basket.samples, alone[number]) == (number != 2)
    assert len({made.timeline.engine for made, _ in jobs}) == 1  # one call


def test_a_row_of_a_call_is_cancelled_alone(make: Any) -> None:
    voice = Scripted(delay_s=0.3)
    worker = make(voice)
    (gone, nothing), (kept, basket) = jobs = [job("v", Utterance(n, (1,))) for n in range(2)]
    first, before = job("v", Utterance(0, (1,)))
    worker.submit(first)
    time.sleep(0.1)  # both wait, and then share the next call
    for made, _ in jobs:
        worker.submit(made)
    assert before.done.wait(5)
    time.sleep(0.1)
    assert gone.cancel()
    assert basket.done.wait(5)
    assert voice.batches == [1, 2]
    assert kept.state is JobState.DONE
    assert np.array_equal(basket.samples, np.full(1_000, 2, np.float32))
    assert nothing.chunks == []
    assert nothing.aborted
    assert voice.open_streams == set()


def test_an_utterance_that_the_voice_refuses_fails_alone(make: Any) -> None:
    voice, crashes = Scripted(steps=20, delay_s=0.005), []
    speak = voice.open
    voice.open = lambda u, p: speak(u, p) if u.symbols else fail(ShapeExceeded("too long"))  # type: ignore[method-assign]
    worker = make(voice, crashes=crashes)
    good, basket = job("v", Utterance(0, (1,)))
    worker.submit(good)
    for _ in range(2 * MAX_CONSECUTIVE_FAULTS):
        made, refused = job("v", Utterance(0, ()))
        worker.submit(made)
        assert refused.done.wait(5)
        assert made.error is not None
        assert made.error.code == "shape_exceeded"
    assert basket.done.wait(5)
    assert good.state is JobState.DONE
    assert crashes == []


def fail(error: Exception) -> Any:
    raise error


def test_a_deadline_within_the_gathering_is_kept(make: Any) -> None:
    worker = make(bundles.voice(bundles.tone()), gather_s=30.0)
    made, basket = job("tone", Utterance(0, (1, 2, 3)), deadline=time.monotonic() + 20.0)
    worker.submit(made)
    assert basket.done.wait(5)
    assert made.state is JobState.DONE


def test_a_lone_utterance_is_spoken_when_its_waiting_is_over(make: Any) -> None:
    worker = make(bundles.voice(bundles.tone()), gather_s=0.2)
    made, basket = job("tone", Utterance(0, (1, 2, 3)))
    begin = time.monotonic()
    worker.submit(made)
    assert basket.done.wait(5)
    assert time.monotonic() - begin >= 0.2


def test_two_voices_take_turns(make: Any) -> None:
    calls: list[tuple[str, float]] = []
    stream = Scripted(steps=400, delay_s=0.002, name="c", calls=calls)
    text = Scripted(delay_s=0.01, name="h", calls=calls)
    worker = make(stream, text)
    long, heard = job("c", Utterance(0, (1,)))
    worker.submit(long)
    made, basket = job("h", *(Utterance(n, (1,)) for n in range(10)))
    worker.submit(made)
    assert basket.done.wait(10)
    assert not long.ended  # the text did not wait for the stream's end
    names = [name for name, _ in calls]
    between = calls[names.index("h") : len(names) - names[::-1].index("h")]
    spent = {voice: sum(s for name, s in between if name == voice) for voice in "ch"}
    # Seconds are shared, not calls; here the text is the one whose listener is about to hear a gap.
    assert spent["c"] >= 0.2 * (spent["c"] + spent["h"]) - max(s for _, s in between)
    assert heard.done.wait(10)


# -- several voices in one job ---------------------------------------------------------------------


class Voiced(Scripted):
    """Says its own number, so that it can be heard who spoke; a different number of steps each time."""

    def __init__(self, number: int, name: str, slots: int = 1, **options: Any) -> None:
        super().__init__(name=name, **options)
        self.number, self.max_batch = number, slots
        self.params: list[Params] = []

    def open(self, utterance: Utterance, params: Params) -> Stream:
        self.params.append(params)
        stream = [1 + utterance.index % self.steps, 10 * self.number + utterance.index - 1]
        self.open_streams.add(id(stream))
        return stream


def mixed(count: int, offset: int = 0) -> list[Utterance]:
    return [Utterance(n, (1,), voice=("", "b", "c")[(n + offset) % 3]) for n in range(count)]


def said(samples: Samples) -> list[int]:
    """The utterances as they are heard, a number each."""
    heard = samples[::1_000].astype(int).tolist()
    return [number for n, number in enumerate(heard) if n == 0 or number != heard[n - 1]]


def test_a_job_between_voices_is_spoken_in_order_and_completely(make: Any) -> None:
    voices = [Voiced(1, "a", steps=3), Voiced(2, "b", steps=2, slots=2), Voiced(3, "c")]
    worker = make(*voices)
    jobs = [job("a", *mixed(9, offset), id=str(offset)) for offset in range(5)]
    for made, _ in jobs:
        worker.submit(made)
    for made, basket in jobs:
        assert basket.done.wait(10)
        assert made.state is JobState.DONE
        expected = [10 * {"": 1, "b": 2, "c": 3}[u.voice] + u.index for u in made.utterances]
        assert said(basket.samples) == expected
        assert [c.last for c in basket.chunks].count(True) == 1
        assert basket.chunks[-1].last
    assert all(voice.open_streams == set() for voice in voices)
    assert all(max(voice.batches) <= voice.max_batch for voice in voices)


def test_two_real_voices_in_one_job_sound_as_each_alone(make: Any) -> None:
    voices = [bundles.voice(bundles.tone()), bundles.voice(bundles.tone(work=1))]
    names = [voice.card.name for voice in voices]
    worker = make(*voices)
    speed = Params(speed=1.5)
    utterances = [
        Utterance(0, (1, 2, 3), marks=("begin",)),
        Utterance(1, (4, 5, 6), voice=names[1], params=speed, gain=0.5, pause_s=0.25, marks_after=("there",)),
        Utterance(2, (7, 8, 9), lead_s=0.1, marks=("back",)),
    ]
    made, basket = job(names[0], *utterances)
    worker.submit(made)
    assert basket.done.wait(5)
    expected: list[Samples] = []
    times: list[tuple[str, float]] = []

    def heard() -> float:
        return sum(part.size for part in expected) / RATE

    for utterance in utterances:
        synthesizer = voices[names.index(utterance.voice or names[0])].synthesizer
        stream = synthesizer.open(utterance, utterance.params or Params())
        expected.append(np.zeros(round(utterance.lead_s * RATE), np.float32))
        times += [(name, heard()) for name in utterance.marks]
        expected.append(synthesizer.step([stream])[0].samples * np.float32(utterance.gain))
        times += [(name, heard()) for name in utterance.marks_after]
        expected.append(np.zeros(round(utterance.pause_s * RATE), np.float32))
    assert np.array_equal(basket.samples, np.concatenate(expected))
    assert [name for name, _ in made.marks] == ["begin", "there", "back"]
    assert dict(made.marks) == pytest.approx(dict(times))


def test_cancel_between_voices_frees_both(make: Any) -> None:
    voices = [Voiced(1, "a", steps=4, delay_s=0.002), Voiced(2, "b", steps=4, delay_s=0.002)]
    worker = make(*voices)
    for wait in range(4, 20, 3):
        made, basket = job("a", *(Utterance(n, (1,), voice=("", "b")[n % 2]) for n in range(1_000)))
        worker.submit(made)
        while len(basket.chunks) < wait:
            time.sleep(0.001)
        assert made.cancel()
        worker.wake()
        after, sink = job("b", Utterance(0, (1,)))
        worker.submit(after)
        assert sink.done.wait(5)
        assert after.state is JobState.DONE
        assert not any(chunk.last for chunk in basket.chunks)
    assert all(voice.open_streams == set() for voice in voices)


def test_a_fault_of_another_voice_fails_the_job_and_no_other(make: Any) -> None:
    good, bad = Voiced(1, "a", steps=2), Voiced(2, "b")
    bad.fail = EngineError("broken")
    worker = make(good, bad)
    made, basket = job("a", *(Utterance(n, (1,), voice="b" if n == 2 else "") for n in range(4)))
    plain, sink = job("a", *(Utterance(n, (1,)) for n in range(8)))
    worker.submit(made)
    worker.submit(plain)
    assert basket.done.wait(5)
    assert made.error is not None
    assert made.error.code == "engine"
    assert said(basket.samples) == [10, 11]
    assert sink.done.wait(5)
    assert plain.state is JobState.DONE
    assert good.open_streams == bad.open_streams == set()


@pytest.mark.parametrize("voice", ["gone", "other"])
def test_an_utterance_of_a_voice_that_cannot_join_in_fails_its_job(make: Any, voice: str) -> None:
    other = Voiced(2, "other")
    other.card = VoiceCard("other", "scripted", ("*",), 16_000, "", "", "")
    worker = make(Voiced(1, "a"), other)
    made, basket = job("a", Utterance(0, (1,)), Utterance(1, (1,), voice=voice))
    worker.submit(made)
    assert basket.done.wait(5)
    assert made.error is not None
    assert made.error.code == "internal"
    after, sink = job("a", Utterance(0, (1,)))
    worker.submit(after)
    assert sink.done.wait(5)
    assert after.state is JobState.DONE


def test_a_deadline_holds_also_when_the_first_word_is_of_another_voice(make: Any) -> None:
    busy, free = Voiced(2, "b", steps=100_000, delay_s=0.005), Voiced(1, "a")
    worker = make(free, busy)
    running, sound = job("b", Utterance(99_999, (1,)))
    worker.submit(running)
    while len(sound.chunks) < 2:
        time.sleep(0.005)
    late, basket = job(
        "a", Utterance(0, (1,), voice="b", lead_s=1.0), deadline=time.monotonic() + 0.2, id="late"
    )
    worker.submit(late)
    assert basket.done.wait(5)
    assert late.error is not None
    assert (late.error.code, basket.chunks) == ("deadline", [])
    running.cancel()
    worker.wake()


def test_an_utterance_has_its_own_params(make: Any) -> None:
    voice = Voiced(1, "a")
    worker = make(voice)
    hot = Params(temperature=0.9)
    made, basket = job("a", Utterance(0, (1,)), Utterance(1, (1,), params=hot), Utterance(2, (1,)))
    worker.submit(made)
    assert basket.done.wait(5)
    assert voice.params == [made.params, hot, made.params]


def test_silences_wait_for_room_and_keep_nobody_waiting(make: Any) -> None:
    worker = make(Scripted())
    made, basket = job("v", Utterance(0, (1,), pause_s=30.0), Utterance(1, (1,)))
    other, sink = job("v", *(Utterance(n, (1,)) for n in range(20)), id="other")
    write = basket.write

    def fill(chunk: AudioChunk) -> None:
        write(chunk)
        basket.room = len(basket.chunks) % 7 != 0

    basket.write = fill  # type: ignore[method-assign]
    worker.submit(made)
    worker.submit(other)
    assert sink.done.wait(5)
    until = time.monotonic() + 10
    while not basket.done.is_set() and time.monotonic() < until:
        basket.room = True
        worker.wake()
        time.sleep(0.001)
    assert made.state is JobState.DONE
    assert basket.samples.size == 2_000 + 30 * RATE
    assert made.timeline.audio_s == pytest.approx(basket.samples.size / RATE)


def test_cancel_within_a_silence_ends_it(make: Any) -> None:
    worker = make(Scripted())
    made, basket = job("v", Utterance(0, (1,), pause_s=3_000_000.0))
    worker.submit(made)
    while len(basket.chunks) < 50:
        time.sleep(0.001)
    assert made.cancel()
    worker.wake()
    after, sink = job("v", Utterance(0, (1,)))
    worker.submit(after)
    assert sink.done.wait(5)
    delivered = len(basket.chunks)
    time.sleep(0.05)
    assert len(basket.chunks) == delivered
    assert not basket.chunks[-1].last


def test_the_start_is_told_before_anything_is_heard_that_nobody_refined(make: Any) -> None:
    told: list[int] = []
    worker = make(Scripted())
    made, basket = job("v", Utterance(0, (1,), lead_s=0.1), Utterance(1, (1,)))
    made.params = Params(refine=True, show_refined=True)
    made.on_start = lambda _: told.append(len(basket.chunks))
    worker.submit(made)
    assert basket.done.wait(5)
    assert told == [0]


def test_marks_behind_everything_come_before_the_end(make: Any) -> None:
    order: list[str] = []
    worker = make(Scripted())
    made, basket = job(
        "v",
        Utterance(0, (1,), marks=("a",), marks_after=("b", "c")),
        on_news=lambda _, mark: order.append(f"{mark.name} {mark.time_s * RATE:.0f}"),
        on_start=lambda _: order.append("started"),
    )
    made.on_end = lambda _: (order.append("ended"), basket.done.set())
    worker.submit(made)
    assert basket.done.wait(5)
    assert order == ["started", "a 0", "b 1000", "c 1000", "ended"]
