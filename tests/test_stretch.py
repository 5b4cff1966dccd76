"""Speed and pitch of audio that was made: how long, how high, all of it; a machine without the library."""

from __future__ import annotations

import io
import resource
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from edged import outflow
from edged.audio import stretch
from edged.audio.stretch import Stretcher, frequency_factor
from edged.job import JobState, Params, Samples, Utterance
from edged.outflow import UNCHANGED
from edged.scheduler import Entry
from edged.voices.api import Voice
from edged.worker import Worker
from tests import bundles
from tests.daemon import ENDINGS, Daemon, receive_until, running, send
from tests.sounds import noise
from tests.test_doctor import doctor
from tests.test_job import make_job
from tests.test_outflow import Tank, Told, entry
from tests.test_worker import Basket

ROOT = Path(__file__).parents[1]
RATE = 24_000
SENTENCE = "The pump on line four has stopped, please check it."
found = stretch.library()
if found is None:
    pytest.skip(f"needs {stretch.INSTALL}", allow_module_level=True)
LIBRARY: stretch.Library = found

speeds = st.floats(0.5, 2.0)
pitches = st.floats(-12.0, 12.0)


def tone(hz: float, seconds: float, rate: int = RATE, level: float = 0.2) -> Samples:
    """Three harmonics, at full level to its ends."""
    at = np.arange(round(seconds * rate)) / rate
    return sum(level / k * np.sin(2 * np.pi * hz * k * at) for k in (1, 2, 3)).astype(np.float32)  # type: ignore[union-attr]


def stretched(samples: Samples, speed: float, pitch: float, rate: int = RATE) -> Samples:
    made = Stretcher(LIBRARY, rate, speed, pitch).feed(samples, last=True)
    assert np.isfinite(made).all()
    return made


