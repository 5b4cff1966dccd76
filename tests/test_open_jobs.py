"""Speech whose text is still being written, through the real daemon."""

from __future__ import annotations

import asyncio
import io
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
import zmq

from edged.client import AsyncClient, Client
from edged.errors import JobCancelled, TextTooLong, UnknownVoice, UnspeakableText
from edged.outflow import REST_S
from tests import bundles
from tests.daemon import Daemon, receive, receive_until, running, send
from tests.pulse import RATE, PulseServer, find, pulse, pulse_server, snr_db
from tests.test_speak import AUDIO, expected, heard

__all__ = ["pulse", "pulse_server"]
PARTS = ("Pump four has", " stopped. The val", "ve is at 3.", "5 bar", ". Call the ", "office")
TEXT = "".join(PARTS)
IDLE_S = 1.5


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with running(bundles.tone(), limits={"open_idle_s": IDLE_S, "text_chars": 400}) as started:
        yield started
        assert started.process.poll() is None, started.log[-3000:]


@pytest.fixture(scope="module")
def slow(slow_bundle: Path) -> Iterator[Daemon]:
    with running(slow_bundle) as started:
        yield started


@pytest.fixture
def socket(daemon: Daemon) -> Iterator[zmq.Socket[bytes]]:
    with daemon.socket() as made:
        yield made


def ask(socket: zmq.Socket[bytes], **header: Any) -> dict[str, Any]:
    """The answer to this request; events of jobs that come before it are passed over."""
    send(socket, id="q", **header)
    while (event := receive(socket)).get("id") != "q":
        pass
    return event


def opened(socket: zmq.Socket[bytes], text: str = "", **fields: Any) -> None:
    fields = {"format": "wav", "reply": "final", **fields}
    send(socket, op="synthesize", id="job", text=text, open=True, **fields)


def sound(event: dict[str, Any]) -> np.ndarray[Any, np.dtype[np.float32]]:
    audio, rate = soundfile.read(io.BytesIO(event["audio_bytes"]), dtype="float32")
    assert rate > 0
    return np.asarray(audio)


def test_a_text_in_pieces_sounds_like_the_whole(daemon: Daemon, socket: zmq.Socket[bytes]) -> None:
    whole = daemon.request({"op": "synthesize", "text": TEXT})
    opened(socket)
    for part in PARTS:
        assert ask(socket, op="append", target="job", text=part)["event"] == "appended"
    assert ask(socket, op="close", target="job") == {
        "event": "appended",
        "v": 1,
        "id": "q",
        "job": whole["job"].rpartition("-")[0] + f"-{int(whole['job'].rpartition('-')[2]) + 1}",
        "held": 0,
    }
    done = receive_until(socket, "done")[-1]
    got, wanted = sound(done), sound(whole)
    rests = 3 * REST_S * done["sample_rate"]
    assert wanted.size <= got.size <= wanted.size + rests
    assert np.array_equal(got[got != 0], wanted[wanted != 0])


def test_the_first_sentence_is_heard_before_the_last_one_is_written(socket: zmq.Socket[bytes]) -> None:
    opened(socket, "It runs. ", format="pcm_s16le", reply="events", stream=True)
    events = receive_until(socket, "audio")
    assert not events[-1]["last"]
    assert ask(socket, op="append", target="job", text="It stops.")["held"] == len(" It stops.")
    assert ask(socket, op="append", target="job", text=" Now", flush=True)["held"] == 0
    ask(socket, op="close", target="job")
    assert receive_until(socket, "done", "failed")[-1]["event"] == "done"


def test_an_open_job_ends_by_itself_when_nobody_writes(daemon: Daemon, socket: zmq.Socket[bytes]) -> None:
    begin = time.monotonic()
    opened(socket, "It runs. And so")
    done = receive_until(socket, "done", "failed")[-1]
    assert done["event"] == "done"
    assert IDLE_S <= time.monotonic() - begin < IDLE_S + 3.0
    assert "no more text came" in daemon.log
    alone = daemon.request({"op": "synthesize", "text": "It runs."})
    assert done["audio_s"] > alone["audio_s"] + 2 * REST_S, "the rest was not spoken"
    assert ask(socket, op="append", target="job", text="x")["code"] == "unknown_job"


def test_a_piece_that_is_refused_was_never_sent(daemon: Daemon, socket: zmq.Socket[bytes]) -> None:
    opened(socket, "It runs")
    long = ask(socket, op="append", target="job", text="x" * 400)
    assert long["code"] == "text_too_long"
    assert ask(socket, op="append", target="job", text=" well. ")["event"] == "appended"
    ask(socket, op="close", target="job")
    done = receive_until(socket, "done", "failed")[-1]
    alone = daemon.request({"op": "synthesize", "text": "It runs well."})
    assert done["audio_s"] == pytest.approx(alone["audio_s"] + REST_S, abs=REST_S + 0.001)


def test_what_has_no_sound_is_counted(socket: zmq.Socket[bytes]) -> None:
    opened(socket)
    ask(socket, op="append", target="job", text="It runs. ")
    ask(socket, op="append", target="job", text="\N{SNOWMAN}!\n", flush=True)
    ask(socket, op="close", target="job")
    done = receive_until(socket, "done", "failed")[-1]
    assert (done["event"], done["skipped"]) == ("done", 2)


def test_one_that_says_nothing_at_all_fails(socket: zmq.Socket[bytes]) -> None:
    opened(socket)
    ask(socket, op="close", target="job")
    assert receive_until(socket, "done", "failed")[-1]["code"] == "unspeakable_text"


