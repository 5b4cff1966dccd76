"""The jobs at the loudspeaker without one: a real ring, read by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edged.audio.fader import RAMP_FRAMES, Fader
from edged.audio.line import Line
from edged.audio.player import Player
from edged.audio.remote import obey
from edged.audio.ring import FADE_FRAMES, Ring
from edged.audio.segment import PlayerSink
from edged.job import AudioChunk, Job, MarkReached, News, Paused, Priority, Resumed, Samples, SentenceReached
from edged.settings import Audio, Speech
from edged.speech.orders import Do, Order
from tests.sounds import make_job, noise, usual

RATE = 48_000
TENTH = RATE // 10


@pytest.fixture
def sent_back() -> list[tuple[str, int, int]]:
    return []


@pytest.fixture
def line(sent_back: list[tuple[str, int, int]]) -> Line:
    def send_back(job: Job, utterance: int, take: int) -> None:
        sent_back.append((job.id, utterance, take))

    return Line(Speech(), send_back)


@pytest.fixture
def ring() -> Ring:
    return Ring(RATE, 2)


def added(line: Line, ring: Ring, id: str = "1") -> PlayerSink:
    job = make_job(id)
    sink = PlayerSink(Player(Audio(enabled=False), lambda: None), job, RATE, 1.0)
    line.add(sink, usual(job), 0.0, ring)
    return sink


def speak(line: Line, ring: Ring, sink: PlayerSink, utterance: int, last: bool = False) -> None:
    """A tenth of a second of an utterance."""
    sound = noise(0.1, RATE, seed=utterance)
    sink.queue(AudioChunk(sound, last, utterance, sink.take, time_s=utterance * 0.1))
    line.ready(sink, ring)
    while line.pump(ring, RATE):
        pass


def listen(ring: Ring, frames: int) -> Samples:
    out = np.empty((frames, 2), np.float32)
    ring.read_into(out)
    return out[:, 0]


def test_a_skipped_sentence_promises_nothing_and_does_not_come_back(
    line: Line, ring: Ring, sent_back: list[tuple[str, int, int]]
) -> None:
    sink = added(line, ring)
    speak(line, ring, sink, 0)
    listen(ring, 1_000)
    assert line.skip(sink, ring)
    listen(ring, 3_000)
    assert (ring.backlog, ring.underruns) == (0, 0), "the next sentence is not there yet"
    speak(line, ring, sink, 0)
    assert ring.backlog == 0, "the rest of the skipped one is not wanted any more"
    line.hold([sink], ring)
    line.settle(ring)
    line.go_on([sink], ring)
    speak(line, ring, sink, 1, last=True)
    assert not sent_back
    assert TENTH - 250 <= ring.backlog <= TENTH, "the pause goes on behind what was skipped"


def test_a_sentence_whose_next_one_is_in_the_ring_is_skipped_up_to_it(line: Line, ring: Ring) -> None:
    sink = added(line, ring)
    speak(line, ring, sink, 0)
    speak(line, ring, sink, 1, last=True)
    listen(ring, 1_000)
    assert line.skip(sink, ring)
    assert ring.backlog == ring.written - TENTH
    listen(ring, 500)
    assert ring.read > TENTH
    assert sink.heard(ring.read) == 1


def test_what_ends_with_a_skip_has_its_end(line: Line, ring: Ring) -> None:
    sink = added(line, ring)
    speak(line, ring, sink, 0, last=True)
    listen(ring, 1_000)
    assert line.skip(sink, ring)
    listen(ring, 1_000)
    assert [one for one, _ in line.heard(ring, 10_000)] == [sink]
    assert not line.busy


def test_only_what_is_heard_is_skipped(line: Line, ring: Ring) -> None:
    first, second = added(line, ring, "1"), added(line, ring, "2")
    assert not line.skip(first, ring)
    speak(line, ring, first, 0, last=True)
    speak(line, ring, second, 0)
    assert not line.skip(second, ring)


def test_of_those_that_are_stopped_none_begins(line: Line, ring: Ring) -> None:
    first, second, third = (added(line, ring, name) for name in "123")
    speak(line, ring, first, 0)
    for sink in (second, third):
        sink.queue(AudioChunk(noise(0.1, RATE)))
        line.ready(sink, ring)
    assert line.writer is first
    line.stop([first, second], ring)
    line.leave(first, ring)
    assert line.everybody == [third]
    assert line.writer is third


# -- pauses to the sample ---------------------------------------------------------------------------


def do(line: Line, ring: Ring, sink: PlayerSink, what: Do, value: float = 1.0) -> list[PlayerSink]:
    return obey(Order(what, value=value), [sink], line, ring, Fader())


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 2_000), st.booleans()), min_size=1, max_size=8),
    st.integers(1, 1_999),
    st.booleans(),
)
def test_a_pause_loses_and_repeats_no_sample(steps: list[tuple[int, bool]], late: int, another: bool) -> None:
    """However the callbacks fall: after the fades taken out, all that is heard is the whole, once."""
    line, ring = Line(Speech(), lambda *_: None), Ring(RATE, 2)
    sound = np.linspace(0.2, 0.4, RATE // 2, dtype=np.float32)
    sink = added(line, ring)
    sink.job.announce()
    other = added(line, ring, "2") if another else None
    sink.queue(AudioChunk(sound, last=True))
    line.ready(sink, ring)
    heard: list[Samples] = []

    def pump() -> None:
        while line.pump(ring, RATE):
            pass

    pump()
    if other is not None:
        other.queue(AudioChunk(np.full(600, -0.9, np.float32), last=True))
        line.ready(other, ring)
    for frames, wait in steps:
        heard.append(listen(ring, frames))
        if not do(line, ring, sink, "pause"):
            break
        news = line.news()[1]
        assert not news or news[0][1] == Paused(pytest.approx(sink.heard_s(ring.read), abs=0.05), "asked")
        if wait:
            pump()
            heard.append(listen(ring, late))
            line.settle(ring)
            heard.append(listen(ring, 3_000))
        do(line, ring, sink, "resume")
        for _ in range(4):  # the reader is to leave what was cut out
            pump()
            heard.append(listen(ring, 100))
    while ring.backlog or line.writer:
        pump()
        heard.append(listen(ring, 997))
    out = np.concatenate(heard)
    mine = out[out > 0]
    # Where it was paused a fade lies over the sound, which comes once more as it fades in.
    paused = len(steps)
    assert len(sound) - 2 * paused <= len(mine) <= len(sound) + paused * FADE_FRAMES
    assert np.count_nonzero(~np.isin(sound, mine)) <= paused * FADE_FRAMES
    assert mine.sum() == pytest.approx(sound.sum(), abs=paused * FADE_FRAMES * 0.2)
    if another:
        assert len(out[out < 0]) >= 600, "the other one is heard to its end"


def test_what_is_paused_is_silent_within_a_fade_and_goes_on_at_the_sample(line: Line, ring: Ring) -> None:
    sound = np.linspace(0.2, 0.4, TENTH, dtype=np.float32)
    sink = added(line, ring)
    sink.queue(AudioChunk(sound, last=True))
    line.ready(sink, ring)
    line.pump(ring, RATE)
    assert np.array_equal(listen(ring, 1_000), sound[:1_000])
    do(line, ring, sink, "pause")
    faded = listen(ring, 1_000)
    assert np.flatnonzero(faded)[-1] < FADE_FRAMES
    line.settle(ring)
    assert sink.heard_s(ring.read) == pytest.approx(1_000 / RATE)
    do(line, ring, sink, "resume")
    line.pump(ring, RATE)
    rest = listen(ring, TENTH)
    assert np.allclose(
        faded[:FADE_FRAMES] + rest[:FADE_FRAMES], sound[1_000 : 1_000 + FADE_FRAMES], atol=1e-6
    )
    assert np.array_equal(rest[FADE_FRAMES : TENTH - 1_000], sound[1_000 + FADE_FRAMES :])
    assert [one for one, _ in line.heard(ring, 10 * RATE)] == [sink]


def test_a_pause_without_a_device_keeps_all_that_was_not_read(line: Line, ring: Ring) -> None:
    sink = added(line, ring)
    speak(line, ring, sink, 0, last=True)
    listen(ring, 1_000)
    do(line, ring, sink, "pause")
    line.settle(None)
    ring.reset()
    do(line, ring, sink, "resume")
    line.pump(ring, RATE)
    assert ring.backlog == TENTH - 1_000


def test_a_paused_job_goes_on_at_another_rate(line: Line) -> None:
    first, second = Ring(RATE, 2), Ring(RATE, 1)
    sink = added(line, first)
    speak(line, first, sink, 0)
    listen(first, TENTH // 2)
    do(line, first, sink, "pause")
    line.settle(None)
    do(line, second, sink, "resume")
    sink.queue(AudioChunk(noise(0.1, RATE), last=True, time_s=0.1))
    while line.pump(second, RATE // 2):
        pass
    assert sink.end is not None
    assert sink.end == pytest.approx(0.15 * RATE / 2, abs=4)
    assert sink.heard_s(sink.end) == pytest.approx(0.2, abs=1e-3)


def test_a_paused_sentence_can_be_skipped(line: Line, ring: Ring) -> None:
    sink = added(line, ring)
    speak(line, ring, sink, 0)
    speak(line, ring, sink, 1, last=True)
    listen(ring, 1_000)
    do(line, ring, sink, "pause")
    listen(ring, 1_000)
    line.settle(ring)
    assert do(line, ring, sink, "skip") == [sink]
    do(line, ring, sink, "resume")
    line.pump(ring, RATE)
    assert ring.backlog == TENTH
    assert np.allclose(listen(ring, TENTH), noise(0.1, RATE, seed=1), atol=1e-6), "no fade: it is a beginning"


def test_those_that_come_while_all_is_held_wait_but_for_alarms(line: Line, ring: Ring) -> None:
    obey(Order("pause", everything=True), [], line, ring, Fader())
    text = added(line, ring, "1")
    speak(line, ring, text, 0, last=True)
    assert (line.writer, text.job.phase, ring.backlog) == (None, "paused", 0)
    alarm = make_job("2")
    alarm.priority = Priority.IMPORTANT
    loud = PlayerSink(Player(Audio(enabled=False), lambda: None), alarm, RATE, 1.0)
    line.add(loud, usual(alarm), 0.0, ring)
    speak(line, ring, loud, 0, last=True)
    assert ring.backlog == TENTH
    obey(Order("resume", everything=True), [text], line, ring, Fader())
    line.pump(ring, RATE)
    assert ring.backlog == 2 * TENTH


# -- speed and volume -------------------------------------------------------------------------------


def test_another_speed_counts_from_the_next_sentence_on(
    line: Line, ring: Ring, sent_back: list[tuple[str, int, int]]
) -> None:
    sink = added(line, ring)
    for utterance in range(3):
        speak(line, ring, sink, utterance)
    sink.queue(AudioChunk(noise(0.1, RATE), False, 3, time_s=0.3))
    listen(ring, 1_000)
    do(line, ring, sink, "speed", 1.5)
    assert sent_back == [("1", 1, 1)]
    assert (sink.job.pace, ring.backlog) == (1.5, TENTH - 1_000), "the sentence that is heard goes on"
    sink.queue(AudioChunk(noise(0.1, RATE, seed=9), True, 1, sink.take, time_s=0.1))
    while line.pump(ring, RATE):
        pass
    rest = listen(ring, 2 * TENTH - 1_000)
    assert np.allclose(rest[: TENTH - 1_000], noise(0.1, RATE)[1_000:], atol=1e-6)
    assert np.allclose(rest[TENTH - 1_000 :], noise(0.1, RATE, seed=9), atol=1e-6)


def test_a_sentence_that_is_not_whole_is_not_spoken_anew(
    line: Line, ring: Ring, sent_back: list[tuple[str, int, int]]
) -> None:
    sink = added(line, ring)
    speak(line, ring, sink, 0)
    listen(ring, 1_000)
    do(line, ring, sink, "speed", 1.5)
    assert not sent_back, "what comes next is not begun, and will have the new speed by itself"


@pytest.mark.parametrize("volume", [0.5, 0.1, 0.0])
def test_a_lower_volume_of_a_job_is_heard_at_once_and_only_in_that_job(
    line: Line, ring: Ring, volume: float
) -> None:
    sink, other = added(line, ring, "1"), added(line, ring, "2")
    for one in (sink, other):
        one.queue(AudioChunk(np.full(4 * TENTH, 0.2, np.float32), last=True))
        line.ready(one, ring)
    while line.pump(ring, RATE):
        pass
    heard = [listen(ring, 480) for _ in range(5)]
    do(line, ring, sink, "volume", volume)
    heard += [listen(ring, 480) for _ in range(20)]
    do(line, ring, sink, "mute")
    do(line, ring, sink, "unmute")
    heard += [listen(ring, 480) for _ in range(15 + 40)]
    out = np.concatenate(heard)
    assert out[:2_400] == pytest.approx(0.2)
    assert out[2_400 + RAMP_FRAMES : 19_200] == pytest.approx(0.2 * volume, abs=1e-6)
    assert out[19_200 + RAMP_FRAMES : 8 * TENTH] == pytest.approx(0.2)
    assert np.abs(np.diff(out[: 8 * TENTH])).max() <= 0.2 * 1.01 / RAMP_FRAMES


def test_who_follows_a_soft_job_is_heard_at_his_own_volume(line: Line, ring: Ring) -> None:
    sink, other = added(line, ring, "1"), added(line, ring, "2")
    for one in (sink, other):
        one.queue(AudioChunk(np.full(TENTH, 0.2, np.float32), last=True))
        line.ready(one, ring)
    while line.pump(ring, RATE):
        pass
    do(line, ring, sink, "volume", 0.1)
    listen(ring, TENTH)
    listen(ring, RAMP_FRAMES)
    assert listen(ring, TENTH - RAMP_FRAMES) == pytest.approx(0.2)


def test_louder_reaches_what_is_not_in_the_ring_and_is_limited(line: Line, ring: Ring) -> None:
    sink = added(line, ring)
    sink.queue(AudioChunk(np.full(TENTH, 0.3, np.float32)))
    line.ready(sink, ring)
    while line.pump(ring, RATE):
        pass
    do(line, ring, sink, "volume", 2.0)
    sink.queue(AudioChunk(np.full(2 * TENTH, 0.3, np.float32)))
    sink.queue(AudioChunk(np.full(TENTH, 0.9, np.float32), last=True))
    while line.pump(ring, RATE):
        pass
    out = listen(ring, 4 * TENTH)
    assert np.abs(np.diff(out[: 3 * TENTH - 1_000])).max() < 0.3 * 1.05 / TENTH
    assert out[2 * TENTH : 3 * TENTH - 1_000] == pytest.approx(0.6)
    assert np.abs(out).max() < 10 ** (-1 / 20)


# -- what is told -----------------------------------------------------------------------------------


def test_sentences_marks_and_pauses_are_told_when_they_are_heard(ring: Ring) -> None:
    late = 500
    line = Line(Speech(), lambda *_: None, lambda: late)
    sink = added(line, ring)
    told: list[tuple[int, News]] = []

    def hear(frames: int) -> None:
        for _ in range(0, frames, 50):
            listen(ring, 50)
            for one, news in line.told(ring):
                one.job.announce(heard=True)
                told.extend((ring.read, each) for each in news)

    speak(line, ring, sink, 0)
    sink.queue(AudioChunk(np.zeros(0, np.float32), mark="here", time_s=0.1))
    speak(line, ring, sink, 1, last=True)
    hear(late)
    assert not told, "the device has it, and nobody heard it"
    assert not sink.job.announced
    assert line.next_news(ring) == 1
    hear(TENTH + 200)
    assert sink.job.announced
    assert [news for _, news in told] == [
        SentenceReached(0, 0.0),
        MarkReached("here", 0.1),
        SentenceReached(1, 0.1),
    ]
    assert told[0][0] == late + 50
    assert 0 <= told[1][0] - late - TENTH <= 50
    told.clear()
    do(line, ring, sink, "pause")
    (_, paused), *_ = line.news()[1]
    assert paused == Paused(pytest.approx(ring.read / RATE), "asked")
    hear(1_000)
    line.settle(ring)
    do(line, ring, sink, "resume")
    line.pump(ring, RATE)
    hear(late + 100)
    assert [news for _, news in told] == [Resumed(pytest.approx(paused.time_s))]


def test_marks_of_what_is_skipped_are_not_told(line: Line, ring: Ring) -> None:
    sink = added(line, ring)
    speak(line, ring, sink, 0)
    sink.queue(AudioChunk(np.zeros(0, np.float32), mark="left out", time_s=0.1))
    speak(line, ring, sink, 0)
    sink.queue(AudioChunk(np.zeros(0, np.float32), mark="next", utterance=1, time_s=0.2))
    speak(line, ring, sink, 1, last=True)
    listen(ring, 1_000)
    line.told(ring)
    do(line, ring, sink, "skip")
    listen(ring, TENTH)
    assert [news for _, several in line.told(ring) for news in several] == [
        MarkReached("next", 0.2),
        SentenceReached(1, pytest.approx(0.1)),
    ]


def test_a_mark_behind_everything_is_told_with_the_end(ring: Ring) -> None:
    line = Line(Speech(), lambda *_: None)
    job = make_job()
    sink = PlayerSink(Player(Audio(enabled=False), lambda: None), job, 22_050, 1.0)
    line.add(sink, usual(job), 0.0, ring)
    sink.queue(AudioChunk(noise(0.1003, 22_050)))
    sink.queue(AudioChunk(np.zeros(0, np.float32), mark="end", time_s=0.1))
    sink.queue(AudioChunk(np.zeros(0, np.float32), last=True))
    line.ready(sink, ring)
    while line.pump(ring, RATE):
        pass
    listen(ring, ring.backlog)
    told = [news for _, several in line.told(ring) for news in several]
    ((_, rest),) = line.heard(ring, RATE)
    assert [news for news in [*told, *rest] if isinstance(news, MarkReached)] == [MarkReached("end", 0.1)]


def test_a_pause_that_a_dead_device_never_saw_is_settled(line: Line, ring: Ring) -> None:
    sink = added(line, ring)
    speak(line, ring, sink, 0, last=True)
    listen(ring, 1_000)
    do(line, ring, sink, "pause")
    other = Ring(RATE, 1)
    do(line, other, sink, "resume")
    do(line, other, sink, "pause")
    do(line, other, sink, "resume")
    assert line.pump(other, RATE)
    assert other.backlog == TENTH - 1_000
