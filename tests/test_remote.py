"""Pausing, resuming and skipping on a real sound server: nothing is lost, and nothing is heard twice."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pytest

from edged.audio.player import Player
from edged.audio.ring import FADE_FRAMES
from edged.errors import DeadlineMissed, ShuttingDown
from edged.job import AudioChunk, Job, JobState, Samples
from tests.pulse import RATE, PulseServer, Recording, find, pulse, pulse_server, snr_db, wait_until
from tests.sounds import make_job, noise
from tests.test_player import VOICE, assert_heard, assert_silent, finish, hear, playing, resampled

__all__ = ["pulse", "pulse_server"]
pytestmark = pytest.mark.audio


@dataclass
class Turns:
    """What a job told: whether it fell silent, how far in its audio, and when by the recorder's clock."""

    recording: Recording | None = None
    told: list[tuple[bool, float, float]] = field(default_factory=list)

    def __call__(self, job: Job, paused: bool, position_s: float) -> None:
        self.told.append((paused, position_s, self.recording.seconds if self.recording else 0.0))


def speak(
    player: Player, id: str, *sentences: Samples, turns: Turns | None = None, within_s: float = 0.0
) -> Job:
    """A job of these utterances, written at once."""
    job = make_job(id)
    job.on_turn = turns
    job.deadline = time.monotonic() + within_s if within_s else None
    job.sink = player.sink(job, VOICE)
    job.start()
    for number, sentence in enumerate(sentences):
        for at in range(0, len(sentence), 6_000):
            last = number == len(sentences) - 1 and at + 6_000 >= len(sentence)
            job.sink.write(AudioChunk(sentence[at : at + 6_000], last, number))
    return job


def heard_of(player: Player, job: Job, seconds: float) -> None:
    wait_until(lambda: (player.remote.position_s(job) or 0.0) >= seconds, what=f"{seconds} s heard")


def assert_pieces(expected: Samples, heard: Samples, cuts: list[int]) -> list[tuple[int, int]]:
    """All of `expected` is in `heard`, in pieces that begin at the cuts but for their fades; the places of
    each piece. What is between the pieces is silent, but for the fade of the one before."""
    edges = [0, *cuts, len(expected)]
    places = []
    for start, end in pairwise(edges):
        fade_in = FADE_FRAMES if start else 0
        piece = expected[start + fade_in : end]
        if len(piece) < FADE_FRAMES:
            continue
        at = find(piece, heard)
        assert snr_db(piece, heard[at : at + len(piece)]) > 60
        places.append((at - fade_in, at + len(piece)))
    for (_, before), (after, _) in pairwise(places):
        assert before <= after
        assert_silent(heard[before + FADE_FRAMES : after])
    return places


def frames(turns: Turns) -> list[int]:
    """Where the job was paused."""
    return [round(position * RATE) for paused, position, _ in turns.told if paused]


def test_a_paused_job_is_silent_and_goes_on_to_the_sample(pulse: PulseServer) -> None:
    sound = noise(1.6, VOICE)
    with playing() as player, pulse.record() as recording:
        turns = Turns(recording)
        job = speak(player, "1", sound, turns=turns)
        heard_of(player, job, 0.5)
        asked = recording.seconds
        assert player.remote.pause(job)
        assert not player.remote.pause(job)
        wait_until(lambda: turns.told, what="the pause told")
        time.sleep(0.4)
        position = player.remote.position_s(job)
        assert player.remote.resume(job)
        assert not player.remote.resume(job)
        finish(job)
        heard = hear(recording)
        assert player.underruns == 0
    assert job.state is JobState.DONE
    assert [paused for paused, _, _ in turns.told] == [True, False]
    assert position == turns.told[0][1] == turns.told[1][1]
    expected = resampled(sound)
    (_, silence), (again, end) = assert_pieces(expected, heard, frames(turns))
    assert_silent(heard[end:])
    # It falls silent within the latency (0.15 s) and what the machine takes, and is told to be so then.
    assert -0.1 < silence / RATE - asked < 0.4
    assert -0.1 < turns.told[0][2] - silence / RATE < 0.3
    assert -0.1 < turns.told[1][2] - again / RATE < 0.3
    # The fade out and the fade in together are the samples that they share.
    at = frames(turns)[0]
    both = heard[silence : silence + FADE_FRAMES] + heard[again : again + FADE_FRAMES]
    assert snr_db(expected[at : at + FADE_FRAMES], both) > 60


