"""Other programs are softer while edged speaks: a real PulseAudio, another client that plays a tone."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pulsectl
import pytest

from edged.audio.duck import FILE, HOLD_S, Ducker, Lowered
from tests import bundles
from tests.daemon import running
from tests.pulse import RATE, PulseServer, Recording, pulse, pulse_server, wait_until
from tests.test_manners import TEXT, say, wait_for
from tests.test_speak import AUDIO

__all__ = ["pulse", "pulse_server"]
pytestmark = pytest.mark.audio
DUCK_DB = -15.0
REMEMBER = Ducker._remember
TONE_HZ = 6_000.0  # the voice of these tests has nothing there


@contextmanager
def music(pulse: PulseServer, name: str = "music") -> Iterator[subprocess.Popen[bytes]]:
    """Another program that plays a tone without end."""
    sound = (0.2 * np.sin(2 * np.pi * TONE_HZ * np.arange(60 * RATE) / RATE)).astype("<f4")
    command = ["pacat", "--server", pulse.address, "--playback", "--raw", "--format=float32le"]
    command += ["--channels=1", f"--rate={RATE}", f"--client-name={name}", "--latency-msec=50"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as player:
        assert player.stdin is not None
        feeding = threading.Thread(target=_feed, args=(player.stdin, sound.tobytes()), daemon=True)
        feeding.start()
        try:
            wait_until(lambda: name in streams(pulse), what="it plays")
            yield player
        finally:
            player.kill()


def _feed(pipe: Any, data: bytes) -> None:
    try:
        pipe.write(data)
    except OSError:
        return


def streams(pulse: PulseServer) -> dict[str, float]:
    """The volume of each program's stream in dB."""
    with pulsectl.Pulse("test", server=pulse.address) as asking:
        return {
            one.proplist.get("application.name", ""): 60 * float(np.log10(max(one.volume.value_flat, 1e-9)))
            for one in asking.sink_input_list()
        }


def turn(pulse: PulseServer, name: str, volume: float) -> None:
    with pulsectl.Pulse("test", server=pulse.address) as asking:
        (one,) = [s for s in asking.sink_input_list() if s.proplist.get("application.name") == name]
        asking.volume_set_all_chans(one, volume)


def level_db(recording: Recording, seconds: float = 0.2) -> float:
    """Of the tone, in what was recorded last."""
    sound = recording.samples[-int(seconds * RATE) :, 0].astype(np.float64)
    turns = np.exp(-2j * np.pi * TONE_HZ * np.arange(len(sound)) / RATE)
    return 20 * float(np.log10(max(abs(np.mean(sound * turns)) * 2, 1e-9)))


@pytest.fixture
def ducker(pulse: PulseServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ducker]:
    monkeypatch.setenv("PULSE_SERVER", pulse.address)
    made = Ducker(DUCK_DB, tmp_path)
    made.start()
    yield made
    made.close(5.0)


def softly(db: float) -> bool:
    return abs(db - DUCK_DB) < 0.2


def test_while_the_daemon_speaks_the_music_is_softer_and_then_as_it_was(pulse: PulseServer) -> None:
    env, audio = {"PULSE_SERVER": pulse.address}, {**AUDIO, "duck_db": DUCK_DB}
    with music(pulse), running(bundles.tone(), env=env, audio=audio) as daemon, daemon.socket() as socket:
        with pulse.record() as recording:
            wait_until(lambda: level_db(recording) > -20, what="music")
            usual = level_db(recording)
            say(socket, "text", TEXT)
            wait_for(socket, "text", "started")
            time.sleep(1.0)
            assert level_db(recording) - usual == pytest.approx(DUCK_DB, abs=0.3)
            begin = recording.seconds
            wait_for(socket, "text", "done")
            wait_until(lambda: abs(level_db(recording) - usual) < 0.1, what="as it was")
            assert recording.seconds - begin > HOLD_S
            sound = recording.samples[:, 0]
        tone = np.abs(np.diff(sound[int(0.5 * RATE) :]))
        assert tone.max() < 0.5, "no step"
        assert streams(pulse)["music"] == pytest.approx(0.0, abs=0.01)


def test_a_stream_that_begins_meanwhile_is_softer_too(pulse: PulseServer, ducker: Ducker) -> None:
    ducker.want(True)
    with music(pulse):
        wait_until(lambda: softly(streams(pulse)["music"]), what="softer")
        ducker.want(False)
        wait_until(lambda: abs(streams(pulse)["music"]) < 0.01, what="as it was")


def test_what_people_turn_meanwhile_stays_as_they_want_it(pulse: PulseServer, ducker: Ducker) -> None:
    with music(pulse), music(pulse, "radio"):
        turn(pulse, "radio", 0.8)
        ducker.want(True)
        wait_until(lambda: softly(streams(pulse)["music"]), what="softer")
        turn(pulse, "music", 0.5)
        ducker.want(False)
        wait_until(lambda: not ducker._lowered, what="the end")
        now = streams(pulse)
        assert now["music"] == pytest.approx(60 * np.log10(0.5), abs=0.1)
        assert now["radio"] == pytest.approx(60 * np.log10(0.8), abs=0.01)


