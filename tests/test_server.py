"""The running daemon over real sockets: operations, events, errors, isolation, cancel, floods."""

from __future__ import annotations

import io
import json
import socket as socket_module
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
import zmq

from tests import bundles
from tests.daemon import ENDINGS, Daemon, receive, receive_until, running, send

SENTENCE = "Pump four has stopped."
LONG = " ".join(f"Line number {n} is running again." for n in range(60))


@pytest.fixture
def dealer(daemon: Daemon) -> Iterator[zmq.Socket[bytes]]:
    with daemon.socket() as socket:
        yield socket


def samples(wav: bytes) -> tuple[np.ndarray[Any, np.dtype[np.int16]], int]:
    return soundfile.read(io.BytesIO(wav), dtype="int16")


def synthesize(daemon: Daemon, **fields: Any) -> dict[str, Any]:
    return daemon.request({"op": "synthesize", "text": SENTENCE, **fields})


# -- every operation, from a plain REQ socket ---------------------------------------------------


def test_ping_status_voices_and_stats_answer_a_req_socket(daemon: Daemon) -> None:
    assert daemon.request({"op": "ping", "id": "p"})["id"] == "p"
    status = daemon.request({"op": "status"})
    assert status["state"] == "ready"
    assert status["pid"] == daemon.process.pid
    (voice,) = daemon.request({"op": "voices"})["voices"]
    assert (voice["name"], voice["default"], voice["sample_rate"]) == ("tone", True, 24_000)
    before = daemon.request({"op": "stats"})
    synthesize(daemon)
    after = daemon.request({"op": "stats"})
    assert after["done"] == before["done"] + 1
    assert after["audio_s"] > before["audio_s"]
    assert after["steps"] > before["steps"]
    assert after["steps_per_s"] > 0
    assert after["rows_per_step"] >= 1
    assert after["slot_wait_ms"]["count"] > before["slot_wait_ms"]["count"]
    assert before["engine_cpu_s"] < after["engine_cpu_s"] < after["cpu_s"]


def test_synthesize_gives_a_req_socket_the_whole_audio_in_one_reply(daemon: Daemon) -> None:
    reply = synthesize(daemon, id="whole")
    assert (reply["event"], reply["id"], reply["format"]) == ("done", "whole", "wav")
    audio, rate = samples(reply["audio_bytes"])
    assert rate == reply["sample_rate"] == 24_000
    assert audio.size / rate == pytest.approx(reply["audio_s"], abs=1e-3)
    assert np.abs(audio).max() > 1_000
    assert reply["rtf"] == pytest.approx(reply["synthesis_s"] / reply["audio_s"], abs=1e-4)
    assert reply["first_audio_ms"] > 0


def test_speak_without_a_loudspeaker_is_a_typed_error_and_synthesis_goes_on(daemon: Daemon) -> None:
    reply = daemon.request({"op": "speak", "text": SENTENCE})
    assert (reply["event"], reply["code"], reply["retryable"]) == ("failed", "no_audio_device", True)
    assert reply["hint"]
    assert synthesize(daemon)["event"] == "done"


# -- events -------------------------------------------------------------------------------------


def test_a_dealer_gets_every_event_in_order(dealer: zmq.Socket[bytes]) -> None:
    send(dealer, op="synthesize", text=SENTENCE, id="e", reply="events", stream=True, format="pcm_s16le")
    events = receive_until(dealer, *ENDINGS)
    kinds = [e["event"] for e in events]
    assert kinds[:2] == ["accepted", "started"]
    assert kinds[-1] == "done"
    assert set(kinds[2:-1]) == {"audio"}
    pieces = events[2:-1]
    assert [p["seq"] for p in pieces] == list(range(len(pieces)))
    assert [p["last"] for p in pieces] == [False] * (len(pieces) - 1) + [True]
    assert all(len(p["audio_bytes"]) == 2 * p["samples"] for p in pieces)
    assert sum(p["samples"] for p in pieces) / 24_000 == pytest.approx(events[-1]["audio_s"], abs=1e-3)
    assert {e["id"] for e in events} == {"e"}
    assert len({e["job"] for e in events}) == 1


