"""The built-in English voice through the running daemon."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from tests import bundles
from tests.daemon import ENDINGS, Daemon, receive_until, running, send

SENTENCE = "The pump on line four has stopped, please check it."
TEXT = "Gate three is open. Please stand clear! Is anyone there? The belt starts in ten seconds."


@pytest.fixture(scope="module")
def speaking() -> Iterator[Daemon]:
    with running(bundles.hibari()) as daemon:
        yield daemon


def synthesize(daemon: Daemon, text: str = SENTENCE, **fields: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    reply = daemon.request({"op": "synthesize", "text": text, **fields})
    assert reply["event"] == "done", reply
    audio, rate = soundfile.read(io.BytesIO(reply["audio_bytes"]))
    assert rate == 24_000
    return np.asarray(audio)


def test_it_speaks_at_the_pace_and_level_of_speech(speaking: Daemon) -> None:
    audio = synthesize(speaking)
    assert 2.0 < audio.size / 24_000 < 6.0
    assert 0.1 < np.abs(audio).max() <= 1.0
    # Speech: most energy is below 4 kHz, and it comes in syllables, not as one steady sound.
    spectrum = np.abs(np.fft.rfft(audio)) ** 2
    assert spectrum[: spectrum.size // 3].sum() / spectrum.sum() > 0.9
    level = np.sqrt(np.mean(audio[: audio.size // 480 * 480].reshape(-1, 480) ** 2, axis=1))
    assert np.percentile(level, 90) > 5 * np.percentile(level, 5)


def test_the_same_seed_gives_the_same_samples_alone_or_beside_others(speaking: Daemon) -> None:
    alone = synthesize(speaking, TEXT, seed=5)
    with speaking.socket() as socket:
        for number in range(6):
            send(socket, op="synthesize", text=TEXT, seed=5 if number == 3 else number + 10, id=str(number))
        replies = {}
        for _ in range(6):
            event = receive_until(socket, *ENDINGS)[-1]
            replies[event["id"]] = event["audio_bytes"]
    beside, _ = soundfile.read(io.BytesIO(replies["3"]))
    assert np.array_equal(alone, beside)
    assert not np.array_equal(alone, synthesize(speaking, TEXT, seed=6))


def test_streamed_equals_whole(speaking: Daemon) -> None:
    with speaking.socket() as socket:
        send(socket, op="synthesize", text=TEXT, seed=1, reply="events", stream=True, format="pcm_s16le")
        pieces = [e for e in receive_until(socket, *ENDINGS) if e["event"] == "audio"]
    streamed = np.frombuffer(b"".join(p["audio_bytes"] for p in pieces), np.int16)
    whole = np.round(synthesize(speaking, TEXT, seed=1) * 32_768).astype(int)
    assert streamed.size == whole.size
    assert np.abs(streamed - whole).max() <= 1


def test_long_text_starts_after_its_first_sentence(speaking: Daemon) -> None:
    synthesize(speaking)  # warm
    long = " ".join(f"Line number {n} is running again." for n in range(60))
    with speaking.socket() as socket:
        begin = time.monotonic()
        send(socket, op="synthesize", text=long, reply="events", stream=True, format="pcm_s16le")
        receive_until(socket, "audio")
        first = time.monotonic() - begin
        receive_until(socket, *ENDINGS)
        whole = time.monotonic() - begin
    assert first < whole / 4


@pytest.mark.parametrize("speed", [0.5, 0.8, 1.3, 2.0])
def test_speed(speaking: Daemon, speed: float) -> None:
    ratio = synthesize(speaking, speed=speed).size / synthesize(speaking).size
    assert ratio == pytest.approx(1 / speed, rel=0.25)


@pytest.mark.parametrize(
    "text",
    [
        "a",
        "7",
        "a" * 2_000,
        "7" * 400,
        "é à ü",
        "x " * 500,
        "[[[[a](/b/)",
        "Dr. No paid $3.50 at 5:30pm",
        "A.\n\nB.",
    ],
)
def test_odd_texts_are_spoken_in_bounded_time(speaking: Daemon, text: str) -> None:
    begin = time.monotonic()
    audio = synthesize(speaking, text)
    assert audio.size > 1_000
    assert np.abs(audio).max() > 0.01
    assert time.monotonic() - begin < 5 + 0.2 * audio.size / 24_000


def test_text_of_another_script_is_refused_by_name(speaking: Daemon) -> None:
    reply = speaking.request({"op": "synthesize", "text": "Hello 世界"})
    assert reply["code"] == "unsupported_text"
    assert "世" in reply["message"]


def test_the_bundle_is_built_at_first_start_when_it_is_absent(tmp_path: Path) -> None:
    bundles.hibari()  # skips where its package is missing
    env = {**os.environ, "EDGED_BUNDLES": str(tmp_path / "bundles"), "EDGED_CONFIG": ""}
    endpoint = f"ipc://{tmp_path}/e/edged.sock"
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "edged", "serve", "--endpoint", endpoint], env=env, stdout=log, stderr=log
        )
    try:
        until = time.monotonic() + 40
        while "ready" not in (tmp_path / "log").read_text():
            assert process.poll() is None, (tmp_path / "log").read_text()
            assert time.monotonic() < until
            time.sleep(0.1)
        assert (tmp_path / "bundles" / "hibari" / "manifest.json").exists()
    finally:
        process.terminate()
        process.wait(15)