@pytest.mark.parametrize(
    ("header", "code"),
    [
        ({"op": "append", "target": "closed", "text": "x"}, "bad_value"),
        ({"op": "append", "target": "strange", "text": "x"}, "unknown_job"),
        ({"op": "close", "job": "strange"}, "unknown_job"),
        ({"op": "append", "target": "closed"}, "bad_value"),
        ({"op": "append", "text": "x"}, "bad_value"),
        ({"op": "control", "do": "pause"}, "bad_value"),
        ({"op": "synthesize", "open": True, "text": "<speak>x</speak>", "markup": "ssml"}, "bad_value"),
    ],
)
def test_what_cannot_be(slow: Daemon, header: dict[str, Any], code: str) -> None:
    with slow.socket() as socket:
        send(socket, op="synthesize", id="closed", text="A text that takes a while. " * 20)
        assert ask(socket, **header)["code"] == code


def test_a_rep_socket_is_told_that_it_cannot(daemon: Daemon) -> None:
    answer = daemon.request({"op": "synthesize", "text": "It runs.", "open": True})
    assert (answer["code"], "REQ" in answer["message"]) == ("bad_value", True)


def test_a_client_that_goes_away_has_said_all(daemon: Daemon) -> None:
    with daemon.subscriber() as events:
        time.sleep(0.2)
        with daemon.socket() as leaving:
            opened(leaving, "It runs. It st", on_disconnect="finish", reply="events", stream=True)
            receive_until(leaving, "started")
        found: list[dict[str, Any]] = []
        while not found or found[-1]["event"] not in ("done", "failed", "cancelled"):
            assert events.poll(10_000)
            found.append(json.loads(events.recv_multipart()[1]))
        assert found[-1]["event"] == "done"


@pytest.mark.audio
def test_the_client_library_writes(pulse: PulseServer) -> None:
    told: list[str] = []
    with (
        running(bundles.tone(), env={"PULSE_SERVER": pulse.address}, audio=AUDIO) as speaking,
        Client(speaking.endpoint) as client,
    ):
        with client.write(on_event=lambda event: told.append(type(event).__name__)) as writing:
            assert writing.append("It runs. It") == len(" It")
            with pytest.raises(TextTooLong):
                writing.append("x" * 6000)
            assert writing.append(" stops.", flush=True) == 0
        assert writing.done is not None
        assert writing.done.audio_s > 0
        assert [name for name in told if name != "Position"] == ["Accepted", "Started", "Done"]
        with pytest.raises(UnspeakableText), client.write() as writing:
            pass
        with pytest.raises(ZeroDivisionError), client.write("It runs. ") as writing:
            raise ZeroDivisionError
        assert client.cancel(scope="all").jobs == []
        writing = client.write("It runs. ")
        client.cancel(scope="all")
        with pytest.raises(JobCancelled):
            writing.append("x")
        with pytest.raises(UnknownVoice):
            client.write(voice="nobody")

        async def main() -> float:
            async with AsyncClient(speaking.endpoint) as other, other.write("It runs. ") as text:
                await text.append("It stops.")
            assert text.done is not None
            return text.done.audio_s

        assert asyncio.run(main()) == pytest.approx(writing_s(client, "It runs. It stops."), abs=3 * REST_S)


def writing_s(client: Client, text: str) -> float:
    return client.synthesize(text).done.audio_s


@pytest.mark.audio
def test_the_command_speaks_what_is_written_to_it(pulse: PulseServer) -> None:
    with running(bundles.tone(), env={"PULSE_SERVER": pulse.address}, audio=AUDIO) as speaking:
        command = [
            sys.executable,
            "-m",
            "edged",
            "--endpoint",
            speaking.endpoint,
            "say",
            "--json",
            "--follow",
            "-",
        ]
        words = "It runs. Sch\u00f6n.".encode()
        torn = words.index(0xC3) + 1
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as edged:
            assert edged.stdin is not None
            edged.stdin.write(words[:torn])
            edged.stdin.flush()
            until = time.monotonic() + 20
            while [job["state"] for job in speaking.request({"op": "status"})["jobs"]] != ["running"]:
                assert time.monotonic() < until, "the first sentence is spoken while the text is written"
            assert edged.poll() is None
            out, errors = edged.communicate(words[torn:])
        assert edged.returncode == 0, errors
        assert json.loads(out)["event"] == "done"


@pytest.mark.audio
def test_on_the_loudspeaker_nothing_is_missing_and_a_pause_is_no_underrun(pulse: PulseServer) -> None:
    with (
        running(bundles.tone_of(-26.0), env={"PULSE_SERVER": pulse.address}, audio=AUDIO) as speaking,
        speaking.socket() as socket,
    ):
        first, second = expected(speaking, "Pump four has stopped."), expected(speaking, "Call the office.")
        before = speaking.request({"op": "stats"})["underruns"]
        with pulse.record() as recording:
            send(socket, op="speak", id="job", text="Pump four has stopped. ", open=True, reply="events")
            receive_until(socket, "started")
            time.sleep(first.size / RATE + 1.0)
            ask(socket, op="append", target="job", text="Call the office.")
            ask(socket, op="close", target="job")
            assert receive_until(socket, "done", "failed")[-1]["event"] == "done"
            played = heard(recording)
        assert speaking.request({"op": "stats"})["underruns"] == before
        at = find(first, played)
        assert snr_db(first, played[at : at + first.size]) > 40
        behind = played[at + first.size :]
        again = find(second, behind)
        assert snr_db(second, behind[again : again + second.size]) > 40
        gap = behind[:again]
        assert np.abs(gap[int(0.1 * RATE) :]).max() < 1e-3, "silence between them"
        assert 0.3 < gap.size / RATE < 3.0
