"""The loudspeaker through the whole daemon: a real PulseAudio null sink, its monitor recorded."""

from __future__ import annotations

import io
import itertools
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
import soxr

from edged.audio import stretch
from tests import bundles
from tests.daemon import Daemon, receive, receive_until, running, send
from tests.pulse import RATE, PulseServer, find, pulse, pulse_server, snr_db

__all__ = ["pulse", "pulse_server"]
pytestmark = pytest.mark.audio
SENTENCE = "Pump four has stopped."
LONG = " ".join(f"Line number {n} is running again." for n in range(12))
ALPHABET = "abcdefghij klmnopqrst uvwxyz zyxwvutsrq ponmlkjihg fedcba."  # no two places sound alike
AUDIO = {"enabled": True, "device": "pulse", "latency_ms": 150, "loudness_lufs": -20.0}
GAIN = 10 ** (6 / 20)  # that brings the voice to that loudness


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


def expected(daemon: Daemon, text: str, **fields: Any) -> np.ndarray[Any, np.dtype[np.float32]]:
    """What the loudspeaker should play: the same text synthesized, at the recorder's rate and the loudness
    that is set."""
    reply = daemon.request({"op": "synthesize", "text": text, **fields})
    audio, rate = soundfile.read(io.BytesIO(reply["audio_bytes"]), dtype="float32")
    return np.asarray(soxr.resample(audio * GAIN, rate, RATE), dtype=np.float32)


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


@pytest.mark.skipif(stretch.library() is None, reason=f"needs {stretch.INSTALL}")
def test_another_pitch_is_heard_as_it_is_synthesized(speaking: Daemon, pulse: PulseServer) -> None:
    sound = expected(speaking, SENTENCE, pitch=4.0)
    with pulse.record() as recording:
        reply = speaking.request({"op": "speak", "text": SENTENCE, "pitch": 4.0})
        assert reply["event"] == "done", reply
        played = heard(recording)
    at = find(sound, played)
    assert snr_db(sound, played[at : at + sound.size]) > 40
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
        send(socket, op="speak", text=LONG[:60], id="zero", reply="events")
        receive_until(socket, "started")
        send(socket, op="speak", text="abcabc.", id="last", priority="notification", drop_if_busy=False)
        send(socket, op="speak", text="xyzxyz.", id="middle", priority="text")
        send(socket, op="speak", text="mnomno.", id="soon", priority="important", interrupt=False)
        order = [receive_until(socket, "done")[-1]["id"] for _ in range(4)]
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


def stop_while_speaking(daemon: Daemon, socket: Any, stop_s: float) -> dict[str, Any]:
    """The ending of a job during which the whole daemon gets no processor time for a while."""
    send(socket, op="speak", text=ALPHABET, id=f"stopped {stop_s}", reply="events")
    receive_until(socket, "accepted")
    time.sleep(1.3)
    daemon.process.send_signal(signal.SIGSTOP)
    try:
        time.sleep(stop_s)
    finally:
        daemon.process.send_signal(signal.SIGCONT)
    return receive_until(socket, "done", "failed")[-1]


def lags(sound: np.ndarray[Any, Any], played: np.ndarray[Any, Any]) -> list[int | None]:
    """For each piece of 0.1 s, how much later it is heard than the first; None where it is not whole."""
    size = RATE // 10
    start = find(sound[: 5 * size], played)
    found: list[int | None] = []
    lag = 0
    for at in range(0, len(sound) - size + 1, size):
        piece = sound[at : at + size]
        here = start + at + lag
        if snr_db(piece, played[here : here + size]) < 30:
            low = max(0, here - size)
            there = low + find(piece, played[low : here + 6 * RATE])
            if snr_db(piece, played[there : there + size]) < 30:
                found.append(None)
                continue
            lag = there - start - at
        found.append(lag)
    return found