def test_the_next_job_is_heard_while_the_first_is_paused(pulse: PulseServer) -> None:
    """Both are in the ring when the first one is paused."""
    first, second = noise(1.2, VOICE, 1), noise(0.5, VOICE, 2)
    with playing() as player, pulse.record() as recording:
        turns = Turns()
        one, two = speak(player, "1", first, turns=turns), speak(player, "2", second)
        wait_until(lambda: two.timeline.first_audio, what="both in the ring")
        heard_of(player, one, 0.3)
        assert player.remote.pause(one)
        finish(two)
        assert not one.ended
        assert player.remote.resume(one)
        finish(one)
        heard = hear(recording)
    assert [one.state, two.state] == [JobState.DONE, JobState.DONE]
    (_, paused), (again, _) = assert_heard_around(resampled(first), heard, frames(turns), resampled(second))
    assert paused < again


def assert_heard_around(
    expected: Samples, heard: Samples, cuts: list[int], between: Samples
) -> list[tuple[int, int]]:
    """As `assert_pieces`, with another sound in the pause, which is whole."""
    at = assert_heard(between, heard)
    without = heard.copy()
    without[at : at + len(between)] = 0.0
    places = assert_pieces(expected, without, cuts)
    assert places[0][1] <= at + 2
    assert at + len(between) <= places[1][0] + 2
    return places


