"""The loudspeaker of a PipeWire session: what is essential of the tests on PulseAudio."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from tests import bundles
from tests.daemon import running
from tests.pipewire import PipeWireServer, pipewire, pipewire_server
from tests.pulse import RATE, find, snr_db, wait_until
from tests.test_duck import DUCK_DB, music, softly, streams
from tests.test_heard import RING, check, listening, spoken
from tests.test_manners import ALARM, FIRST, SECOND, TEXT, ask, endings, placed, say, wait_for
from tests.test_speak import AUDIO, expected, heard

__all__ = ["pipewire", "pipewire_server"]
pytestmark = pytest.mark.audio


def speaking(pipewire: PipeWireServer, **audio: Any) -> Any:
    env = {"PULSE_SERVER": pipewire.address}
    return running(bundles.tone_of(-26.0), env=env, audio={**AUDIO, **audio})


def test_a_sentence_is_heard_as_it_was_made(pipewire: PipeWireServer) -> None:
    pytest.importorskip("pyloudnorm", reason="pyloudnorm is not installed (extra compile)")
    with listening(pipewire, "edged") as daemon:
        plain, _ = spoken(daemon, pipewire, "edged", RING)
    check(plain, 60.0)


def test_an_alarm_interrupts_a_text_and_a_pause_is_exact(pipewire: PipeWireServer) -> None:
    with speaking(pipewire) as daemon, daemon.socket() as socket:
        first, second, alarm = (expected(daemon, text) for text in (FIRST, SECOND, ALARM))
        with pipewire.record() as recording:
            say(socket, "text", TEXT)
            wait_for(socket, "text", "started")
            time.sleep(first.size / RATE / 2)
            assert len(ask(socket, op="control", do="pause", target="text")["jobs"]) == 1
            time.sleep(0.7)
            ask(socket, op="control", do="resume", target="text")
            resumed = wait_for(socket, "text", "resumed")["time_s"]
            wait_for(socket, "text", "position")
            time.sleep(0.3)
            say(socket, "alarm", ALARM, "important")
            found = endings(socket, "text", "alarm")
            played = heard(recording)
    assert [(name, end["event"]) for name, end in found.items()] == [("alarm", "done"), ("text", "done")]
    cut = round(resumed * RATE)
    before, after = first[: cut - RATE // 50], first[cut + RATE // 50 :]
    at = find(before, played)
    assert snr_db(before, played[at : at + before.size]) > 40
    begin = at + before.size + find(after, played[at + before.size :])
    assert snr_db(after, played[begin : begin + after.size]) > 40
    placed(played[begin:], alarm, second)


def test_a_job_waits_for_servers_that_were_killed(pipewire: PipeWireServer) -> None:
    with speaking(pipewire, on_loss="wait", wait_for_device_s=30.0) as daemon, daemon.socket() as socket:
        first, second = expected(daemon, FIRST), expected(daemon, SECOND)
        say(socket, "text", f"{FIRST} {SECOND}")
        wait_for(socket, "text", "started")
        time.sleep(first.size / RATE * 0.6)
        pipewire.stop()
        time.sleep(1.5)
        pipewire.start()
        with pipewire.record() as recording:
            assert endings(socket, "text")["text"]["event"] == "done"
            played = heard(recording)
    rest = second[second.size // 2 :]
    at = find(rest, played)
    assert snr_db(rest, played[at : at + rest.size]) > 40
    assert not np.abs(played[at + rest.size :]).max() > 1e-3


def test_others_are_softer_meanwhile(pipewire: PipeWireServer) -> None:
    with music(pipewire), speaking(pipewire, duck_db=DUCK_DB) as daemon, daemon.socket() as socket:
        say(socket, "text", TEXT)
        wait_for(socket, "text", "started")
        wait_until(lambda: softly(streams(pipewire)["music"]), what="softer")
        wait_for(socket, "text", "done")
        wait_until(lambda: abs(streams(pipewire)["music"]) < 0.01, what="as it was")