@pytest.mark.parametrize("text", [SENTENCE, LONG[:600]])
def test_streamed_audio_equals_the_whole(daemon: Daemon, dealer: zmq.Socket[bytes], text: str) -> None:
    send(dealer, op="synthesize", text=text, seed=7, reply="events", stream=True, format="pcm_s16le")
    pieces = [e for e in receive_until(dealer, *ENDINGS) if e["event"] == "audio"]
    streamed = np.frombuffer(b"".join(p["audio_bytes"] for p in pieces), np.int16)
    whole, _ = samples(synthesize(daemon, text=text, seed=7)["audio_bytes"])
    assert np.array_equal(streamed, whole)


def test_a_dealer_may_send_the_empty_delimiter_and_gets_it_back(dealer: zmq.Socket[bytes]) -> None:
    dealer.send_multipart([b"", b'{"op":"ping","id":"d"}'])
    empty, header = dealer.recv_multipart()
    assert (empty, json.loads(header)["id"]) == (b"", "d")


def test_lifecycle_events_are_published_without_text_or_audio(daemon: Daemon) -> None:
    with daemon.subscriber() as events:
        time.sleep(0.2)  # a subscription takes a moment to arrive
        synthesize(daemon, text="Confidential words.", id="pub")
        seen = []
        while not seen or seen[-1][0] != b"done":
            assert events.poll(5_000), f"only {seen} was published"
            seen.append(events.recv_multipart())
    assert [frames[0] for frames in seen] == [b"accepted", b"started", b"done"]
    assert all(len(frames) == 2 and b"Confidential" not in frames[1] for frames in seen)
    assert {json.loads(frames[1])["id"] for frames in seen} == {"pub"}


# -- parameters ---------------------------------------------------------------------------------


def test_speed_changes_the_length_and_volume_the_level(daemon: Daemon) -> None:
    plain, _ = samples(synthesize(daemon)["audio_bytes"])
    fast, _ = samples(synthesize(daemon, speed=2.0)["audio_bytes"])
    quiet, _ = samples(synthesize(daemon, volume=0.25)["audio_bytes"])
    loud, _ = samples(synthesize(daemon, volume=4.0)["audio_bytes"])
    assert 0.4 < fast.size / plain.size < 0.6
    assert np.abs(quiet.astype(int) * 4 - plain).max() <= 4
    clipped = np.clip(plain.astype(int) * 4, -32_768, 32_767)
    assert np.abs(loud - clipped).max() <= 8  # limited, never wrapped around


@pytest.mark.parametrize("form", ["wav", "flac", "ogg_opus", "mp3"])
@pytest.mark.parametrize("rate", [0, 16_000, 48_000])
def test_every_format_decodes_to_the_same_duration(daemon: Daemon, form: str, rate: int) -> None:
    reply = synthesize(daemon, format=form, sample_rate=rate)
    assert reply["event"] == "done", reply
    audio, decoded_rate = soundfile.read(io.BytesIO(reply["audio_bytes"]))
    assert decoded_rate == reply["sample_rate"] == (rate or 24_000)
    assert len(audio) / decoded_rate == pytest.approx(reply["audio_s"], abs=0.12)


# -- bad input ----------------------------------------------------------------------------------