@pytest.mark.parametrize("how", ["sentence", "skip"])
def test_a_sentence_is_repeated_or_left_out(pulse: PulseServer, how: str) -> None:
    sentences = [noise(s, VOICE, seed) for seed, s in enumerate((0.4, 1.0, 0.3))]
    with playing() as player, pulse.record() as recording:
        turns = Turns()
        job = speak(player, "1", *sentences, turns=turns)
        heard_of(player, job, 0.7)
        if how == "skip":
            assert player.remote.skip(job)
        else:
            assert player.remote.pause(job)
            wait_until(lambda: turns.told, what="the pause told")
            assert player.remote.resume(job, "sentence")
        finish(job)
        heard = hear(recording)
    assert job.state is JobState.DONE
    first, second, third = (np.asarray(resampled(s)) for s in sentences)
    edge = RATE // 50  # the resampler hears what is beside an edge
    at = assert_heard(first[:-edge], heard)
    begun = at + len(first)
    last = assert_heard(third[edge:], heard) - edge
    if how == "skip":
        assert 0.2 < (last - begun) / RATE < 0.9  # a part of the second sentence
        assert_heard(second[edge : last - begun - RATE // 20], heard, begun + edge)
        return
    assert turns.told[1] == (False, pytest.approx(0.4, abs=1e-4), 0.0)
    stopped = begun + round((turns.told[0][1] - 0.4) * RATE)
    assert_heard(second[edge : stopped - begun], heard, begun + edge)
    again = last - len(second)
    assert again > stopped
    assert_heard(second[edge:-edge], heard, again + edge)
    assert_silent(heard[stopped + FADE_FRAMES : again - edge])


def test_skipping_the_last_sentence_ends_the_job(pulse: PulseServer) -> None:
    with playing() as player:
        job = speak(player, "1", noise(5.0, VOICE))
        assert not player.remote.skip(make_job("none"))
        heard_of(player, job, 0.2)
        assert player.remote.skip(job)
        wait_until(lambda: job.ended, 1.5, "the end")
        assert job.state is JobState.DONE


def test_what_the_engine_has_not_made_yet_is_asked_for(pulse: PulseServer) -> None:
    asked: list[tuple[int, int]] = []
    sound, following = noise(0.8, VOICE, 1), noise(0.4, VOICE, 2)
    with (
        playing(send_back=lambda job, utterance, take: asked.append((utterance, take))) as player,
        pulse.record() as recording,
    ):
        job = make_job("1")
        job.sink = player.sink(job, VOICE)
        job.sink.write(AudioChunk(sound))
        heard_of(player, job, 0.1)
        assert player.remote.skip(job)
        wait_until(lambda: asked, what="the next one asked for")
        job.sink.write(AudioChunk(sound))  # the engine did not know yet
        job.sink.write(AudioChunk(following, True, 1, 1))
        finish(job)
        heard = hear(recording)
        at = assert_heard(resampled(following), heard)
        assert at < find(resampled(sound)[: RATE // 20], heard) + 0.8 * RATE
        again = speak(player, "2", sound)
        heard_of(player, again, 0.1)
        player.remote.pause(again)
        player.remote.resume(again, "restart")
        wait_until(lambda: len(asked) == 2, what="all asked for")
        assert again.sink is not None
        again.sink.write(AudioChunk(sound, True, 0, 1))
        finish(again)
        assert_heard(resampled(sound), hear(recording)[len(heard) :])
    assert asked == [(1, 1), (0, 1)]


def test_a_pause_at_the_very_end_keeps_the_end_back(pulse: PulseServer) -> None:
    sound = noise(0.6, VOICE)
    with playing() as player, pulse.record() as recording:
        job = speak(player, "1", sound)
        wait_until(lambda: job.timeline.first_audio and player._speaker.ring.backlog == 0, what="all read")
        assert player.remote.pause(job)
        time.sleep(0.4)
        assert not job.ended
        assert player.remote.resume(job)
        finish(job)
        assert_heard(resampled(sound), hear(recording))
    assert job.state is JobState.DONE


def test_a_paused_job_can_be_cancelled_and_ends_with_the_player(pulse: PulseServer) -> None:
    with playing() as player, pulse.record() as recording:
        jobs = [speak(player, str(i), noise(3.0, VOICE, i)) for i in range(2)]
        heard_of(player, jobs[0], 0.2)
        player.remote.pause(jobs[0])
        jobs[0].cancel()
        heard_of(player, jobs[1], 0.2)
        player.remote.pause(jobs[1])
        time.sleep(0.3)
        assert not player.remote.resume(jobs[0])
        quiet = hear(recording)[-RATE // 10 :]
        began = time.monotonic()
        player.close(drain_s=5.0)
        assert time.monotonic() - began < 2.0
    assert_silent(quiet)
    assert isinstance(jobs[1].error, ShuttingDown)


def test_a_deadline_is_for_the_beginning(pulse: PulseServer) -> None:
    with playing() as player:
        job = speak(player, "1", noise(0.6, VOICE), within_s=1.0)
        behind = speak(player, "2", noise(0.6, VOICE), within_s=1.0)
        heard_of(player, job, 0.1)
        player.remote.pause(job)
        player.remote.pause(behind)
        time.sleep(1.0)
        player.remote.resume(job)
        player.remote.resume(behind)
        finish(job, behind)
    assert job.state is JobState.DONE
    assert isinstance(behind.error, DeadlineMissed)


def test_those_that_are_held_wait_and_make_no_more_than_the_buffer(pulse: PulseServer) -> None:
    with playing(buffer_s=1.0) as player:
        player.remote.hold(True)
        first, second = (speak(player, str(i), noise(2.0, VOICE, i)) for i in range(2))
        time.sleep(0.3)
        assert (first.timeline.first_audio, second.timeline.first_audio) == (0.0, 0.0)
        third = make_job("3")
        third.sink = player.sink(third, VOICE)
        assert not any(job.sink.ready() for job in (first, second, third) if job.sink)
        player.remote.hold(False)
        heard_of(player, first, 0.1)
        first.cancel()
        heard_of(player, second, 0.1)


def test_paused_often_and_at_any_time_nothing_is_lost(pulse: PulseServer) -> None:
    random = np.random.default_rng(5)
    sound = noise(3.5, VOICE)
    with playing() as player, pulse.record() as recording:
        turns = Turns()
        job = speak(player, "1", sound, turns=turns)
        heard_of(player, job, 0.1)
        for _ in range(20):
            time.sleep(random.uniform(0.0, 0.14))
            assert player.remote.pause(job)
            time.sleep(random.uniform(0.0, 0.06))
            assert player.remote.resume(job)
        finish(job)
        heard = hear(recording)
    assert len(frames(turns)) > 9  # a pause on the heels of another is the same one
    assert frames(turns) == sorted(frames(turns))
    # The sum of the pieces, fades and all, is the sound.
    assert float(np.sum(heard, dtype=np.float64)) == pytest.approx(float(np.sum(resampled(sound))), abs=0.05)
    assert_pieces(resampled(sound), heard, sorted(set(frames(turns))))
