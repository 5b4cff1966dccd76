"""Loudspeakers that differ, fall back, go away and come back, on a real sound server."""

from __future__ import annotations

import contextlib
import logging
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soxr

from edged.audio import device
from edged.audio.output import Output
from edged.audio.player import Player
from edged.errors import AudioDeviceLost, NoAudioDevice
from edged.job import Job, JobState, Samples
from edged.settings import Audio, Device
from tests.pulse import (
    RATE,
    PulseServer,
    Recording,
    find,
    name_sinks,
    pulse,
    pulse_server,
    snr_db,
    wait_until,
)
from tests.sounds import make_job, noise, usual, write_all

__all__ = ["pulse", "pulse_server"]
pytestmark = pytest.mark.audio
VOICE = 24_000
PLACES = "front-left,front-right,rear-left,rear-right,front-center,lfe,side-left,side-right"
MAPS = {1: "mono", 2: "front-left,front-right", 8: PLACES}


@contextlib.contextmanager
def playing(**settings: Any) -> Iterator[Player]:
    player = Player(Audio(**{"latency_ms": 150, "device": "edged", **settings}), lambda: None)
    player.start()
    try:
        yield player
    finally:
        player.close(0.0)
        assert not any(thread.name == "edged-player" for thread in threading.enumerate())


def speak(player: Player, sound: Samples) -> Job:
    job = make_job()
    job.sink = player.sink(job, VOICE, usual(job))
    job.start()
    write_all(job.sink, sound, 6_000)
    return job


def finish(job: Job, within_s: float = 15.0) -> None:
    wait_until(lambda: job.ended, within_s, "the end of the job")


def resampled(sound: Samples) -> Samples:
    return np.asarray(soxr.resample(sound, VOICE, RATE))


def heard_in(recording: Recording, sound: Samples, channel: int = 0) -> float:
    """How well the sound is heard, in dB, once what was played has come through."""
    until = recording.seconds + 0.4
    wait_until(lambda: recording.seconds >= until, what="the recorder going on")
    expected, heard = resampled(sound), recording.samples[:, channel]
    at = find(expected, heard)
    return snr_db(expected, heard[at : at + len(expected)]) if len(heard) - at >= len(expected) else 0.0


def inputs_of(pulse: PulseServer) -> list[str]:
    return pulse.pactl("list", "short", "sink-inputs").splitlines()


# -- which device, and how it is opened ---------------------------------------------------------


@pytest.mark.parametrize(
    ("latency_ms", "options", "own"),
    [
        (300, {"rate": 44_100, "channels": 2}, {"rate": 44_100}),
        (20, {"rate": 48_000, "channels": 1}, {"channels": 1}),
        (100, {"rate": 48_000, "channels": 8}, {"channels": 8}),
    ],
)
def test_any_device_is_heard_at_its_right_speed(
    pulse: PulseServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    latency_ms: int,
    options: dict[str, int],
    own: dict[str, int],
) -> None:
    channels = options["channels"]
    module = pulse.load("other", format="float32le", channel_map=MAPS[channels], **options)
    name_sinks(tmp_path, monkeypatch, "other")
    sound = noise(0.3, VOICE)
    entry = Device(match="oth*", latency_ms=latency_ms, trail_ms=0, **own)
    with (
        playing(device="other", devices=[entry]) as player,
        pulse.record("other", MAPS[channels]) as recording,
    ):
        job = speak(player, sound)
        finish(job)
        output = player._speaker.output
        assert output is not None
        assert output.speaker.rate == own.get("rate", RATE)
        assert output.speaker.channels == own.get("channels", 2)
        assert output.latency_s == pytest.approx(latency_ms / 1000, rel=0.3)
        # What the server resamples lies between two samples: 14 dB at worst. At a wrong speed it were 0.
        assert heard_in(recording, sound) > (60 if options["rate"] == RATE else 10)
        if own.get("channels") == 8:  # no copies on the centre and the low-frequency loudspeaker
            assert np.abs(recording.samples[:, 2:]).max() < 1e-4
    assert job.state is JobState.DONE
    pulse.unload(module)