BAD: list[tuple[str, bytes | dict[str, Any], str, str]] = [
    ("not json", b"hello", "bad_json", "JSON"),
    ("empty", b"", "bad_json", "JSON"),
    ("invalid utf-8", b'{"op":"ping","id":"\xff"}', "bad_json", ""),
    ("not an object", b"[1,2]", "bad_json", "object"),
    ("nan", b'{"op":"synthesize","text":"a","speed":NaN}', "bad_json", ""),
    ("no op", {"text": "a"}, "bad_value", "op"),
    ("unknown op", {"op": "xyzzy"}, "unknown_operation", "synthesize"),
    ("near op", {"op": "synthesise", "text": "a"}, "unknown_operation", "'synthesize'"),
    ("near field", {"op": "synthesize", "text": "a", "speeed": 1}, "unknown_field", "'speed'"),
    ("wrong type", {"op": "synthesize", "text": ["a"]}, "bad_value", "text"),
    ("speed low", {"op": "synthesize", "text": "a", "speed": 0.49}, "bad_value", "speed"),
    ("speed high", {"op": "synthesize", "text": "a", "speed": 2.01}, "bad_value", "speed"),
    ("volume", {"op": "synthesize", "text": "a", "volume": 4.5}, "bad_value", "volume"),
    ("seed", {"op": "synthesize", "text": "a", "seed": -1}, "bad_value", "seed"),
    ("voice", {"op": "synthesize", "text": "a", "voice": "tome"}, "unknown_voice", "'tone'"),
    ("empty text", {"op": "synthesize", "text": ""}, "empty_text", ""),
    ("spaces", {"op": "synthesize", "text": " \n\t "}, "empty_text", ""),
    ("control", {"op": "synthesize", "text": "\x00\x01\u202e"}, "empty_text", ""),
    ("emoji", {"op": "synthesize", "text": "😀🎉"}, "unspeakable_text", ""),
    ("punctuation", {"op": "synthesize", "text": "... !?"}, "unspeakable_text", ""),
    ("too long", {"op": "synthesize", "text": "a" * 5_001}, "text_too_long", "5000"),
    ("format", {"op": "synthesize", "text": "a", "format": "aiff"}, "bad_value", "format"),
    (
        "opus rate",
        {"op": "synthesize", "text": "a", "format": "ogg_opus", "sample_rate": 22_050},
        "unsupported_format",
        "24000",
    ),
    ("rate", {"op": "synthesize", "text": "a", "sample_rate": 7}, "unsupported_format", ""),
    ("ack", {"op": "synthesize", "text": "a", "reply": "ack"}, "bad_value", "reply"),
    ("stream", {"op": "synthesize", "text": "a", "stream": True}, "bad_value", "stream"),
    ("req events", {"op": "synthesize", "text": "a", "reply": "events"}, "events_need_dealer", "DEALER"),
    ("cancel what", {"op": "cancel"}, "bad_value", "cancel"),
    ("no such job", {"op": "cancel", "job": "x-1"}, "unknown_job", "x-1"),
    ("frame", {"op": "synthesize", "text": "a" * 300_000}, "frame_too_large", "256"),
    ("version", {"op": "ping", "v": 2}, "bad_value", "v"),
    ("markup", {"op": "synthesize", "text": "a", "markup": "xml"}, "bad_value", "ssml"),
    (
        "languages",
        {"op": "synthesize", "text": "a", "languages": {"zh": {"top_k": 3}}},
        "bad_value",
        "languages: the voice 'tone' cannot be steered by it",
    ),
    (
        "run voice",
        {"op": "synthesize", "text": "a", "run_voices": {"zh": "tune"}},
        "bad_value",
        "run_voices.zh: unknown voice 'tune'",
    ),
]


@pytest.mark.parametrize(("header", "code", "says"), [c[1:] for c in BAD], ids=[c[0] for c in BAD])
def test_bad_input_gets_its_error_and_the_daemon_goes_on(
    daemon: Daemon, header: bytes | dict[str, Any], code: str, says: str
) -> None:
    before = daemon.request({"op": "stats"})["rejected"].get(code, 0)
    if isinstance(header, dict):
        header = {"id": "bad", **header}
    reply = daemon.request(header)
    assert (reply["event"], reply["code"]) == ("failed", code), reply
    assert says in reply["message"] + reply["hint"]
    if isinstance(header, dict) and code != "frame_too_large":
        assert reply["id"] == "bad"
    assert daemon.request({"op": "stats"})["rejected"][code] == before + 1
    assert synthesize(daemon)["event"] == "done"


def test_extra_frames_are_refused(dealer: zmq.Socket[bytes]) -> None:
    dealer.send_multipart([b'{"op":"ping"}', b"what is this"])
    assert receive(dealer)["code"] == "bad_frames"


def test_a_frame_beyond_the_hard_limit_costs_only_its_own_connection(daemon: Daemon) -> None:
    with daemon.socket() as giant:
        giant.send(b"x" * (20 * 1024 * 1024))
        assert giant.poll(500) == 0
    assert synthesize(daemon)["event"] == "done"


def test_skipped_characters_are_counted(dealer: zmq.Socket[bytes]) -> None:
    send(dealer, op="synthesize", text="Ready 🎉 now\u200b.", reply="events")
    accepted, *_, done = receive_until(dealer, *ENDINGS)
    assert accepted["skipped"] == done["skipped"] == 2
    assert done["marks"] == []


def test_voices_of_one_sample_rate_may_speak_for_each_other() -> None:
    others = (bundles.tone(work=1), bundles.tone(rate=16_000))
    with running(bundles.tone(), *others) as daemon:
        near, far = (path.name for path in others)
        reading = {"numbers": "zh", "digits": "digits", "emoji": "skip", "language": "en"}
        done = synthesize(daemon, run_voices={"zh": near, "en": "spell"}, markup="plain", **reading)
        assert done["event"] == "done", done
        refused = synthesize(daemon, run_voices={"zh": far})
        assert (refused["code"], refused["hint"]) == ("bad_value", "choose a voice of the same sample rate")
        assert "16000 Hz" in refused["message"]


