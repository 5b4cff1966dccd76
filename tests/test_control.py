"""The remote control, through the whole daemon: a real PulseAudio null sink, its monitor recorded."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import zmq

from edged.client import Client
from tests import bundles
from tests.daemon import Daemon, receive, running
from tests.pulse import RATE, PulseServer, find, pulse, pulse_server, snr_db
from tests.test_manners import ALARM, FIRST, SECOND, TEXT, THIRD, ask, endings, placed, say, wait_for
from tests.test_speak import AUDIO, expected, heard

__all__ = ["pulse", "pulse_server"]
pytestmark = pytest.mark.audio


@pytest.fixture(scope="module")
def speaking(pulse_server: PulseServer) -> Iterator[Daemon]:
    if not pulse_server.running:
        pulse_server.start()
    env = {"PULSE_SERVER": pulse_server.address}
    with running(bundles.tone_of(-26.0), env=env, audio=dict(AUDIO)) as daemon:
        until = time.monotonic() + 5
        while not (status := daemon.request({"op": "status"}))["audio_device"]:
            assert time.monotonic() < until, status
        yield daemon


@pytest.fixture
def socket(speaking: Daemon) -> Iterator[zmq.Socket[bytes]]:
    with speaking.socket() as made:
        yield made
    for op in ({"op": "cancel", "scope": "all"}, {"op": "control", "do": "resume", "scope": "all"}):
        speaking.request(op)


def edged(daemon: Daemon, *arguments: str) -> str:
    command = [sys.executable, "-m", "edged", "--endpoint", daemon.endpoint, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout


def test_while_all_is_held_only_alarms_are_heard(
    speaking: Daemon, pulse: PulseServer, socket: zmq.Socket[bytes]
) -> None:
    alarm, text = expected(speaking, ALARM), expected(speaking, FIRST)
    assert edged(speaking, "pause", "--all") == "paused: nothing was there to pause; later jobs wait, too\n"
    assert speaking.request({"op": "status"})["held"]
    with pulse.record() as recording:
        say(socket, "text", FIRST)
        time.sleep(0.5)
        say(socket, "alarm", ALARM, "important")
        assert list(endings(socket, "alarm")) == ["alarm"]
        (job,) = speaking.request({"op": "status"})["jobs"]
        assert (job["phase"], job["state"]) == ("paused", "running")
        assert "paused" in edged(speaking, "status")
        assert edged(speaking, "resume", "--all") == f"goes on: {job['job']}\n"
        assert endings(socket, "text")["text"]["event"] == "done"
        played = heard(recording)
    placed(played, alarm, text)
    assert not speaking.request({"op": "status"})["held"]


def test_the_volume_of_one_job_and_of_the_loudspeaker(
    speaking: Daemon, pulse: PulseServer, socket: zmq.Socket[bytes]
) -> None:
    first, second, third, alarm = (expected(speaking, text) for text in (FIRST, SECOND, THIRD, ALARM))
    with Client(speaking.endpoint) as client, pulse.record() as recording:
        say(socket, "soft", TEXT)
        say(socket, "next", ALARM)
        wait_for(socket, "soft", "started")
        assert len(ask(socket, op="control", do="volume", volume=0.25, target="soft")["jobs"]) == 1
        while wait_for(socket, "soft", "position")["utterance"] != 1:
            pass
        ask(socket, op="control", do="mute", target="soft")
        while wait_for(socket, "soft", "position")["utterance"] != 2:
            pass
        ask(socket, op="control", do="unmute", target="soft")
        endings(socket, "soft")
        reply = client.volume(0.5)
        assert (reply.volume, reply.muted, reply.jobs) == (0.5, False, [])
        endings(socket, "next")
        assert edged(speaking, "mute") == "loudspeaker: muted, volume 0.5\n"
        assert speaking.request({"op": "speak", "text": FIRST})["event"] == "done"
        assert edged(speaking, "unmute") == "loudspeaker: volume 0.5\n"
        assert edged(speaking, "volume", "1") == "loudspeaker: volume 1\n"
        played = heard(recording)
    assert np.abs(np.diff(played)).max() < 1.2 * np.abs(np.diff(np.concatenate([first, second, third]))).max()
    half = slice(first.size // 2, first.size)  # until then the former volume was on its way
    at = find(first[half], played)
    assert snr_db(0.25 * first[half], played[at : at + half.stop - half.start]) > 30
    begin = at - half.start + first.size
    silent = played[begin + second.size // 3 : begin + second.size]
    assert np.abs(silent).max() < 1e-3
    behind = played[begin + second.size :]
    late = slice(third.size // 2, third.size)
    at = find(third[late], behind)
    assert snr_db(0.25 * third[late], behind[at : at + late.stop - late.start]) > 30
    behind = behind[at + late.stop - late.start :]
    half = slice(alarm.size // 2, alarm.size)
    at = find(alarm[half], behind)
    assert snr_db(0.5 * alarm[half], behind[at : at + half.stop - half.start]) > 30
    behind = behind[at:]
    assert np.abs(behind[half.stop - half.start :]).max() < 1e-3, "muted"


def test_another_speed_from_the_next_sentence_on(
    speaking: Daemon, pulse: PulseServer, socket: zmq.Socket[bytes]
) -> None:
    first = expected(speaking, FIRST)
    fast = [expected(speaking, text, speed=2.0) for text in (SECOND, THIRD)]
    before = speaking.request({"op": "stats"})["underruns"]
    with pulse.record() as recording:
        say(socket, "text", TEXT)
        wait_for(socket, "text", "started")
        time.sleep(0.3)
        assert len(ask(socket, op="control", do="speed", speed=2.0, target="text")["jobs"]) == 1
        done = endings(socket, "text")["text"]
        played = heard(recording)
    placed(played, first, *fast)
    assert done["audio_s"] == pytest.approx((first.size + sum(part.size for part in fast)) / RATE, abs=0.05)
    assert speaking.request({"op": "stats"})["underruns"] == before


def test_events_come_when_it_is_heard(
    speaking: Daemon, pulse: PulseServer, socket: zmq.Socket[bytes]
) -> None:
    parts = [expected(speaking, text) for text in (FIRST, SECOND, THIRD)]
    marked = f"<speak><s>{FIRST}</s><s><mark name='m'/>{SECOND}</s><s>{THIRD}</s></speak>"
    told: list[tuple[str, float]] = []
    positions: list[dict[str, Any]] = []
    with pulse.record() as recording:
        say(socket, "text", marked, markup="ssml")
        while not told or told[-1][0] not in ("done", "failed"):
            event = receive(socket)
            told.append((event["event"], recording.seconds))
            if event["event"] in ("position", "mark"):
                positions.append(event)
        played = heard(recording)
    names = [name for name, _ in told]
    assert names == ["accepted", "started", "position", "mark", "position", "position", "done"]
    assert [event["utterance"] for event in positions if event["event"] == "position"] == [0, 1, 2]
    starts = placed(played, *parts)
    loud = np.flatnonzero(np.abs(played) > 1e-3)
    at = {"started": loud[0], "done": loud[-1]}
    for name, seconds in told:
        if name in at:  # the recorder's own delay is in both
            assert -0.05 < seconds - at[name] / RATE < 0.45, name
    times = [seconds for name, seconds in told if name == "position"]
    for n, (start, event) in enumerate(
        zip(starts, [e for e in positions if e["event"] == "position"], strict=True)
    ):
        assert event["time_s"] == pytest.approx((start - starts[0]) / RATE, abs=0.03)
        assert times[n] - times[0] == pytest.approx((start - starts[0]) / RATE, abs=0.15)


def test_what_is_wrong_with_an_order_is_said(socket: zmq.Socket[bytes]) -> None:
    extra = ({"do": "pause", "volume": 1.0}, {"do": "mute", "speed": 1.0})
    for wrong in ({"do": "volume"}, {"do": "speed"}, *extra):
        answer = ask(socket, op="control", scope="mine", **wrong)
        assert (answer["event"], answer["code"]) == ("failed", "bad_value"), wrong
    assert ask(socket, op="control", do="volume", volume=9, scope="all")["code"] == "bad_value"


def test_the_doctor_names_what_keeps_a_loudspeaker_silent(speaking: Daemon) -> None:
    with Client(speaking.endpoint) as client:
        client.pause(scope="all")
        client.mute()
        assert "(all speech is paused, muted)" in edged(speaking, "status")
        command = [sys.executable, "-m", "edged", "--endpoint", speaking.endpoint, "doctor"]
        command += ["--config", str(speaking.config)]
        told = subprocess.run(command, capture_output=True, text=True, timeout=60).stdout
        client.resume(scope="all")
        client.mute(False)
    assert "all speech is paused" in told
    assert "edged resume --all" in told
    assert "the loudspeaker is muted" in told