def test_two_jobs_in_a_row_do_not_pump(pulse: PulseServer, ducker: Ducker) -> None:
    with music(pulse):
        ducker.want(True)
        wait_until(lambda: softly(streams(pulse)["music"]), what="softer")
        ducker.want(False)
        time.sleep(HOLD_S / 2)
        ducker.want(True)
        until = time.monotonic() + 1.0
        while time.monotonic() < until:
            assert softly(streams(pulse)["music"])


def test_after_a_kill_the_next_start_makes_it_loud_again(pulse: PulseServer, tmp_path: Path) -> None:
    env = {"PULSE_SERVER": pulse.address, "XDG_RUNTIME_DIR": str(tmp_path)}
    audio = {**AUDIO, "duck_db": DUCK_DB}
    with music(pulse):
        with running(bundles.tone(), env=env, audio=audio) as daemon, daemon.socket() as socket:
            say(socket, "text", TEXT)
            wait_for(socket, "text", "started")
            wait_until(lambda: softly(streams(pulse)["music"]), what="softer")
            daemon.process.kill()
            daemon.process.wait()
        assert softly(streams(pulse)["music"])
        assert (tmp_path / FILE).exists()
        with running(bundles.tone(), env=env, audio=audio):
            wait_until(lambda: abs(streams(pulse)["music"]) < 0.01, what="as it was")
            wait_until(lambda: not (tmp_path / FILE).exists(), what="forgotten")


def test_a_fade_that_was_broken_off_is_undone_too(
    pulse: PulseServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PULSE_SERVER", pulse.address)
    with music(pulse):
        killed = Ducker(DUCK_DB, tmp_path)
        with pulsectl.Pulse("test") as asking:
            monkeypatch.setattr("edged.audio.duck.STEPS", 4)
            monkeypatch.setattr("edged.audio.duck.range", lambda *_: range(1, 3), raising=False)
            monkeypatch.setattr("edged.audio.duck.Ducker._remember", _until_fading)
            with pytest.raises(KeyboardInterrupt):
                killed._lower(asking)
        monkeypatch.undo()
        monkeypatch.setenv("PULSE_SERVER", pulse.address)
        assert DUCK_DB + 2 < streams(pulse)["music"] < -2
        after = Ducker(DUCK_DB, tmp_path)
        after.start()
        wait_until(lambda: abs(streams(pulse)["music"]) < 0.01, what="as it was")
        after.close(2.0)


def _until_fading(self: Ducker, lowered: list[Lowered]) -> None:
    """As the real one, but the process dies when the fade is over."""
    if lowered and not lowered[0].fading:
        raise KeyboardInterrupt
    REMEMBER(self, lowered)


def test_a_server_that_comes_back_has_new_streams_under_old_numbers(
    pulse: PulseServer, ducker: Ducker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edged.audio.duck.RETRY_S", 0.2)
    ducker.want(True)
    with music(pulse):
        wait_until(lambda: softly(streams(pulse)["music"]), what="softer")
        pulse.stop()
    pulse.start()
    with music(pulse, "radio"):
        wait_until(lambda: softly(streams(pulse)["radio"]), what="softer")
        ducker.want(False)
        wait_until(lambda: abs(streams(pulse)["radio"]) < 0.01, what="as it was")


def test_what_ends_while_it_is_soft_begins_as_loud_as_ever_the_next_time(
    pulse: PulseServer, ducker: Ducker
) -> None:
    module = pulse.pactl("load-module", "module-stream-restore")
    try:
        ducker.want(True)
        with music(pulse):
            wait_until(lambda: softly(streams(pulse)["music"]), what="softer")
        ducker.want(False)
        wait_until(lambda: not ducker._lowered, what="the end")
        with music(pulse):
            assert streams(pulse)["music"] == pytest.approx(0.0, abs=0.05)
    finally:
        pulse.pactl("unload-module", module)


def test_without_a_server_it_waits_and_says_so_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("PULSE_SERVER", f"unix:{tmp_path}/nothing")
    monkeypatch.setattr("edged.audio.duck.RETRY_S", 0.05)
    ducker = Ducker(DUCK_DB, tmp_path)
    ducker.start()
    ducker.want(True)
    begin = time.process_time()
    time.sleep(0.6)
    assert time.process_time() - begin < 0.3
    ducker.want(False)
    ducker.close(2.0)
    assert not ducker._thread.is_alive()
    (told,) = caplog.records
    assert "other programs are not made softer" in told.getMessage()


def test_it_costs_nothing_where_it_is_not_wanted(tmp_path: Path) -> None:
    ducker = Ducker(0.0, tmp_path)
    ducker.start()
    ducker.want(True)
    assert not ducker._thread.is_alive()
    ducker.close(1.0)