def test_a_duplicate_live_id_is_refused_until_the_first_has_ended(slow_bundle: Path) -> None:
    with running(slow_bundle) as daemon, daemon.socket() as socket, daemon.socket() as other:
        send(socket, op="synthesize", text=LONG[:300], id="same", reply="events")
        send(socket, op="synthesize", text=SENTENCE, id="same", reply="events")
        send(other, op="synthesize", text=SENTENCE, id="same")
        refused = receive_until(socket, "failed")[-1]
        assert refused["code"] == "duplicate_id"
        assert receive(other)["event"] == "done"  # ids belong to a connection
        assert receive_until(socket, "done", "failed")[-1]["event"] == "done"
        send(socket, op="synthesize", text=SENTENCE, id="same")
        assert receive(socket)["event"] == "done"


# -- many clients -------------------------------------------------------------------------------


def test_clients_never_receive_each_others_audio(daemon: Daemon) -> None:
    texts = {f"c{n}": "abcdefghij"[n] * (20 + 7 * n) for n in range(8)}
    expected = {
        key: synthesize(daemon, text=text, format="pcm_s16le")["audio_bytes"] for key, text in texts.items()
    }
    assert len(set(expected.values())) == len(expected)
    wrong: list[str] = []

    def client(key: str, text: str) -> None:
        with daemon.socket() as socket:
            for number in range(10):
                stream = number % 2 == 1
                send(
                    socket,
                    op="synthesize",
                    text=text,
                    id=f"{key}-{number}",
                    reply="events",
                    stream=stream,
                    format="pcm_s16le",
                )
                events = receive_until(socket, *ENDINGS)
                heard = b"".join(e["audio_bytes"] for e in events if e["event"] == "audio")
                if {e["id"] for e in events} != {f"{key}-{number}"} or heard != expected[key]:
                    wrong.append(f"{key}-{number}")

    threads = [threading.Thread(target=client, args=item) for item in texts.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert wrong == []
    assert not any(thread.is_alive() for thread in threads)


def test_a_job_that_would_wait_too_long_is_told_how_long(slow_bundle: Path) -> None:
    with running(slow_bundle, limits={"wait_s": 1.0}) as daemon, daemon.socket() as socket:
        send(socket, op="synthesize", text=LONG[:400], id="first", reply="events", stream=True)
        accepted, *_, done = receive_until(socket, "done")
        assert accepted["wait_s"] == 0.0, "nothing was before it"
        waits: list[float] = []
        refused: dict[str, Any] = {}
        for number in range(60):
            send(socket, op="synthesize", text=LONG, id=str(number), reply="events", stream=True)
            answer = receive_until(socket, "accepted", "failed")[-1]
            if answer["event"] == "failed":
                refused = answer
                break
            waits.append(answer["wait_s"])
        assert (refused["code"], refused["retryable"]) == ("busy", True)
        assert "the limit is 1 s" in refused["message"]
        assert "limits.wait_s" in refused["hint"]
        assert waits[0] == 0.0
        assert max(waits) <= 1.0
        # One that is served before them does not wait for them.
        send(socket, op="synthesize", text=SENTENCE, id="now", priority="important", reply="events")
        while (event := receive(socket))["id"] != "now":
            pass
        assert event["event"] == "accepted"
        assert event["wait_s"] == 0.0
        assert done["synthesis_s"] > 0


def test_a_flood_is_answered_busy_and_every_job_ends_once(slow_bundle: Path) -> None:
    with running(slow_bundle, limits={"jobs": 6, "jobs_per_client": 4}) as daemon:
        with daemon.socket() as first, daemon.socket() as second:
            for number in range(40):
                for name, socket in (("a", first), ("b", second)):
                    send(socket, op="synthesize", text="ab", id=f"{name}{number}", reply="events")
            endings: Counter[str] = Counter()
            codes: Counter[str] = Counter()
            for socket in (first, second):
                for _ in range(40):
                    event = receive_until(socket, *ENDINGS)[-1]
                    endings[event["id"]] += 1
                    codes[event.get("code", event["event"])] += 1
            assert len(endings) == 80
            assert set(endings.values()) == {1}
            assert set(codes) == {"done", "busy"}
            assert codes["done"] >= 6
            assert first.poll(200) == second.poll(200) == 0
        busy = daemon.request({"op": "stats"})["rejected"]["busy"]
        assert busy == codes["busy"]


def test_priority_decides_who_is_served_next(slow_bundle: Path) -> None:
    with running(slow_bundle) as daemon, daemon.socket() as socket:
        # One long utterance keeps the engine busy until all the others are waiting.
        send(socket, op="synthesize", text="ab " * 50, id="first", reply="events")
        receive_until(socket, "started")
        for priority in ("progress", "notification", "text", "message", "important"):
            send(socket, op="synthesize", text=SENTENCE, id=priority, priority=priority)
        order = [receive_until(socket, "done")[-1]["id"] for _ in range(6)]
    assert order[0] == "first"
    assert order[1:] == ["important", "message", "text", "notification", "progress"]


def test_a_deadline_that_passes_in_the_queue_fails_the_job(slow_bundle: Path) -> None:
    with running(slow_bundle) as daemon, daemon.socket() as socket:
        send(socket, op="synthesize", text=LONG[:150], id="long", priority="important")
        send(socket, op="synthesize", text=SENTENCE, id="late", deadline_ms=30)
        send(socket, op="synthesize", text=SENTENCE, id="patient", deadline_ms=60_000)
        replies = {r["id"]: r for r in (receive(socket) for _ in range(3))}
    assert replies["late"]["code"] == "deadline"
    assert replies["late"]["retryable"] is True
    assert replies["long"]["event"] == replies["patient"]["event"] == "done"


# -- cancel and disconnect ----------------------------------------------------------------------


def test_cancel_while_queued_frees_the_place(slow_bundle: Path) -> None:
    with running(slow_bundle) as daemon, daemon.socket() as socket:
        send(socket, op="synthesize", text=LONG[:200], id="running", reply="events")
        send(socket, op="synthesize", text=LONG[:200], id="queued", reply="events")
        receive_until(socket, "started")
        send(socket, op="cancel", target="queued", id="c")
        events = receive_until(socket, "cancel_reply")
        cancelled = receive_until(socket, "cancelled")[-1]
        assert cancelled["id"] == "queued"
        assert events[-1]["jobs"] == [cancelled["job"]]
        rest = receive_until(socket, "done")
        assert {e["id"] for e in rest} == {"running"}
        assert daemon.request({"op": "status"})["jobs"] == []


def test_cancel_between_chunks_stops_the_stream_and_the_next_job_runs(slow_bundle: Path) -> None:
    with running(slow_bundle) as daemon, daemon.socket() as socket:
        send(socket, op="synthesize", text=LONG, id="long", reply="events", stream=True, format="pcm_s16le")
        job = receive_until(socket, "audio")[-1]["job"]
        begin = time.monotonic()
        assert daemon.request({"op": "cancel", "job": job})["jobs"] == [job]
        events = receive_until(socket, *ENDINGS)
        assert events[-1]["event"] == "cancelled"
        send(socket, op="synthesize", text="a", id="next")
        assert receive(socket)["id"] == "next"
        assert time.monotonic() - begin < 2.0
        assert socket.poll(300) == 0, "audio of a cancelled job arrived after its end"


def test_cancel_mine_and_all(slow_bundle: Path) -> None:
    with running(slow_bundle) as daemon, daemon.socket() as mine, daemon.socket() as theirs:
        for number in range(3):
            send(mine, op="synthesize", text=LONG[:200], id=f"m{number}")
            send(theirs, op="synthesize", text=LONG[:200], id=f"t{number}", client="app")
        until = time.monotonic() + 5
        while len(daemon.request({"op": "status"})["jobs"]) < 6:
            assert time.monotonic() < until
        send(mine, op="cancel", scope="mine", id="c")
        replies = [receive(mine) for _ in range(4)]
        assert Counter(r["event"] for r in replies) == {"cancelled": 3, "cancel_reply": 1}
        assert len(daemon.request({"op": "status"})["jobs"]) == 3
        # Another connection of the same user and the same application may cancel its jobs.
        assert daemon.request({"op": "cancel", "scope": "mine", "client": "other"})["jobs"] == []
        assert len(daemon.request({"op": "cancel", "target": "t0", "client": "app"})["jobs"]) == 1
        assert len(daemon.request({"op": "cancel", "scope": "all"})["jobs"]) == 2
        assert {receive(theirs)["event"] for _ in range(3)} == {"cancelled"}


def test_a_vanished_clients_jobs_follow_their_policy(slow_bundle: Path) -> None:
    with running(slow_bundle) as daemon, daemon.subscriber() as published:
        time.sleep(0.2)
        gone = daemon.socket()
        send(gone, op="synthesize", text=LONG[:200], id="dropped", reply="events")
        send(gone, op="synthesize", text=SENTENCE, id="kept", on_disconnect="finish", reply="events")
        receive_until(gone, "started")
        gone.close()
        endings = {}
        while len(endings) < 2:
            assert published.poll(10_000), f"only {endings} ended"
            topic, header = published.recv_multipart()
            if topic.decode() in ENDINGS:
                endings[json.loads(header)["id"]] = topic.decode()
        assert endings == {"dropped": "cancelled", "kept": "done"}
        assert synthesize(daemon)["event"] == "done"


def test_a_client_that_stops_reading_fails_without_holding_up_others(tone_bundle: Path) -> None:
    limits = {"client_stall_s": 0.5, "reply_buffer_s": 5.0}
    with running(tone_bundle, limits=limits) as daemon:
        slow = daemon.context.socket(zmq.DEALER)
        slow.linger = 0
        slow.rcvhwm = 1
        slow.setsockopt(zmq.RCVBUF, 4096)
        slow.connect(daemon.endpoint)
        text = "a b " * 1200
        send(slow, op="synthesize", text=text, id="slow", reply="events", stream=True, format="pcm_f32le")
        until = time.monotonic() + 20
        while not (failed := daemon.request({"op": "stats"})["failed"]):
            assert time.monotonic() < until, "the stalled job was never ended"
            assert synthesize(daemon)["event"] == "done"
            time.sleep(0.05)
        assert failed == {"client_too_slow": 1}
        slow.close()


@contextmanager
def reluctant(daemon: Daemon) -> Iterator[zmq.Socket[bytes]]:
    """A connection that takes next to nothing before it is read from."""
    with daemon.context.socket(zmq.DEALER) as slow:
        slow.linger = 0
        slow.rcvhwm = 1
        slow.setsockopt(zmq.RCVBUF, 4096)
        slow.connect(daemon.endpoint)
        yield slow


def test_a_stream_of_small_chunks_waits_for_who_plays_it_as_it_comes(tone_bundle: Path) -> None:
    """It is held back at `reply_buffer_s`: some two thousand messages of 20 ms, read two seconds late."""
    text = ("The pump on line four has stopped, please check it. " * 97)[:5000]
    with (
        running(tone_bundle, stream={"chunk_ms": 20}, listen={"heartbeat_ms": 50}) as daemon,
        reluctant(daemon) as slow,
    ):
        send(slow, op="synthesize", text=text, reply="events", stream=True)
        time.sleep(2.0)
        events = receive_until(slow, *ENDINGS)
        pieces = [event for event in events if event["event"] == "audio"]
        assert events[-1]["event"] == "done", events[-1]
        assert [piece["seq"] for piece in pieces] == list(range(len(pieces)))
        assert sum(piece["samples"] for piece in pieces) == round(events[-1]["audio_s"] * 24_000)
        assert len(pieces) > 2_000


def test_what_waits_of_a_cancelled_stream_is_not_sent_any_more(tone_bundle: Path) -> None:
    text = ("The pump on line four has stopped, please check it. " * 97)[:5000]
    with running(tone_bundle, stream={"chunk_ms": 20}) as daemon, reluctant(daemon) as slow:
        send(slow, op="synthesize", text=text, reply="events", stream=True, client="one")
        time.sleep(1.0)
        assert len(daemon.request({"op": "cancel", "scope": "all"})["jobs"]) == 1
        events = receive_until(slow, *ENDINGS)
        assert events[-1]["event"] == "cancelled"
        pieces = [event for event in events if event["event"] == "audio"]
        assert [piece["seq"] for piece in pieces] == list(range(len(pieces)))
        assert len(pieces) < 1_000  # of two thousand: what the sockets on the way had taken


def test_a_stream_nobody_reads_any_more_is_finished_when_its_client_wanted_that(tone_bundle: Path) -> None:
    with running(tone_bundle, limits={"reply_buffer_s": 1.0}) as daemon, daemon.subscriber() as published:
        time.sleep(0.2)  # a subscription takes a moment to arrive
        gone = daemon.socket()
        send(
            gone,
            op="synthesize",
            text=LONG,
            id="kept",
            on_disconnect="finish",
            reply="events",
            stream=True,
            format="pcm_f32le",
            sample_rate=192_000,
        )
        receive(gone)
        gone.close()
        topic = b""
        while topic.decode() not in ENDINGS:
            assert published.poll(30_000), "the job does not end"
            topic, _ = published.recv_multipart()
        assert topic == b"done"


def test_the_memory_for_whole_results_is_bounded_and_comes_back(tone_bundle: Path) -> None:
    with running(tone_bundle, limits={"reply_mb": 1}) as daemon:
        large = {"format": "pcm_f32le", "sample_rate": 192_000}
        reply = synthesize(daemon, text=LONG, **large)
        assert (reply["event"], reply["code"], reply["retryable"]) == ("failed", "result_too_large", False)
        assert "stream" in reply["hint"]
        # Together several times what is allowed: they are made after each other, and all arrive.
        with daemon.socket() as dealer:
            count = 16
            for i in range(count):
                whole = {"reply": ("final", "events")[i % 2], "format": "wav", "sample_rate": 48_000}
                send(dealer, op="synthesize", text=f"{SENTENCE} {SENTENCE}", id=f"{i}", **whole)
            ends: dict[str, str] = {}
            received = 0
            while len(ends) < count:
                event = receive(dealer, 60.0)
                received += len(event.get("audio_bytes", b""))
                if event["event"] in ENDINGS:
                    ends[event["id"]] = event["event"]
        assert set(ends.values()) == {"done"}
        assert received > 2 << 20
        for _ in range(4):
            assert synthesize(daemon, text=SENTENCE, format="wav", sample_rate=48_000)["event"] == "done"


def test_no_spoken_text_is_logged_above_debug(daemon: Daemon) -> None:
    synthesize(daemon, text="Xylophone quetzal.")
    daemon.request({"op": "synthesize", "text": "Xylophone quetzal.", "voice": "nobody"})
    lines = [line for line in daemon.log.splitlines() if " debug" not in line[:20]]
    assert any("job done" in line for line in lines)
    assert not any("Xylophone" in line or "quetzal" in line for line in lines)


# -- abuse --------------------------------------------------------------------------------------


def test_a_new_client_on_a_reused_descriptor_keeps_its_job(slow_bundle: Path) -> None:
    with running(slow_bundle) as daemon:
        for _ in range(5):
            with daemon.socket() as leaving:
                for number in range(20):
                    send(leaving, op="synthesize", text="ab", id=str(number))
                time.sleep(0.02)
            reply = daemon.request({"op": "synthesize", "text": SENTENCE}, timeout_s=20)
            assert reply["event"] == "done", reply


def test_more_clients_than_descriptors_do_not_end_the_daemon(tone_bundle: Path) -> None:
    limited = ["bash", "-c", 'ulimit -n 500; exec "$@"', "--"]
    with running(tone_bundle, prefix=limited) as daemon:
        raw = []
        for _ in range(800):
            client = socket_module.socket(socket_module.AF_UNIX)
            client.settimeout(1.0)
            try:
                client.connect(daemon.endpoint.removeprefix("ipc://"))
            except OSError:
                client.close()
                time.sleep(0.01)
                continue
            raw.append(client)
        assert daemon.process.poll() is None, daemon.log[-2000:]
        for client in raw:
            client.close()
        reply = daemon.request({"op": "synthesize", "text": SENTENCE}, timeout_s=30)
        assert reply["event"] == "done"
        assert "too many connections" in daemon.log


def test_a_flood_of_nonsense_fills_no_log(daemon: Daemon) -> None:
    before = len(daemon.log.splitlines())
    with daemon.socket() as socket:
        for _ in range(500):
            socket.send(b"nonsense")
        assert {receive(socket)["code"] for _ in range(500)} == {"bad_json"}
    assert synthesize(daemon)["event"] == "done"
    assert len(daemon.log.splitlines()) - before < 150


def test_expensive_nonsense_does_not_hold_up_others(daemon: Daemon) -> None:
    tower = "e" + "\u0301\u0316" * 2_400
    for header in (
        {"op": "x" * 200_000},
        {"op": "synthesize", "text": tower},
        {"op": "ping", "y" * 200_000: 1},
    ):
        begin = time.monotonic()
        daemon.request(header)
        assert time.monotonic() - begin < 1.0
