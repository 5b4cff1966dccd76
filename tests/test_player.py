"""The player against a real sound server: what its monitor records is what was written."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import soxr

from edged.audio.fader import RAMP_FRAMES
from edged.audio.output import Output
from edged.audio.player import Player
from edged.audio.ring import FADE_FRAMES
from edged.audio.segment import PlayerSink
from edged.errors import AudioDeviceLost, DeadlineMissed, NoAudioDevice, ShuttingDown
from edged.job import (
    AudioChunk,
    Job,
    JobState,
    News,
    Params,
    Paused,
    Resumed,
    Samples,
    SentenceReached,
)
from edged.settings import Audio
from edged.speech.orders import Order
from edged.voices import golden
from tests import bundles
from tests.pulse import RATE, PulseServer, Recording, find, pulse, pulse_server, snr_db, wait_until
from tests.sounds import make_job, noise, usual, write_all

__all__ = ["pulse", "pulse_server"]
pytestmark = pytest.mark.audio
VOICE = 24_000


@contextlib.contextmanager
def playing(wake: Any = lambda: None, **settings: Any) -> Iterator[Player]:
    # The latency lets the tests pass on a machine that is busy with others.
    player = Player(Audio(device="pulse", **{"latency_ms": 150, **settings}), wake)
    player.start()
    try:
        yield player
    finally:
        player.close(0.0)
        assert not any(thread.name == "edged-player" for thread in threading.enumerate())


def speak(
    player: Player, id: str, sound: Samples, size: int = 6_000, within_s: float = 0.0, **params: float
) -> Job:
    """A job whose audio is written at once, as a fast voice does. within_s: its deadline."""
    job = make_job(id, **params)
    if within_s:
        job.deadline = time.monotonic() + within_s
    job.sink = player.sink(job, VOICE, usual(job))
    job.start()
    write_all(job.sink, sound, size)
    return job


def finish(*jobs: Job) -> None:
    for job in jobs:
        wait_until(lambda job=job: job.ended, 15, f"end of job {job.id}")


def resampled(sound: Samples) -> Samples:
    return np.asarray(soxr.resample(sound, VOICE, RATE))


def hear(recording: Recording, settle_s: float = 0.4) -> Samples:
    """The recording so far, once what was played has come through; both channels are the same."""
    until = recording.seconds + settle_s
    wait_until(lambda: recording.seconds >= until, what="the recorder going on")
    heard = recording.samples
    assert np.array_equal(heard[:, 0], heard[:, 1])
    return heard[:, 0]


def assert_heard(expected: Samples, heard: Samples, first: int | None = None) -> int:
    """All of `expected` is in `heard`, to the sample; returns where it begins."""
    at = find(expected, heard) if first is None else first
    assert snr_db(expected, heard[at : at + len(expected)]) > 80
    return at


def assert_silent(heard: Samples) -> None:
    assert np.abs(heard).max(initial=0.0) < 1e-4


def test_what_is_heard_is_what_was_written(pulse: PulseServer) -> None:
    sound = noise(1.5, VOICE)
    with playing() as player, pulse.record() as recording:
        began = time.monotonic()
        job = speak(player, "1", sound)
        finish(job)
        ended = recording.seconds
        heard = hear(recording)
        assert (player.error, player.device, player.underruns) == (None, "pulse", 0)
    assert job.state is JobState.DONE
    assert began < job.timeline.first_audio < began + 1.0
    assert job.timeline.ended - job.timeline.first_audio >= 1.5
    expected = resampled(sound)
    at = assert_heard(expected, heard)
    assert_silent(heard[:at])
    assert_silent(heard[at + len(expected) :])
    # Done means heard: not before the last sample was out, nor long after it (the latency is 0.15 s).
    assert -0.05 < ended - (at + len(expected)) / RATE < 0.6


@pytest.mark.parametrize("keep_open_s", [0.0, 2.0])
def test_no_word_is_clipped_on_a_cold_or_a_warm_stream(pulse: PulseServer, keep_open_s: float) -> None:
    sounds = [noise(0.3, VOICE, seed=i) for i in range(3)]
    with playing(keep_open_s=keep_open_s) as player, pulse.record() as recording:
        for i, sound in enumerate(sounds):
            finish(speak(player, str(i), sound))
            if keep_open_s == 0:
                wait_until(lambda: player._speaker.output is None, what="the stream closed")
            assert (player._speaker.output is not None) == (keep_open_s > 0)
        heard = hear(recording)
    places = [assert_heard(resampled(sound), heard) for sound in sounds]
    assert places == sorted(places)


def test_closing_at_once_does_not_clip_either(pulse: PulseServer) -> None:
    sound = noise(0.5, VOICE)
    with pulse.record() as recording:
        with playing() as player:
            job = speak(player, "1", sound)
            player.close(drain_s=5.0)
        assert job.state is JobState.DONE
        assert_heard(resampled(sound), hear(recording))


def test_jobs_follow_each_other_without_a_gap(pulse: PulseServer) -> None:
    sounds = [noise(s, VOICE, seed=i) for i, s in enumerate((0.8, 0.25, 0.05, 0.6))]
    with playing() as player, pulse.record() as recording:
        jobs = [speak(player, str(i), sound) for i, sound in enumerate(sounds)]
        finish(*jobs)
        heard = hear(recording)
        assert player.underruns == 0
    ends = [job.timeline.ended for job in jobs]
    assert ends == sorted(ends)
    whole = np.concatenate([resampled(sound) for sound in sounds])
    at = assert_heard(whole, heard)
    assert_silent(heard[:at])


@pytest.mark.parametrize("while_writing", [False, True])
def test_a_cancelled_job_stops_at_once_and_the_next_is_whole(pulse: PulseServer, while_writing: bool) -> None:
    first, second = noise(6.0 if while_writing else 1.8, VOICE, 1), noise(0.5, VOICE, 2)
    with playing() as player, pulse.record() as recording:
        job = speak(player, "1", first)
        wait_until(lambda: job.timeline.first_audio, what="the first job heard")
        time.sleep(0.7)
        # In one case the first job is in the ring to its end and the second behind it, in the other it
        # is still being written and the second waits.
        following = speak(player, "2", second)
        time.sleep(0.1)
        assert (following.timeline.first_audio == 0.0) == while_writing
        cut_at = recording.seconds
        assert job.cancel()
        finish(following)
        heard = hear(recording)
        assert player.underruns == 0
    assert following.state is JobState.DONE
    expected = resampled(second)
    at = assert_heard(expected, heard)
    assert_silent(heard[at + len(expected) :])
    assert 0.0 < at / RATE - cut_at < 0.3
    # The first job was heard as written until the cut, and nothing of it after.
    start = find(resampled(first)[: RATE // 4], heard)
    assert_heard(resampled(first)[: int((cut_at - 0.05) * RATE) - start], heard, start)
    last = int(np.flatnonzero(np.abs(heard[:at]) > 1e-3)[-1])
    assert last / RATE - cut_at < 0.2 + 0.1  # the latency, and what the machine takes


def test_cancelling_what_waits_in_the_ring_leaves_the_others_whole(pulse: PulseServer) -> None:
    sounds = [noise(0.5, VOICE, seed=i) for i in range(4)]
    with playing() as player, pulse.record() as recording:
        jobs = [speak(player, str(i), sound) for i, sound in enumerate(sounds)]
        wait_until(lambda: all(job.timeline.first_audio for job in jobs[:3]), what="three jobs in the ring")
        jobs[1].cancel()
        jobs[2].cancel()
        finish(*jobs)
        heard = hear(recording)
    assert [job.state.value for job in jobs] == ["done", "cancelled", "cancelled", "done"]
    whole = np.concatenate([resampled(sounds[0]), resampled(sounds[3])])
    at = assert_heard(whole, heard)
    assert_silent(heard[at + len(whole) :])


def test_one_job_writes_at_a_time_and_the_queue_is_bounded(pulse: PulseServer) -> None:
    woken = threading.Event()
    with playing(woken.set, buffer_s=1.0) as player:
        first, second = make_job("1"), make_job("2")
        first.sink, second.sink = (
            player.sink(first, VOICE, usual(first)),
            player.sink(second, VOICE, usual(second)),
        )
        assert first.sink.ready()
        assert second.sink.ready()
        first.sink.write(AudioChunk(noise(0.2, VOICE)))
        assert first.sink.ready()
        assert not second.sink.ready()
        for _ in range(4):  # more than ring and queue take
            first.sink.write(AudioChunk(noise(1.0, VOICE)))
        assert not first.sink.ready()
        woken.clear()
        assert woken.wait(5)
        wait_until(first.sink.ready)
        assert not second.sink.ready()
        woken.clear()
        first.sink.write(AudioChunk(noise(0.1, VOICE), last=True))
        wait_until(second.sink.ready)
        assert woken.is_set()
        assert not first.ended  # it is still heard while the second may be synthesized
        assert first.cancel()
        assert second.sink.ready()


def test_an_aborted_writer_frees_the_loudspeaker(pulse: PulseServer) -> None:
    with playing() as player:
        first, second = make_job("1"), make_job("2")
        first.sink, second.sink = (
            player.sink(first, VOICE, usual(first)),
            player.sink(second, VOICE, usual(second)),
        )
        first.sink.write(AudioChunk(noise(5.0, VOICE)))
        assert not second.sink.ready()
        first.cancel()
        assert second.sink.ready()
        first.sink.write(AudioChunk(noise(1.0, VOICE)))  # the engine did not know yet
        assert second.sink.ready()


def test_a_slow_voice_is_heard_whole_with_counted_gaps(pulse: PulseServer) -> None:
    parts = [noise(0.2, VOICE, seed=i) for i in range(3)]
    with playing() as player, pulse.record() as recording:
        job = make_job()
        job.sink = player.sink(job, VOICE, usual(job))
        for i, part in enumerate(parts):
            job.sink.write(AudioChunk(part, last=i == 2))
            time.sleep(0.7)
        finish(job)
        heard = hear(recording)
        assert player.underruns == 2
    energy = [float(np.sum(resampled(part) ** 2)) for part in parts]
    assert float(np.sum(heard.astype(np.float64) ** 2)) == pytest.approx(sum(energy), rel=0.02)


def test_volumes_multiply(pulse: PulseServer) -> None:
    sound = noise(0.4, VOICE)
    with playing(volume=0.5) as player, pulse.record() as recording:
        finish(speak(player, "1", sound, volume=0.5))
        assert_heard(resampled(sound * np.float32(0.25)), hear(recording))


def true_peak(sound: Samples) -> float:
    return float(np.abs(soxr.resample(sound.astype(np.float64), RATE, 8 * RATE, quality="VHQ")).max())


@pytest.mark.parametrize(("volume", "level"), [(1.0, 4.0), (4.0, 1.0)])
def test_a_voice_that_is_too_loud_is_limited_to_its_ends(
    pulse: PulseServer, volume: float, level: float
) -> None:
    """The noise has peaks at half of full scale: it is made 6 dB louder than that."""
    sound = noise(1.0, VOICE) * np.float32(level)
    with playing(volume=volume) as player, pulse.record() as recording:
        finish(speak(player, "1", sound))
        heard = hear(recording)
    assert 10 ** (-2 / 20) < true_peak(heard) <= 10 ** (-1 / 20)
    wanted = resampled(sound * np.float32(volume))
    at = find(wanted, heard)
    played = heard[at : at + len(wanted)]
    assert_silent(heard[:at])
    assert_silent(heard[at + len(wanted) :])
    # Turned down and nothing else: what has a sign keeps it, and is no louder.
    assert (played * wanted >= -1e-6).all()
    assert (np.abs(played) <= np.abs(wanted) + 1e-4).all()


@pytest.mark.parametrize(("lufs", "gain_db"), [(-26.0, 6.0), (-14.0, -6.0), (-50.0, 12.0), (None, 0.0)])
def test_a_voice_is_brought_to_the_loudness_that_is_set(
    pulse: PulseServer, lufs: float | None, gain_db: float
) -> None:
    sound = noise(0.5, VOICE) * np.float32(0.4)
    with playing(loudness_lufs=-20.0) as player, pulse.record() as recording:
        job = make_job()
        job.sink = player.sink(job, VOICE, usual(job))
        job.sink.write(AudioChunk(sound, last=True, loudness_lufs=lufs))
        finish(job)
        assert_heard(resampled(sound * np.float32(10 ** (gain_db / 20))), hear(recording))


def test_the_built_in_voice_is_heard_at_the_target(pulse: PulseServer) -> None:
    pyloudnorm = pytest.importorskip("pyloudnorm", reason="pyloudnorm is not installed (extra compile)")
    voice = bundles.voice(bundles.hibari())
    text = "Gate three is open. Please stand clear! Is anyone there? The belt starts in ten seconds."
    speech = golden.speak(voice, text, Params())
    with playing(loudness_lufs=-23.0) as player, pulse.record() as recording:
        job = make_job()
        job.sink = player.sink(job, voice.card.sample_rate, usual(job))
        job.sink.write(AudioChunk(speech, last=True, loudness_lufs=voice.card.loudness_lufs))
        finish(job)
        heard = hear(recording)
    assert pyloudnorm.Meter(RATE).integrated_loudness(heard.astype(float)) == pytest.approx(-23.0, abs=1.0)


def test_volume_and_mute_act_at_once_and_without_a_step(pulse: PulseServer) -> None:
    level = 0.5
    with playing() as player, pulse.record() as recording:
        job = speak(player, "1", np.full(3 * VOICE, level, np.float32))
        wait_until(lambda: np.abs(recording.samples[-480:]).max(initial=0.0) > 0.4, what="the job heard")
        times = []
        for do, value in (("volume", 0.3), ("mute", 1.0), ("unmute", 1.0)):
            times.append(recording.seconds)
            player.control([], Order(do, everything=True, value=value))  # type: ignore[arg-type]
            time.sleep(0.5)
        finish(job)
        heard = hear(recording)
        assert (player.volume, player.muted, player.underruns) == (0.3, False, 0)
    first, last = np.flatnonzero(np.abs(heard) > 0.01)[[0, -1]]
    steps = np.abs(np.diff(heard))[first + RATE // 50 : last - RATE // 50]
    assert steps.max() <= 1.05 * level / RAMP_FRAMES
    # What the device holds is heard before: its latency (0.15 s), and what the machine takes.
    for at, expected in zip(times, (0.3 * level, 0.0, 0.3 * level), strict=True):
        settled = int((at + 0.15 + 0.05 + 0.15) * RATE)
        assert np.abs(heard[settled : settled + RATE // 50] - expected).max() < 1e-3
    silent = heard[first:last] == 0.0
    fall = np.flatnonzero(silent)[0]
    assert heard[first:last][fall - RATE // 20] == pytest.approx(0.3 * level, abs=1e-3)  # silence in 50 ms


def test_a_pause_is_silence_and_what_follows_goes_on_at_the_sample(pulse: PulseServer) -> None:
    sound = noise(3.0, VOICE)
    expected = np.asarray(soxr.resample(sound, VOICE, RATE))
    news: list[News] = []
    with playing() as player, pulse.record() as recording:
        job = make_job()
        job.on_news = lambda _, one: news.append(one)
        job.sink = player.sink(job, VOICE, usual(job))
        write_all(job.sink, sound, 2_400)
        for number in range(1, 4):
            wait_until(lambda: np.abs(recording.samples[-480:]).max(initial=0.0) > 0.05, what="it is heard")
            time.sleep(0.11 * number)
            assert player.control([job], Order("pause")) == [job]
            assert not player.control([job], Order("pause")), "it is already"
            wait_until(lambda: np.abs(recording.samples[-RATE // 10 :]).max() == 0.0, what="silence")
            assert job.phase == "paused"
            assert player.control([job], Order("resume")) == [job]
        finish(job)
        heard = hear(recording)
        assert player.underruns == 0
    resumed = [round(one.time_s * RATE) for one in news if isinstance(one, Resumed)]
    paused = [round(one.time_s * RATE) for one in news if isinstance(one, Paused)]
    assert len(resumed) == len(paused) == 3
    assert [type(one) for one in news] == [SentenceReached, *[Paused, Resumed] * 3]
    at = 0
    for begin, end in zip([0, *resumed], [*resumed, len(expected)], strict=True):
        part = expected[begin + FADE_FRAMES * (begin > 0) : end]
        found = find(part, heard[at:])
        assert snr_db(part, heard[at + found : at + found + len(part)]) > 60
        if begin:  # since the end of the fade out
            assert not heard[at + FADE_FRAMES : at + found - FADE_FRAMES].any()
            assert found > RATE // 10
        at += found + len(part)
    assert not heard[at:].any()


def test_voices_of_other_rates(pulse: PulseServer) -> None:
    with playing() as player, pulse.record() as recording:
        for rate in (16_000, 22_050, 48_000):
            job = make_job(str(rate))
            job.sink = player.sink(job, rate, usual(job))
            sound = noise(0.4, rate, seed=rate)
            write_all(job.sink, sound, 1_111)
            finish(job)
            assert_heard(np.asarray(soxr.resample(sound, rate, RATE)), hear(recording))


def test_an_empty_job_is_done(pulse: PulseServer) -> None:
    with playing() as player:
        job = speak(player, "1", np.zeros(0, dtype=np.float32))
        finish(job)
        assert job.state is JobState.DONE


def test_an_idle_player_closes_its_stream(pulse: PulseServer) -> None:
    with playing(keep_open_s=0.3) as player:
        finish(speak(player, "1", noise(0.1, VOICE)))
        assert player._speaker.output is not None
        wait_until(lambda: player._speaker.output is None, 3)
        finish(speak(player, "2", noise(0.1, VOICE)))
        assert player._speaker.output is not None


def test_closing_fails_what_could_not_be_played(pulse: PulseServer) -> None:
    with playing() as player:
        jobs = [speak(player, str(i), noise(5.0, VOICE)) for i in range(2)]
        wait_until(lambda: jobs[0].timeline.first_audio)
        began = time.monotonic()
        player.close(drain_s=0.3)
        assert time.monotonic() - began < 2.0
        assert [type(job.error) for job in jobs] == [ShuttingDown, ShuttingDown]
        with pytest.raises(ShuttingDown):
            player.sink(make_job(), VOICE, usual(make_job()))


def test_a_job_that_was_cancelled_before_it_knew_its_sink(pulse: PulseServer) -> None:
    with playing() as player, pulse.record() as recording:
        job = make_job("1")
        sink = player.sink(job, VOICE, usual(job))
        sink.write(AudioChunk(noise(1.0, VOICE)))
        job.cancel()  # job.sink is not set
        sound = noise(0.3, VOICE, 5)
        finish(speak(player, "2", sound))
        assert_heard(resampled(sound), hear(recording))


def test_without_a_sound_server(monkeypatch: pytest.MonkeyPatch, pulse: PulseServer) -> None:
    pulse.stop()
    with playing() as player:
        wait_until(lambda: player.error, what="the error")
        assert isinstance(player.error, NoAudioDevice)
        for _ in range(3):
            with pytest.raises(NoAudioDevice):
                player.sink(make_job(), VOICE, usual(make_job()))
        pulse.start()  # plugged in later
        time.sleep(1.1)
        with pulse.record() as recording:
            sound = noise(0.3, VOICE)
            finish(speak(player, "1", sound))
            assert player.error is None
            assert_heard(resampled(sound), hear(recording))


def test_an_unknown_device_names_the_known_ones(pulse: PulseServer) -> None:
    player = Player(Audio(device="Bose"), lambda: None)
    player.start()
    wait_until(lambda: player.error)
    with pytest.raises(NoAudioDevice) as caught:
        player.sink(make_job(), VOICE, usual(make_job()))
    assert "'pulse'" in caught.value.hint
    player.close()


def test_a_server_that_dies_fails_the_job_and_the_next_is_heard(pulse: PulseServer) -> None:
    with playing() as player:
        job = speak(player, "1", noise(5.0, VOICE))
        wait_until(lambda: job.timeline.first_audio)
        time.sleep(0.3)
        pulse.stop()
        finish(job)
        assert isinstance(job.error, AudioDeviceLost)
        wait_until(lambda: player._speaker.output is None)
        pulse.start()
        with pulse.record() as recording:
            sound = noise(0.4, VOICE, 3)
            finish(speak(player, "2", sound))
            assert_heard(resampled(sound), hear(recording))


def test_a_server_that_hangs_fails_the_job_in_time(pulse: PulseServer) -> None:
    with playing() as player:
        job = speak(player, "1", noise(20.0, VOICE))
        wait_until(lambda: job.timeline.first_audio)
        time.sleep(0.5)
        pulse.signal(signal.SIGSTOP)
        hung = time.monotonic()
        try:
            finish(job)
            assert isinstance(job.error, AudioDeviceLost)
            # The grace after opening, if that was just now, and the try to close.
            assert time.monotonic() - hung < 6.0
        finally:
            pulse.signal(signal.SIGCONT)
        wait_until(lambda: not Output.hung(), what="the stream closed")
        with pulse.record() as recording:
            sound = noise(0.4, VOICE, 4)
            finish(speak(player, "2", sound))
            assert_heard(resampled(sound), hear(recording))


def test_a_device_that_stops_for_a_while_goes_on_where_it_was(pulse: PulseServer) -> None:
    sound = noise(4.0, VOICE)
    with playing() as player, pulse.record() as recording:
        job = speak(player, "1", sound)
        wait_until(lambda: job.timeline.first_audio)
        opened = player._speaker.output
        time.sleep(1.0)
        pulse.suspend(True)
        try:
            wait_until(lambda: player._speaker.output not in (None, opened), 15, "the stream reopened")
        finally:
            pulse.suspend(False)
        finish(job)
        heard = hear(recording)
        assert player.underruns >= 1
    assert job.state is JobState.DONE, job.error
    expected = resampled(sound)
    begin, end = expected[: RATE // 2], expected[-RATE // 2 :]
    first = assert_heard(begin, heard)
    last = assert_heard(end, heard)
    # What the stuck device had not played is heard after all (0.15 s), but for what the server itself drops
    # when it suspends the sink and its monitor (0.05 s). Silence may be between.
    played = int(np.count_nonzero(heard[first : last + len(end)]))
    assert -0.15 < played / RATE - 4.0 < 0.35


def test_a_device_that_opens_but_takes_nothing_is_lost_in_the_end(pulse: PulseServer) -> None:
    with playing() as player:
        job = speak(player, "1", noise(4.0, VOICE))
        wait_until(lambda: job.timeline.first_audio)
        time.sleep(0.3)
        pulse.suspend(True)
        try:
            wait_until(lambda: job.ended, 25, "the end of the job")
        finally:
            pulse.suspend(False)
        assert isinstance(job.error, AudioDeviceLost)
        assert player.underruns <= 5


def test_a_server_that_hangs_while_the_stream_is_reopened(
    pulse: PulseServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with playing() as player:
        monkeypatch.setattr("edged.audio.output.OPEN_WAIT_S", 1.0)
        job = speak(player, "1", noise(20.0, VOICE))
        wait_until(lambda: job.timeline.first_audio)
        real_close = Output.close

        def close_and_hang(output: Output) -> None:
            real_close(output)
            pulse.signal(signal.SIGSTOP)

        monkeypatch.setattr(Output, "close", close_and_hang)
        monkeypatch.setattr(Output, "stalled", lambda output, now: True)
        hung = time.monotonic()
        try:
            finish(job)
            assert isinstance(job.error, AudioDeviceLost)
            assert time.monotonic() - hung < 4.0
            assert Output.hung()
        finally:
            monkeypatch.undo()
            pulse.signal(signal.SIGCONT)
        wait_until(lambda: not Output.hung(), what="the late stream closed")


@pytest.mark.parametrize("first_s", [1.5, 4.0])
def test_a_job_that_would_be_heard_after_its_deadline_fails(pulse: PulseServer, first_s: float) -> None:
    """first_s: the first job fits into the ring, or the second waits until it has been written."""
    sounds = [noise(s, VOICE, seed) for seed, s in enumerate((first_s, 0.4, 0.4))]
    with playing() as player, pulse.record() as recording:
        first = speak(player, "1", sounds[0])
        wait_until(lambda: first.timeline.first_audio)
        late = speak(player, "2", sounds[1], within_s=0.5)
        patient = speak(player, "3", sounds[2], within_s=30.0)
        finish(first, late, patient)
        heard = hear(recording)
    assert isinstance(late.error, DeadlineMissed)
    assert "after the deadline" in late.error.message
    assert late.timeline.first_audio == 0.0
    assert late.timeline.ended < first.timeline.ended
    assert [first.state, patient.state] == [JobState.DONE, JobState.DONE]
    whole = np.concatenate([resampled(sounds[0]), resampled(sounds[2])])
    at = assert_heard(whole, heard)
    assert_silent(heard[:at])
    assert_silent(heard[at + len(whole) :])


def test_a_job_in_time_for_its_deadline_is_heard(pulse: PulseServer) -> None:
    sound = noise(0.5, VOICE)
    with playing() as player, pulse.record() as recording:
        job = speak(player, "1", sound, within_s=15.0)
        finish(job)
        assert job.state is JobState.DONE
        assert job.deadline is not None
        assert job.timeline.first_audio < job.deadline
        assert_heard(resampled(sound), hear(recording))


def test_switched_off() -> None:
    player = Player(Audio(enabled=False), lambda: None)
    player.start()
    with pytest.raises(NoAudioDevice) as caught:
        player.sink(make_job(), VOICE, usual(make_job()))
    assert "audio.enabled" in caught.value.hint
    assert isinstance(player.error, NoAudioDevice)
    player.close()


def test_without_portaudio(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the import of sounddevice fails on a machine without the library."""
    import builtins
    import sys

    real = builtins.__import__

    def fails(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "sounddevice":
            raise OSError("PortAudio library not found")
        return real(name, *args, **kwargs)

    monkeypatch.delitem(sys.modules, "sounddevice", raising=False)
    monkeypatch.setattr(builtins, "__import__", fails)
    player = Player(Audio(), lambda: None)
    player.start()
    wait_until(lambda: player.error)
    assert isinstance(player.error, NoAudioDevice)
    assert "libportaudio2" in player.error.hint
    with pytest.raises(NoAudioDevice):
        player.sink(make_job(), VOICE, usual(make_job()))
    player.close()


def test_the_sink_is_what_the_job_expects() -> None:
    from edged.job import Sink

    sink: Sink = PlayerSink(Player(Audio(enabled=False), lambda: None), make_job(), VOICE, 0.0)
    assert not sink.ready(), "it is in no queue"
