"""The loudspeaker through the whole daemon: a real PulseAudio null sink, its monitor recorded."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
import soxr

from tests import bundles
from tests.daemon import Daemon, receive, receive_until, running, send
from tests.pulse import RATE, PulseServer, find, pulse, pulse_server, snr_db

__all__ = ["pulse", "pulse_server"]
pytestmark = pytest.mark.audio
SENTENCE = "Pump four has stopped."
LONG = " ".join(f"Line number {n} is running again." for n in range(12))
AUDIO = {"enabled": True, "device": "pulse", "latency_ms": 150}


@pytest.fixture(scope="module")
def speaking(pulse_server: PulseServer) -> Iterator[Daemon]:
    if not pulse_server.running:
        pulse_server.start()
    env = {"PULSE_SERVER": pulse_server.address}
    with running(bundles.tone(), env=env, audio=dict(AUDIO)) as daemon:
        until = time.monotonic() + 5
        while not (status := daemon.request({"op": "status"}))["audio_device"]:
            assert time.monotonic() < until, status
        yield daemon


def expected(daemon: Daemon, text: str, **fields: Any) -> np.ndarray[Any, np.dtype[np.float32]]:
    """What the loudspeaker should play: the same text synthesized, at the recorder's rate."""
    reply = daemon.request({"op": "synthesize", "text": text, **fields})
    audio, rate = soundfile.read(io.BytesIO(reply["audio_bytes"]), dtype="float32")
    return np.asarray(soxr.resample(audio, rate, RATE), dtype=np.float32)


def heard(recording: Any, settle_s: float = 0.5) -> np.ndarray[Any, np.dtype[np.float32]]:
    time.sleep(settle_s)
    return np.asarray(recording.samples[:, 0])


def test_what_is_heard_is_what_was_synthesized_and_both_ends_are_there(
    speaking: Daemon, pulse: PulseServer
) -> None:
    sound = expected(speaking, SENTENCE)
    with pulse.record() as recording:
        reply = speaking.request({"op": "speak", "text": SENTENCE})
        assert reply["event"] == "done"
        played = heard(recording)
    at = find(sound, played)
    assert snr_db(sound, played[at : at + sound.size]) > 40
    assert at >= 0
    assert played.size >= at + sound.size
    assert reply["audio_s"] == pytest.approx(sound.size / RATE, abs=0.01)


def test_done_comes_when_the_last_sample_was_heard(speaking: Daemon) -> None:
    begin = time.monotonic()
    reply = speaking.request({"op": "speak", "text": SENTENCE})
    assert time.monotonic() - begin >= reply["audio_s"]


def test_ack_is_the_one_reply_and_the_speech_goes_on(speaking: Daemon, pulse: PulseServer) -> None:
    sound = expected(speaking, SENTENCE)
    with pulse.record() as recording, speaking.socket() as socket:
        send(socket, op="speak", text=SENTENCE, reply="ack", id="a")
        assert receive(socket)["event"] == "accepted"
        played = heard(recording, sound.size / RATE + 1.0)
        assert socket.poll(0) == 0
    at = find(sound, played)
    assert snr_db(sound, played[at : at + sound.size]) > 40


def test_two_jobs_are_heard_whole_and_in_order_of_priority(speaking: Daemon, pulse: PulseServer) -> None:
    first, second, third = (expected(speaking, text) for text in ("abcabc.", "xyzxyz.", "mnomno."))
    with pulse.record() as recording, speaking.socket() as socket:
        send(socket, op="speak", text=LONG[:60], id="zero")
        send(socket, op="speak", text="abcabc.", id="last", priority="progress")
        send(socket, op="speak", text="xyzxyz.", id="middle", priority="text")
        send(socket, op="speak", text="mnomno.", id="soon", priority="important")
        order = [receive(socket)["id"] for _ in range(4)]
        played = heard(recording)
    assert order == ["zero", "soon", "middle", "last"]
    places = [find(sound, played) for sound in (third, second, first)]
    assert places == sorted(places)
    for sound, at in zip((third, second, first), places, strict=True):
        assert snr_db(sound, played[at : at + sound.size]) > 40


def test_cancel_while_playing_cuts_at_once_and_the_next_job_is_whole(
    speaking: Daemon, pulse: PulseServer
) -> None:
    sound = expected(speaking, SENTENCE)
    with pulse.record() as recording, speaking.socket() as socket:
        send(socket, op="speak", text=LONG, id="long", reply="events")
        receive_until(socket, "started")
        time.sleep(1.0)
        send(socket, op="cancel", target="long", id="c")
        receive_until(socket, "cancelled")
        begin = time.monotonic()
        send(socket, op="speak", text=SENTENCE, id="next", reply="events")
        done = receive_until(socket, "done")[-1]
        played = heard(recording)
    assert done["id"] == "next"
    at = find(sound, played)
    assert snr_db(sound, played[at : at + sound.size]) > 40
    assert time.monotonic() - begin < sound.size / RATE + 2.0
    loud = np.flatnonzero(np.abs(played) > 0.01)
    total = (loud[-1] - loud[0]) / RATE
    assert total < 1.0 + sound.size / RATE + 1.5, "the cancelled text went on"


def test_synthesis_does_not_wait_for_the_loudspeaker(speaking: Daemon) -> None:
    with speaking.socket() as socket:
        send(socket, op="speak", text=LONG, id="long", reply="events")
        receive_until(socket, "started")
        begin = time.monotonic()
        assert speaking.request({"op": "synthesize", "text": SENTENCE})["event"] == "done"
        assert time.monotonic() - begin < 1.0
        speaking.request({"op": "cancel", "scope": "all"})
        receive_until(socket, "cancelled")


def test_a_vanished_clients_speech_is_finished_by_default(speaking: Daemon, pulse: PulseServer) -> None:
    sound = expected(speaking, SENTENCE)
    with pulse.record() as recording:
        gone = speaking.socket()
        send(gone, op="speak", text=SENTENCE, reply="events")
        receive_until(gone, "accepted")
        gone.close()
        played = heard(recording, sound.size / RATE + 1.5)
    at = find(sound, played)
    assert snr_db(sound, played[at : at + sound.size]) > 40


def test_without_a_device_at_start_speak_fails_with_a_hint(tmp_path: Path) -> None:
    env = {"PULSE_SERVER": f"unix:{tmp_path}/nowhere"}
    with running(bundles.tone(), env=env, audio=dict(AUDIO)) as daemon:
        reply = daemon.request({"op": "speak", "text": SENTENCE})
        assert (reply["event"], reply["code"]) == ("failed", "no_audio_device")
        assert reply["hint"]
        assert daemon.request({"op": "status"})["audio_error"]
        assert daemon.request({"op": "synthesize", "text": SENTENCE})["event"] == "done"