def fundamental(samples: Samples, rate: int = RATE) -> float:
    """Hz, of a steady tone whose lowest partial is the strongest."""
    inner = samples[samples.size // 10 : -(samples.size // 10)]
    size = 1 << 19
    spectrum = np.abs(np.fft.rfft(inner * np.hanning(inner.size), size))
    return float(spectrum.argmax()) * rate / size


# -- the stretcher ----------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [16_000, 24_000, 48_000])
@pytest.mark.parametrize("hz", [100.0, 231.0])
@pytest.mark.parametrize(
    ("speed", "pitch"),
    [(0.5, 1), (0.75, 1), (1.5, 1), (2, 1), (1, 0.5), (1, 0.8), (1, 1.25), (1, 2), (0.5, 2), (2, 0.5)],
)
def test_length_goes_with_the_speed_and_frequency_with_the_pitch(
    rate: int, hz: float, speed: float, pitch: float
) -> None:
    whole = tone(hz, 2.0, rate)
    made = stretched(whole, speed, pitch, rate)
    assert made.size / whole.size == pytest.approx(1 / speed, rel=0.02)
    assert fundamental(made, rate) == pytest.approx(hz * pitch, rel=0.01)
    assert np.abs(made).max() == pytest.approx(np.abs(whole).max(), rel=0.1)


@given(speeds, pitches, st.integers(0, 40_000), st.lists(st.integers(0, 40_000), max_size=9))
@settings(max_examples=40, deadline=None)
def test_feeds_of_any_size_come_to_the_same_as_one(
    speed: float, pitch: float, length: int, cuts: list[int]
) -> None:
    whole = noise(2.0, RATE)[:length]
    factor = frequency_factor(pitch)
    stream = Stretcher(LIBRARY, RATE, speed, factor)
    parts = [stream.feed(part) for part in np.split(whole, sorted(min(c, length) for c in cuts))]
    parts.append(stream.feed(whole[:0], last=True))
    made = np.concatenate(parts)
    assert made.tobytes() == stretched(whole, speed, factor).tobytes()
    # A period of the voice, at most 15 ms, is the least that can be left out or said twice.
    assert abs(made.size - length / speed) <= 0.02 * length / speed + 0.015 * RATE / min(1.0, speed)


@pytest.mark.parametrize(("speed", "pitch"), [(0.5, 1.0), (2.0, 1.0), (1.0, 0.5), (1.0, 2.0), (1.3, 0.9)])
def test_nothing_is_lost_at_either_end(speed: float, pitch: float) -> None:
    made = stretched(tone(200.0, 1.0), speed, pitch)
    levels = [float(np.sqrt(np.mean(part**2))) for part in (made[:480], made[480:-480], made[-480:])]
    assert levels[0] == pytest.approx(levels[1], rel=0.3)
    assert levels[2] == pytest.approx(levels[1], rel=0.3)


def test_what_is_above_full_level_gets_through() -> None:
    made = stretched(tone(200.0, 0.5, level=1.2), 1.5, 1.0)
    assert np.abs(made).max() > 1.2


def test_little_is_held_back_and_the_memory_is_freed() -> None:
    second, taken = noise(1.0, RATE), 0
    stream = Stretcher(LIBRARY, RATE, 0.5, 1.0)
    for n in range(1, 121):
        taken += stream.feed(second).size
        assert n * 2 * RATE - taken < 0.2 * RATE
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(3_000):
        each = Stretcher(LIBRARY, RATE, 1.5, 1.25)
        each.feed(second[:1_000])
        each.close()
        each.close()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 10_000  # kilobytes


def test_its_cost_can_be_measured(tmp_path: Path) -> None:
    soundfile.write(tmp_path / "voice.wav", tone(200.0, 1.0), RATE)
    command = [sys.executable, str(ROOT / "tools/stretch_cost"), str(tmp_path / "voice.wav"), "--rounds", "2"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert told[0].startswith("1.0 s of 24000 Hz")
    assert len(told) == 6
    assert all(0 < float(line.split()[4]) < 500 for line in told[1:5])


# -- on the way to a sink ---------------------------------------------------------------------------


def poured(
    params: Params, controls: tuple[str, ...], library: stretch.Library | None = LIBRARY
) -> tuple[Entry, Tank, Told]:
    """An utterance of two seconds between two marks, made in pieces."""
    tank = Tank()
    utterance = Utterance(0, (1,), lead_s=0.5, marks=("a",), marks_after=("b",), pause_s=0.25)
    one, told = entry([utterance], tank)
    one.job.cursor = 1
    outflow.stretched(one, params, controls, RATE, library)
    outflow.begin(one, utterance, RATE)
    pieces = np.split(tone(200.0, 2.0), [7_000, 7_001, 30_000])
    for piece in pieces:
        outflow.add(one, piece, 600, 1.0, last=piece is pieces[-1])
        outflow.pour(one, RATE, 600)
    outflow.end(one, utterance, RATE)
    while outflow.pour(one, RATE, 600) or one.pending:
        pass
    return one, tank, told


@given(speeds, pitches)
@settings(max_examples=20, deadline=None)
def test_marks_and_lengths_follow_the_audio(speed: float, pitch: float) -> None:
    one, tank, told = poured(Params(speed=speed, pitch=pitch), ("seed",))
    (_, a, _), (_, b, _) = told.marks
    assert a == pytest.approx(0.5)
    assert b - a == pytest.approx(2.0 / speed, rel=0.02)
    samples = sum(chunk.samples.size for chunk in tank.chunks)
    assert one.job.timeline.audio_s == pytest.approx(b + 0.25) == pytest.approx(samples / RATE)
    assert all(chunk.samples.size <= 600 for chunk in tank.chunks)


@pytest.mark.parametrize(
    ("params", "controls"),
    [(Params(), ()), (Params(volume=0.5), ("seed",)), (Params(speed=1.5), ("speed", "seed"))],
)
def test_what_asks_for_nothing_that_the_voice_cannot_is_not_touched(
    params: Params, controls: tuple[str, ...]
) -> None:
    one, tank, _ = poured(params, controls)
    spoken = np.concatenate([chunk.samples for chunk in tank.chunks])[RATE // 2 : -RATE // 4]
    assert spoken.tobytes() == tone(200.0, 2.0).tobytes()
    assert one.stretch is None
    assert one.job.warnings == []


def test_without_the_library_it_is_spoken_with_a_warning() -> None:
    one, tank, _ = poured(Params(speed=1.5, pitch=3.0), (), library=None)
    spoken = np.concatenate([chunk.samples for chunk in tank.chunks])[RATE // 2 : -RATE // 4]
    assert spoken.tobytes() == tone(200.0, 2.0).tobytes()
    assert one.job.warnings == [UNCHANGED]


@pytest.fixture(scope="module")
def voice() -> Voice:
    return bundles.voice(bundles.tone())


def worked(voice: Voice, speed: float) -> Samples:
    """What the engine thread makes of an utterance of the voice."""
    basket = Basket()
    job = make_job(voice=voice.card.name, sink=basket, params=Params(speed=speed))
    job.utterances, job.prepared_all = [Utterance(0, (3, 5, 7) * 12)], True
    basket.job = job
    worker = Worker({voice.card.name: voice}, 0.02, on_crash=lambda exc: None)
    worker.start()
    worker.submit(job)
    until = monotonic() + 10
    while not job.ended:
        assert monotonic() < until, job.phase
        sleep(0.01)
    assert worker.stop(5.0)
    assert job.state is JobState.DONE
    assert job.timeline.audio_s == pytest.approx(basket.samples.size / RATE)
    return basket.samples


@pytest.mark.parametrize("speed", [0.75, 1.0, 1.5])
def test_a_voice_without_a_speed_of_its_own_is_stretched(voice: Voice, speed: float) -> None:
    plain = worked(voice, 1.0)
    whole = voice.card
    voice.card = replace(whole, controls=("seed",))
    try:
        made = worked(voice, speed)
    finally:
        voice.card = whole
    assert made.size == pytest.approx(plain.size / speed, rel=0.02)
    assert np.array_equal(made, plain) == (speed == 1.0)


# -- through the daemon -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with running(bundles.hibari()) as started:
        yield started


def synthesized(daemon: Daemon, text: str = SENTENCE, **fields: Any) -> tuple[Samples, dict[str, Any]]:
    reply = daemon.request({"op": "synthesize", "text": text, "format": "wav", **fields})
    assert reply["event"] == "done", reply
    audio, rate = soundfile.read(io.BytesIO(reply["audio_bytes"]), dtype="float32")
    assert rate == RATE
    assert reply["audio_s"] == pytest.approx(audio.size / rate, abs=0.002)
    return audio, reply


def voiced_hz(samples: Samples, speed: float = 1.0) -> Samples:
    """The fundamental by autocorrelation, 50 times in a second of the text; NaN where there is no voice.

    speed: of the samples; a window is of the same part of the text at any."""
    found = []
    size, longest, shortest = round(1_800 / speed), RATE // 60, RATE // 500
    window = np.hanning(size)
    own = np.fft.irfft(np.abs(np.fft.rfft(window, 1 << 14)) ** 2)[:longest]
    for start in np.arange(0, samples.size - size, 480 / speed).astype(int):
        frame = samples[start : start + size] - samples[start : start + size].mean()
        same = np.fft.irfft(np.abs(np.fft.rfft(frame * window, 1 << 14)) ** 2)[:longest] / own
        at = shortest + int(same[shortest:-1].argmax())
        voiced = np.abs(frame).max() > 0.05 and same[at] > 0.8 * same[0] and at > shortest
        a, b, c = same[at - 1 : at + 2]
        found.append(RATE / (at + (a - c) / (2 * (a - 2 * b + c))) if voiced else np.nan)
    return np.array(found, np.float32)


def higher(made: Samples, plain: Samples, speed: float = 1.0) -> float:
    """The factor between the frequencies of the two, place by place, where both have a voice."""
    above, below = voiced_hz(made, speed), voiced_hz(plain)
    count = min(above.size, below.size)
    factors = above[:count] / below[:count]
    assert np.isfinite(factors).sum() > 30
    return float(np.nanmedian(factors))


@pytest.mark.parametrize("pitch", [-3.86, 3.86])
def test_the_built_in_voice_is_as_much_higher_as_was_asked(daemon: Daemon, pitch: float) -> None:
    plain, _ = synthesized(daemon)
    other, reply = synthesized(daemon, pitch=pitch)
    assert other.size == pytest.approx(plain.size, rel=0.02)
    assert higher(other, plain) == pytest.approx(frequency_factor(pitch), rel=0.01)
    assert reply.get("warnings", []) == []


@pytest.mark.parametrize("speed", [0.75, 1.5])
def test_the_built_in_voice_stays_as_high_at_another_speed(daemon: Daemon, speed: float) -> None:
    plain, _ = synthesized(daemon)
    made = stretched(plain, speed, 1.0)
    assert made.size == pytest.approx(plain.size / speed, rel=0.02)
    assert higher(made, plain, speed) == pytest.approx(1.0, rel=0.01)


def test_no_pitch_is_the_same_audio(daemon: Daemon) -> None:
    assert synthesized(daemon)[0].tobytes() == synthesized(daemon, pitch=0.0)[0].tobytes()


def test_markup_and_requests_mean_the_same_pitch(daemon: Daemon) -> None:
    marked = f"<speak><prosody pitch='+2st'>{SENTENCE}</prosody></speak>"
    by_markup, reply = synthesized(daemon, marked, markup="ssml", pitch=1.0)
    assert reply.get("warnings", []) == []
    assert by_markup.tobytes() == synthesized(daemon, pitch=3.0)[0].tobytes()


def test_a_stream_is_the_same_as_the_whole(daemon: Daemon) -> None:
    with daemon.socket() as socket:
        send(
            socket, op="synthesize", text=SENTENCE, pitch=4.0, reply="events", stream=True, format="pcm_f32le"
        )
        pieces = [e["audio_bytes"] for e in receive_until(socket, *ENDINGS) if e["event"] == "audio"]
    assert len(pieces) > 3
    whole = daemon.request({"op": "synthesize", "text": SENTENCE, "pitch": 4.0, "format": "pcm_f32le"})
    assert b"".join(pieces) == whole["audio_bytes"]


@pytest.mark.parametrize("pitch", [-12.1, 12.1, "high"])
def test_a_pitch_out_of_range_is_refused(daemon: Daemon, pitch: object) -> None:
    reply = daemon.request({"op": "synthesize", "text": "a", "pitch": pitch})
    assert (reply["event"], reply["code"]) == ("failed", "bad_value")
    assert "pitch" in reply["message"]


def test_a_machine_without_the_library_speaks_and_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / stretch.LIBRARY).write_bytes(b"")  # is found first, and is no library
    hidden = {"LD_LIBRARY_PATH": str(tmp_path)}
    with running(bundles.tone(), env=hidden) as daemon:
        plain, _ = synthesized(daemon)
        other, reply = synthesized(daemon, pitch=5.0)
        assert reply["warnings"] == [UNCHANGED]
        assert other.tobytes() == plain.tobytes()
        _, found, _ = doctor("--config", str(daemon.config), **hidden)
        assert found["speed and pitch"]["state"] == "warning"
        assert stretch.INSTALL in found["speed and pitch"]["remedy"]
        _, found, _ = doctor("--config", str(daemon.config))
        assert found["speed and pitch"]["state"] == "ok"
