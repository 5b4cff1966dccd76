"""Who is heard when, through the whole daemon: a real PulseAudio null sink, its monitor recorded."""

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
from tests.daemon import ENDINGS, Daemon, receive, running, send
from tests.pulse import RATE, PulseServer, find, pulse, pulse_server, snr_db
from tests.test_speak import AUDIO, expected, heard

__all__ = ["pulse", "pulse_server"]
pytestmark = pytest.mark.audio
FIRST, SECOND, THIRD = "Abcdefghij klmnopqrst.", "Uvwxyz zyxwvutsrq ponmlk.", "Jihg fedcba acegi."
TEXT = f"{FIRST} {SECOND} {THIRD}"
ALARM = "Mnbvcx lkjhgf."
PROGRESS_S = 0.6


@pytest.fixture(scope="module")
def speaking(pulse_server: PulseServer) -> Iterator[Daemon]:
    if not pulse_server.running:
        pulse_server.start()
    env = {"PULSE_SERVER": pulse_server.address}
    speech = {"progress_s": PROGRESS_S, "waiting_per_client": 4, "history": 3, "history_texts": True}
    with running(bundles.tone_of(-26.0), env=env, audio=dict(AUDIO), speech=speech) as daemon:
        until = time.monotonic() + 5
        while not (status := daemon.request({"op": "status"}))["audio_device"]:
            assert time.monotonic() < until, status
        yield daemon


@pytest.fixture
def socket(speaking: Daemon) -> Iterator[zmq.Socket[bytes]]:
    with speaking.socket() as made:
        yield made
    speaking.request({"op": "cancel", "scope": "all"})


def say(socket: zmq.Socket[bytes], id: str, text: str, priority: str = "text", **fields: Any) -> None:
    send(socket, op="speak", id=id, text=text, priority=priority, reply="events", **fields)


def endings(socket: zmq.Socket[bytes], *ids: str) -> dict[str, dict[str, Any]]:
    """How these ended, in the order in which they did."""
    found: dict[str, dict[str, Any]] = {}
    while not set(ids) <= found.keys():
        event = receive(socket)
        if event["event"] in ENDINGS:
            found[event["id"]] = event
    return found


def wait_for(socket: zmq.Socket[bytes], id: str, kind: str) -> dict[str, Any]:
    while (event := receive(socket)).get("id") != id or event["event"] != kind:
        pass
    return event


def placed(played: np.ndarray[Any, Any], *sounds: np.ndarray[Any, Any]) -> list[int]:
    """Where each of them is heard, whole, behind the one before."""
    places, behind = [], 0
    for sound in sounds:
        at = behind + find(sound, played[behind:])
        assert snr_db(sound, played[at : at + sound.size]) > 40
        places.append(at)
        behind = at + sound.size
    return places


