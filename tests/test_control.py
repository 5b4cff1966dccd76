"""Operation `control` through the whole daemon, with its events, on a real PulseAudio null sink."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from edged.client import AsyncClient, Client
from edged.doctor.daemon import answers
from edged.doctor.findings import Case
from edged.settings import Settings
from tests import bundles
from tests.daemon import Daemon, receive_until, running, send
from tests.pulse import RATE, PulseServer, find, pulse, pulse_server, snr_db
from tests.test_speak import ALPHABET, AUDIO, expected, heard, speaking

__all__ = ["pulse", "pulse_server", "speaking"]
pytestmark = pytest.mark.audio
TEXT = ALPHABET[:19] + "."
SHORT = "ponml."


@pytest.fixture(autouse=True)
def cleared(speaking: Daemon) -> Iterator[None]:
    yield
    speaking.request({"op": "control", "do": "resume", "scope": "all"})
    speaking.request({"op": "cancel", "scope": "all"})


def control(daemon: Daemon, do: str, **fields: Any) -> dict[str, Any]:
    return daemon.request({"op": "control", "do": do, **fields})


def job_of(daemon: Daemon, job: str) -> dict[str, Any]:
    return next(j for j in daemon.request({"op": "status"})["jobs"] if j["job"] == job)


def heard_of(daemon: Daemon, job: str, seconds: float) -> None:
    until = time.monotonic() + 10
    while (job_of(daemon, job)["heard_s"] or 0.0) < seconds:
        assert time.monotonic() < until
        time.sleep(0.01)


def test_pause_and_resume_are_told_and_nothing_is_lost(speaking: Daemon, pulse: PulseServer) -> None:
    sound = expected(speaking, TEXT)
    with pulse.record() as recording, speaking.socket() as socket:
        send(socket, op="speak", text=TEXT, id="a", reply="events")
        job = receive_until(socket, "started")[-1]["job"]
        heard_of(speaking, job, 0.3)
        assert control(speaking, "pause", job=job)["jobs"] == [job]
        assert control(speaking, "pause", job=job)["jobs"] == []
        paused = receive_until(socket, "paused")[-1]
        shown = job_of(speaking, job)
        assert (shown["paused"], shown["heard_s"]) == (True, paused["position_s"])
        time.sleep(0.3)
        assert control(speaking, "resume", job=job)["jobs"] == [job]
        *_, resumed, done = receive_until(socket, "done")
        assert (resumed["event"], resumed["position_s"]) == ("resumed", paused["position_s"])
        assert done["audio_s"] == pytest.approx(sound.size / RATE, abs=0.01)
        played = heard(recording)
    cut = round(paused["position_s"] * RATE)
    first, second = sound[: cut - RATE // 100], sound[cut + RATE // 100 :]
    begun, again = find(first, played), find(second, played)
    assert snr_db(first, played[begun : begun + first.size]) > 40
    assert snr_db(second, played[again : again + second.size]) > 40
    assert again - begun - cut > 0.2 * RATE


def test_restart_speaks_from_the_beginning(speaking: Daemon, pulse: PulseServer) -> None:
    sound = expected(speaking, TEXT)
    with pulse.record() as recording, speaking.socket() as socket:
        send(socket, op="speak", text=TEXT, id="a", reply="events")
        job = receive_until(socket, "started")[-1]["job"]
        heard_of(speaking, job, 0.3)
        control(speaking, "pause", job=job)
        receive_until(socket, "paused")
        quiet = len(recording.samples)
        control(speaking, "resume", job=job, how="restart")
        events = receive_until(socket, "done")
        played = heard(recording)[quiet:]
    assert [event["event"] for event in events] == ["resumed", "done"]
    assert events[0]["position_s"] == 0.0
    at = find(sound, played)
    assert snr_db(sound, played[at : at + sound.size]) > 40


def test_paused_for_all_those_that_come_wait_too(speaking: Daemon) -> None:
    with speaking.socket() as socket:
        assert control(speaking, "pause", scope="all")["jobs"] == []
        send(socket, op="speak", text=SHORT, id="a", reply="events")
        job = receive_until(socket, "started")[-1]["job"]
        time.sleep(0.4)
        assert job_of(speaking, job)["heard_s"] is None
        assert job_of(speaking, job)["paused"]
        with Client(speaking.endpoint) as client:
            case = Case(Settings(), speaking.endpoint, lambda: client, client.status())
            assert any("paused for all" in finding.message for finding in answers(case))
        control(speaking, "resume", scope="all")
        receive_until(socket, "done")
    assert not speaking.request({"op": "status"})["held"]


def test_skip_goes_on_with_the_next_sentence(speaking: Daemon, pulse: PulseServer) -> None:
    following = expected(speaking, SHORT)
    with pulse.record() as recording, speaking.socket() as socket:
        send(socket, op="speak", text=f"{TEXT} {SHORT}", id="a", reply="events")
        job = receive_until(socket, "started")[-1]["job"]
        heard_of(speaking, job, 0.3)
        begin = time.monotonic()
        assert control(speaking, "skip", job=job)["jobs"] == [job]
        receive_until(socket, "done")
        assert time.monotonic() - begin < following.size / RATE + 1.5
        played = heard(recording)
    core = following[RATE // 50 : -RATE // 50]
    at = find(core, played)
    assert snr_db(core, played[at : at + core.size]) > 40


def test_volume_and_mute(speaking: Daemon, pulse: PulseServer) -> None:
    sound = expected(speaking, SHORT)
    levels = []
    try:
        with pulse.record() as recording:
            for do, fields in (("volume", {"value": 0.5}), ("mute", {})):
                reply = control(speaking, do, **fields)
                assert (reply["volume"], reply["muted"]) == (0.5, do == "mute")
                at = len(recording.samples)
                assert speaking.request({"op": "speak", "text": SHORT})["event"] == "done"
                levels.append(float(np.abs(heard(recording)[at:]).max()) / float(np.abs(sound).max()))
    finally:
        assert not control(speaking, "unmute")["muted"]
        control(speaking, "volume", value=1.0)
    assert levels == pytest.approx([0.5, 0.0], abs=0.02)


def test_what_is_wrong_is_said(speaking: Daemon) -> None:
    for fields, code in (
        ({"do": "pause"}, "bad_value"),
        ({"do": "volume"}, "bad_value"),
        ({"do": "volume", "value": 5}, "bad_value"),
        ({"do": "rewind"}, "bad_value"),
        ({"do": "skip", "job": "none"}, "unknown_job"),
    ):
        assert speaking.request({"op": "control", **fields})["code"] == code


def test_the_clients_methods(speaking: Daemon) -> None:
    with Client(speaking.endpoint, name="panel") as client:
        job = client.speak(TEXT, wait=False).job
        heard_of(speaking, job, 0.1)
        assert client.pause(scope="mine").jobs == [job]
        assert client.resume(job=job, how="sentence").jobs == [job]
        heard_of(speaking, job, 0.05)
        assert client.skip(job=job).jobs == [job]
        assert client.mute().muted
        assert not client.mute(False).muted
        assert client.set_volume(1.0).volume == 1.0


def test_the_methods_of_the_asyncio_client(speaking: Daemon) -> None:
    async def use() -> None:
        async with AsyncClient(speaking.endpoint, name="panel") as client:
            accepted = await client.speak(TEXT, wait=False)
            assert (await client.pause(job=accepted.job)).jobs == [accepted.job]
            assert (await client.skip(scope="all")).jobs == []
            assert (await client.resume(scope="mine", how="restart")).jobs == [accepted.job]
            assert (await client.mute()).muted
            assert not (await client.mute(False)).muted
            assert (await client.set_volume(1.0)).volume == 1.0

    asyncio.run(use())


def test_a_stop_does_not_wait_for_those_that_are_paused(pulse: PulseServer) -> None:
    env = {"PULSE_SERVER": pulse.address}
    with running(bundles.tone(), env=env, audio=dict(AUDIO)) as daemon, daemon.socket() as socket:
        send(socket, op="speak", text=TEXT, id="a", reply="events")
        job = receive_until(socket, "started")[-1]["job"]
        heard_of(daemon, job, 0.1)
        control(daemon, "pause", job=job)
        begin = time.monotonic()
        daemon.process.terminate()
        receive_until(socket, "cancelled")
        daemon.process.wait(10)
        assert time.monotonic() - begin < 5.0