def test_each_device_has_its_own_times(
    pulse: PulseServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name_sinks(tmp_path, monkeypatch, "edged")
    own = Device(match="EDG", lead_in_ms=700, trail_ms=400, keep_open_s=0.0, latency_ms=100)
    sound = noise(0.2, VOICE)
    with playing(devices=[own, Device(match="*", lead_in_ms=0)]) as player, pulse.record() as recording:
        for _ in range(2):  # the lead-in applies at each opening
            began = time.monotonic()
            job = speak(player, sound)
            finish(job)
            assert job.timeline.first_audio - began >= 0.5  # the device gets its latency in advance
            wait_until(lambda: player._speaker.output is None, what="the device released")
            assert time.monotonic() - job.timeline.ended >= 0.4  # the trail, and twice the latency
            wait_until(lambda: not inputs_of(pulse), what="the stream gone")
        assert heard_in(recording, sound) > 80


def test_a_fall_back_plays_until_the_preferred_device_is_back(
    pulse: PulseServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "edged.audio")
    monkeypatch.setattr(device, "RETURN_S", 0.4)
    name_sinks(tmp_path, monkeypatch, "usb", "edged")
    sound = noise(0.2, VOICE)
    with playing(device=["*USB*", "edged"], keep_open_s=3600.0) as player:
        with pulse.record() as recording:
            finish(speak(player, sound))
            assert heard_in(recording, sound) > 80
        assert player.device == "edged"
        # While a job is heard, nothing is looked for; the fall-back is closed when it has been idle.
        job = speak(player, noise(1.0, VOICE))
        module = pulse.load("usb", rate=RATE, format="float32le")
        opened = player._speaker.output
        wait_until(lambda: player._speaker.ring.backlog == 0)
        assert player._speaker.output is opened
        finish(job)
        wait_until(lambda: player._speaker.output is None, 3, "the fall-back closed")
        with pulse.record("usb") as recording:
            finish(speak(player, sound))
            assert heard_in(recording, sound) > 80
        assert player.device == "usb"
        time.sleep(0.8)
        assert player._speaker.output is not None  # kept open, as no fall-back is
        told = [record.getMessage().split(",")[0] for record in caplog.records]
        assert told == ["loudspeaker 'edged'", "loudspeaker 'usb'"]
        pulse.unload(module)


# -- loss and return ----------------------------------------------------------------------------


def test_a_loss_is_seen_within_the_time_of_the_stall_timer(
    pulse: PulseServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name_sinks(tmp_path, monkeypatch, "edged")
    seen: list[float] = []
    real = Output.stalled

    def stalled(output: Output, now: float) -> bool:
        found = real(output, now)
        if found:
            seen.append(time.monotonic())
        return found

    monkeypatch.setattr(Output, "stalled", stalled)
    monkeypatch.setattr("edged.audio.output.START_GRACE_S", 0.6)
    with playing(latency_ms=50) as player:
        job = speak(player, noise(8.0, VOICE))
        wait_until(lambda: job.timeline.first_audio)
        time.sleep(1.0)
        pulse.signal(signal.SIGSTOP)
        hung = time.monotonic()
        try:
            finish(job)
        finally:
            pulse.signal(signal.SIGCONT)
        assert isinstance(job.error, AudioDeviceLost)
        assert seen[0] - hung < 0.5 + 0.25  # and one look, on a busy machine
        wait_until(lambda: not Output.hung(), what="the stream closed")


@pytest.mark.parametrize("fault", ["server", "sink"])
def test_a_job_waits_for_the_device_and_goes_on(
    pulse: PulseServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    fault: str,
) -> None:
    """All of it is heard, in two parts; what the dead device had taken is heard again."""
    caplog.set_level(logging.INFO, "edged.audio")
    name_sinks(tmp_path, monkeypatch, "edged")
    sound = noise(2.2, VOICE)
    with playing(on_loss="wait", lead_in_ms=600) as player:
        with pulse.record() as recording:
            job = speak(player, sound)
            wait_until(lambda: job.timeline.first_audio)
            time.sleep(0.8)
            if fault == "sink":  # the only one: else the server moves the stream to another
                pulse.pactl("unload-module", "module-null-sink")
            else:
                pulse.stop()
            wait_until(lambda: player._outage.active, 3, "the loss seen")
            before = recording.samples[:, 0]
        time.sleep(0.6)
        assert not job.ended
        if fault == "sink":
            pulse.load("edged", rate=RATE, format="float32le")
        else:
            pulse.start()
        back = time.monotonic()
        with pulse.record() as recording:
            wait_until(lambda: player._speaker.output is not None, 5, "the stream opened again")
            assert time.monotonic() - back < 1.0
            finish(job)
            assert heard_in(recording, sound[-VOICE // 2 :]) > 60
            after = recording.samples[:, 0]
        assert job.state is JobState.DONE, job.error
        expected = resampled(sound)
        end = find(expected[-RATE // 2 :], after) + RATE // 2
        first = int(np.flatnonzero(np.abs(after) > 1e-3)[0])
        last = int(np.flatnonzero(np.abs(before) > 1e-3)[-1])
        played_before = last - find(expected[: RATE // 4], before)
        gap = len(expected) - (end - first) - played_before
        assert -0.35 < gap / RATE < 0.1  # nothing is missing but what the dead server's recorder lost
        lines = [record.getMessage() for record in caplog.records]
        assert [line.split(" ")[0] for line in lines] == ["loudspeaker", "the", "loudspeaker"], lines
    pulse.stop()


def test_a_job_that_waits_in_vain_fails(
    pulse: PulseServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "edged.audio")
    name_sinks(tmp_path, monkeypatch, "edged")
    with playing(on_loss="wait", wait_for_device_s=1.0) as player:
        job = speak(player, noise(4.0, VOICE))
        wait_until(lambda: job.timeline.first_audio)
        time.sleep(0.4)
        pulse.stop()
        gone = time.monotonic()
        finish(job)
        assert isinstance(job.error, AudioDeviceLost)
        assert 0.9 < time.monotonic() - gone < 3.5
        following = speak(player, noise(0.2, VOICE))
        finish(following)
        assert isinstance(following.error, NoAudioDevice)
        assert len(caplog.records) == 2  # which one, and that it is lost
        pulse.start()
        assert player._speaker.output is None  # nobody waits: nothing is looked for
        last = speak(player, noise(0.2, VOICE))
        finish(last)
        assert last.state is JobState.DONE


def test_a_job_waits_for_a_session_that_is_not_there_yet(
    pulse: PulseServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name_sinks(tmp_path, monkeypatch, "edged")
    pulse.stop()
    with playing(on_loss="wait", lead_in_ms=600) as player:
        wait_until(lambda: player.error, what="the error")
        sound = noise(0.3, VOICE)
        job = speak(player, sound)
        used = time.process_time()
        time.sleep(1.0)
        assert not job.ended
        assert time.process_time() - used < 0.6  # it does not spin
        pulse.start()
        back = time.monotonic()
        with pulse.record() as recording:
            finish(job)
            assert job.timeline.first_audio - back < 1.0 + 0.6
            assert heard_in(recording, sound) > 80
        assert job.state is JobState.DONE


def test_cancelling_a_job_that_waits_ends_the_waiting(
    pulse: PulseServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name_sinks(tmp_path, monkeypatch, "edged")
    with playing(on_loss="wait") as player:
        job = speak(player, noise(3.0, VOICE))
        wait_until(lambda: job.timeline.first_audio)
        pulse.stop()
        wait_until(lambda: player._outage.active, 3, "the loss seen")
        assert job.cancel()
        wait_until(lambda: not player._outage.active, 1, "the end of the waiting")
        pulse.start()
        with pulse.record() as recording:
            sound = noise(0.3, VOICE, 2)
            finish(speak(player, sound))
            assert heard_in(recording, sound) > 80


def test_a_server_that_hangs_at_the_start_holds_nothing_up(
    pulse: PulseServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name_sinks(tmp_path, monkeypatch, "edged")
    monkeypatch.setattr("edged.audio.output.OPEN_WAIT_S", 0.5)
    pulse.signal(signal.SIGSTOP)
    try:
        with playing() as player:
            wait_until(lambda: player.error, 3, "the error")
            assert "does not answer" in str(player.error)
            with pytest.raises(NoAudioDevice):
                speak(player, noise(0.1, VOICE))
            pulse.signal(signal.SIGCONT)
            wait_until(lambda: not Output.hung(), what="the late answer")
            time.sleep(1.0)
            job = speak(player, noise(0.1, VOICE))
            finish(job)
            assert job.state is JobState.DONE, job.error
    finally:
        pulse.signal(signal.SIGCONT)