@pytest.mark.parametrize("stop_s", [0.3, 1.5])
def test_a_daemon_that_was_stopped_goes_on_where_it_was(
    speaking: Daemon, pulse: PulseServer, stop_s: float
) -> None:
    sound = expected(speaking, ALPHABET)
    before = speaking.request({"op": "stats"})["underruns"]
    with pulse.record() as recording, speaking.socket() as socket:
        ending = stop_while_speaking(speaking, socket, stop_s)
        played = heard(recording, 0.8)
    assert ending["event"] == "done", ending
    counted = speaking.request({"op": "stats"})["underruns"] - before
    found = lags(sound, played)
    whole = [lag for lag in found if lag is not None]
    # The sound server may have asked for more than the latency ahead, and a short stop then stays unheard.
    if stop_s > 1 or whole[-1] > 0.02 * RATE:
        assert counted > 0
        assert "sound underrun" in speaking.log
        assert "audio.latency_ms" in speaking.log
    assert found[:5] == [0] * 5  # the begin
    assert found[-1] is not None  # and the end are there
    # The rest is there in order; a gap may break a few pieces, and a busy machine may make more gaps.
    assert len(found) - len(whole) <= 6
    assert all(later - lag > -0.15 * RATE for lag, later in itertools.pairwise(whole))
    if counted:
        assert whole[-1] / RATE > stop_s - AUDIO["latency_ms"] / 1000 - 0.1


@pytest.mark.parametrize("stop_s", [0.3, 0.6, 1.5])
def test_a_stopped_daemon_on_a_sleepy_sink(stop_s: float, pulse_server: PulseServer) -> None:
    """With no listener the null sink asks for audio so seldom that PortAudio does not recover by itself."""
    with tempfile.TemporaryDirectory(prefix="edged-pulse-") as directory:
        sleepy = PulseServer(Path(directory))
        sleepy.start()
        sleepy.quiet()
        try:
            env = {"PULSE_SERVER": sleepy.address}
            audio = {**AUDIO, "device": "default"}
            with running(bundles.tone(), env=env, audio=audio) as daemon, daemon.socket() as socket:
                ending = stop_while_speaking(daemon, socket, stop_s)
                assert ending["event"] == "done", daemon.log
                assert daemon.request({"op": "stats"})["underruns"] > 0
                assert daemon.log.count("sound underrun") >= 1
        finally:
            sleepy.stop()


def test_a_deadline_that_falls_into_the_playing_time_of_another_job(
    speaking: Daemon, pulse: PulseServer
) -> None:
    first, third = expected(speaking, ALPHABET), expected(speaking, SENTENCE)
    with pulse.record() as recording, speaking.socket() as socket:
        send(socket, op="speak", text=ALPHABET, id="first")
        send(socket, op="speak", text="Late. " * 10, id="late", deadline_ms=2_000)
        send(socket, op="speak", text=SENTENCE, id="patient", deadline_ms=60_000)
        replies = {reply["id"]: reply for reply in (receive(socket) for _ in range(3))}
        played = heard(recording)
    assert (replies["late"]["event"], replies["late"]["code"]) == ("failed", "deadline")
    assert replies["first"]["event"] == replies["patient"]["event"] == "done"
    at = find(third, played)
    assert snr_db(third, played[at : at + third.size]) > 40
    loud = np.flatnonzero(np.abs(played) > 0.01)
    # Nothing but the two is heard, and one follows the other.
    assert abs((loud[-1] - loud[0]) / RATE - (first.size + third.size) / RATE) < 0.5


def test_without_a_device_at_start_speak_fails_with_a_hint(tmp_path: Path) -> None:
    env = {"PULSE_SERVER": f"unix:{tmp_path}/nowhere"}
    with running(bundles.tone(), env=env, audio=dict(AUDIO)) as daemon:
        reply = daemon.request({"op": "speak", "text": SENTENCE})
        assert (reply["event"], reply["code"]) == ("failed", "no_audio_device")
        assert reply["hint"]
        assert daemon.request({"op": "status"})["audio_error"]
        assert daemon.request({"op": "synthesize", "text": SENTENCE})["event"] == "done"