@pytest.mark.parametrize("how", ["resume", "restart", "drop"])
def test_an_alarm_cuts_a_text_which_goes_on_as_it_wishes(
    speaking: Daemon, pulse: PulseServer, socket: zmq.Socket[bytes], how: str
) -> None:
    alarm, *parts = (expected(speaking, text) for text in (ALARM, FIRST, SECOND, THIRD))
    first, second = parts[:2]
    with pulse.record() as recording:
        say(socket, "text", TEXT, after_interrupt=how)
        wait_for(socket, "text", "started")
        time.sleep((first.size + second.size * 0.5) / RATE)
        asked = time.monotonic()
        say(socket, "alarm", ALARM, "important")
        found = endings(socket, "text", "alarm")
        took = time.monotonic() - asked
        played = heard(recording)
    if how == "drop":
        assert list(found) == ["text", "alarm"]
        assert (found["text"]["event"], found["text"]["reason"]) == ("cancelled", "interrupted")
        placed(played, first, alarm)
        return
    assert list(found) == ["alarm", "text"]
    assert {event["event"] for event in found.values()} == {"done"}
    assert found["text"]["audio_s"] == pytest.approx(sum(p.size for p in parts) / RATE, abs=0.05)
    again = parts[1:] if how == "resume" else parts
    (cut,) = placed(played, alarm)
    (begin,) = placed(played[:cut], first)
    placed(played[cut + alarm.size :], *again)
    begun = cut - begin - first.size  # of the second sentence, before the alarm
    assert 0.1 * second.size < begun < second.size, "it was not cut in the middle of its second sentence"
    assert snr_db(second[: begun // 2], played[begin + first.size :][: begun // 2]) > 40
    assert took < sum(sound.size for sound in (alarm, *again)) / RATE + 1.5


def test_the_alarm_is_heard_soon(speaking: Daemon, pulse: PulseServer, socket: zmq.Socket[bytes]) -> None:
    alarm = expected(speaking, ALARM)
    with pulse.record() as recording:
        say(socket, "text", TEXT)
        wait_for(socket, "text", "started")
        time.sleep(0.5)
        before = recording.seconds
        say(socket, "alarm", ALARM, "important")
        endings(socket, "alarm")
        played = heard(recording)
    (at,) = placed(played, alarm)
    assert at / RATE - before < AUDIO["latency_ms"] / 1e3 + 0.35


def test_marks_are_told_once(speaking: Daemon, socket: zmq.Socket[bytes]) -> None:
    marked = f"<speak><s><mark name='a'/>{FIRST}</s><s><mark name='b'/>{SECOND}<mark name='c'/></s></speak>"
    say(socket, "text", marked, markup="ssml")
    wait_for(socket, "text", "started")
    time.sleep(0.6)
    say(socket, "alarm", ALARM, "important")
    told = [event for event in until_ended(socket, "text") if event["event"] == "mark"]
    assert [event["name"] for event in told] == ["a", "b", "c"]


def until_ended(socket: zmq.Socket[bytes], id: str) -> list[dict[str, Any]]:
    events = []
    while not events or events[-1].get("id") != id or events[-1]["event"] not in ENDINGS:
        events.append(receive(socket))
    assert events[-1]["event"] == "done"
    assert [mark["name"] for mark in events[-1]["marks"]] == ["a", "b", "c"]
    return events


def test_a_notification_is_not_heard_while_others_are(socket: zmq.Socket[bytes]) -> None:
    say(socket, "alone", ALARM, "notification")
    assert endings(socket, "alone")["alone"]["event"] == "done"
    say(socket, "text", TEXT)
    wait_for(socket, "text", "started")
    say(socket, "note", ALARM, "notification")
    assert endings(socket, "note")["note"]["reason"] == "busy"
    say(socket, "patient", ALARM, "notification", drop_if_busy=False)
    assert list(endings(socket, "text", "patient")) == ["text", "patient"]


def test_of_progress_the_last_is_heard(socket: zmq.Socket[bytes]) -> None:
    say(socket, "text", f"{TEXT} {TEXT}")
    wait_for(socket, "text", "started")
    for percent in range(5):
        say(socket, f"{percent}", f"{ALARM} {percent}", "progress")
    found = endings(socket, "0", "1", "2", "3", "4", "text")
    assert [found[str(n)].get("reason") for n in range(5)] == ["replaced"] * 4 + [None]
    assert list(found)[-2:] == ["4", "text"], "it was promoted to a message, which interrupts a text"


def test_a_newer_text_replaces_an_older_one_of_its_client_only(speaking: Daemon) -> None:
    with speaking.socket() as mine, speaking.socket() as other:
        say(other, "other", TEXT)
        wait_for(other, "other", "started")
        say(mine, "old", FIRST)
        say(mine, "new", SECOND, replace="own")
        assert endings(mine, "old")["old"]["reason"] == "replaced"
        assert endings(mine, "new")["new"]["event"] == endings(other, "other")["other"]["event"] == "done"


def test_order_expiry_and_the_bound_of_a_client(speaking: Daemon, socket: zmq.Socket[bytes]) -> None:
    say(socket, "text", TEXT)
    wait_for(socket, "text", "started")
    say(socket, "last", "Abc.")
    say(socket, "next", "Def.", queue="next")
    say(socket, "late", "Ghi.", expires_ms=300)
    say(socket, "calm", "Jkl.", "message", interrupt=False)
    say(socket, "much", "Mno.")
    found = endings(socket, "text", "last", "next", "late", "calm", "much")
    assert (found["much"]["code"], found["much"]["retryable"]) == ("busy", True)
    assert (found["late"]["event"], found["late"]["reason"]) == ("cancelled", "expired")
    assert [one for one in found if found[one]["event"] == "done"] == ["text", "calm", "next", "last"]


def test_interruptions_at_random_times_lose_nothing(speaking: Daemon, socket: zmq.Socket[bytes]) -> None:
    chance = np.random.default_rng(3)
    say(socket, "text", f"{TEXT} {TEXT}")
    wait_for(socket, "text", "started")
    for number in range(8):
        time.sleep(float(chance.uniform(0.0, 0.5)))
        say(socket, f"{number}", "Abc.", ("important", "message")[number % 2], client=f"{number}")
    found = endings(socket, "text", *(str(n) for n in range(8)))
    assert {event["event"] for event in found.values()} == {"done"}
    assert list(found)[-1] == "text"
    stats = speaking.request({"op": "status"})
    assert stats["jobs"] == []


def test_what_was_heard_is_told_and_said_once_more(
    speaking: Daemon, pulse: PulseServer, socket: zmq.Socket[bytes]
) -> None:
    for number in range(4):
        say(socket, f"{number}", f"Abc {number}.", client="panel")
        endings(socket, f"{number}")
    say(socket, "cut", TEXT, "notification")
    wait_for(socket, "cut", "started")
    time.sleep(0.5)
    say(socket, "alarm", ALARM, "important")
    endings(socket, "alarm")
    jobs = speaking.request({"op": "history"})["jobs"]
    assert [(job["client_id"], job["ended"], job["reason"]) for job in jobs] == [
        ("alarm", "done", ""),
        ("cut", "cancelled", "interrupted"),
        ("3", "done", ""),
    ]
    assert 0.2 < jobs[1]["heard_s"] < 1.5
    assert jobs[2]["text"] == "Abc 3."
    assert (jobs[2]["client"], jobs[2]["priority"]) == ("panel", "text")
    assert abs(jobs[0]["ended_at"] - time.time()) < 5
    assert len(speaking.request({"op": "history", "last": 1})["jobs"]) == 1
    alarm = expected(speaking, ALARM)
    with pulse.record() as recording:
        assert speaking.request({"op": "repeat", "job": jobs[0]["job"]})["event"] == "done"
        placed(heard(recording), alarm)
    assert speaking.request({"op": "repeat", "job": "none"})["code"] == "unknown_job"
    with Client(speaking.endpoint) as client:
        assert client.history(1).jobs[0].text == ALARM
        assert client.repeat().audio_s == pytest.approx(alarm.size / RATE, abs=0.05)
    shown = subprocess.run(
        [sys.executable, "-m", "edged", "--endpoint", speaking.endpoint, "history", "--last", "1"],
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    assert ALARM in shown.stdout


def test_texts_are_kept_only_where_that_was_asked_for(pulse: PulseServer) -> None:
    with running(bundles.tone(), env={"PULSE_SERVER": pulse.address}, audio=dict(AUDIO)) as private:
        assert private.request({"op": "speak", "text": ALARM})["event"] == "done"
        assert private.request({"op": "history"})["jobs"][0]["text"] == ""
        assert private.request({"op": "repeat"})["code"] == "unknown_job"


def ask(socket: zmq.Socket[bytes], **header: Any) -> dict[str, Any]:
    """The answer to this request; events of jobs that come before it are passed over."""
    send(socket, id="q", **header)
    while (event := receive(socket)).get("id") != "q":
        pass
    return event


def test_a_pause_is_silent_and_goes_on_where_it_was(
    speaking: Daemon, pulse: PulseServer, socket: zmq.Socket[bytes]
) -> None:
    other, *parts = (expected(speaking, text) for text in (ALARM, FIRST, SECOND, THIRD))
    with pulse.record() as recording:
        say(socket, "text", TEXT)
        wait_for(socket, "text", "started")
        time.sleep((parts[0].size + parts[1].size * 0.5) / RATE)
        paused = ask(socket, op="control", do="pause", target="text")
        at = recording.seconds
        assert len(paused["jobs"]) == 1
        assert ask(socket, op="control", do="pause", scope="mine")["jobs"] == [], "it is paused already"
        (job,) = speaking.request({"op": "status"})["jobs"]
        assert (job["job"], job["phase"]) == (paused["jobs"][0], "paused")
        time.sleep(1.0)
        say(socket, "other", ALARM)
        assert list(endings(socket, "other")) == ["other"]
        time.sleep(0.5)
        assert ask(socket, op="control", do="resume", job=job["job"])["jobs"] == paused["jobs"]
        assert endings(socket, "text")["text"]["event"] == "done"
        played = heard(recording)
    (begin,) = placed(played, other)
    latency = AUDIO["latency_ms"] / 1e3
    silence = played[int((at + latency + 0.15) * RATE) : begin]
    assert silence.size > 0.3 * RATE
    assert np.abs(silence).max() < 1e-3
    first, second, third = parts
    (heard_first,) = placed(played[:begin], first)
    rest = played[begin + other.size :]
    tail, _ = placed(rest, second[-second.size // 5 :], third)
    cut = np.flatnonzero(np.abs(played[:begin]) > 1e-3)[-1] - heard_first - first.size
    assert 0.3 * second.size < cut < 0.8 * second.size
    left = np.flatnonzero(np.abs(rest) > 1e-3)[0]
    again = tail + second.size // 5 - left
    assert cut + again == pytest.approx(second.size, abs=0.03 * RATE), "but for the fades, nothing twice"


def test_a_sentence_is_skipped(speaking: Daemon, pulse: PulseServer, socket: zmq.Socket[bytes]) -> None:
    first, second, third = (expected(speaking, text) for text in (FIRST, SECOND, THIRD))
    before = speaking.request({"op": "stats"})["underruns"]
    with pulse.record() as recording:
        say(socket, "text", TEXT)
        wait_for(socket, "text", "started")
        time.sleep((first.size + second.size * 0.3) / RATE)
        assert len(ask(socket, op="control", do="skip", target="text")["jobs"]) == 1
        assert endings(socket, "text")["text"]["event"] == "done"
        played = heard(recording)
    begin, end = placed(played, first, third)
    assert end - begin < first.size + 0.9 * second.size
    say(socket, "last", FIRST)
    wait_for(socket, "last", "started")
    time.sleep(0.6)
    began = time.monotonic()
    ask(socket, op="control", do="skip", scope="all")
    assert endings(socket, "last")["last"]["event"] == "done"
    assert time.monotonic() - began < first.size / RATE - 0.6
    assert ask(socket, op="control", do="skip", scope="all")["jobs"] == []
    assert ask(socket, op="control", do="pause", target="last")["code"] == "unknown_job"
    assert speaking.request({"op": "stats"})["underruns"] == before


def test_of_those_that_are_cancelled_together_none_begins(
    speaking: Daemon, pulse: PulseServer, socket: zmq.Socket[bytes]
) -> None:
    for number in range(4):
        say(socket, f"{number}", TEXT)
    wait_for(socket, "0", "started")
    time.sleep(0.5)
    with pulse.record() as recording:
        time.sleep(0.3)
        assert len(ask(socket, op="cancel", scope="all")["jobs"]) == 4
        at = recording.seconds
        played = heard(recording, settle_s=1.5)
    behind = played[int((at + AUDIO["latency_ms"] / 1e3 + 0.15) * RATE) :]
    assert behind.size > RATE
    assert np.abs(behind).max() < 1e-3


def test_the_command_line_pauses_and_goes_on(speaking: Daemon, socket: zmq.Socket[bytes]) -> None:
    def edged(*arguments: str) -> str:
        command = [sys.executable, "-m", "edged", "--endpoint", speaking.endpoint, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout

    say(socket, "text", TEXT)
    job = wait_for(socket, "text", "started")["job"]
    assert edged("pause", job) == f"paused: {job}\n"
    assert "paused" in edged("status")
    assert edged("resume", "--all") == f"goes on: {job}\n"
    assert edged("skip", "--mine") == "skipped: nothing is being heard\n"
    assert edged("cancel", job) == f"cancelled: {job}\n"
