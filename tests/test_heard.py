"""What is heard of a sentence, against what was synthesized: the daemon, a real sound server and its sinks.

The server's own work sets how near it may come where the sink has another rate than 48 kHz.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edged.audio.level import gain_to
from edged.audio.limiter import CEILING_DB
from edged.bundle import read_manifest
from edged.job import Samples
from tests import bundles
from tests.daemon import Daemon, running
from tests.judging import FLOOR, Judgement, at_rate, judge, loudspeakers, true_peak_db
from tests.pulse import STEREO, PulseServer, pulse, pulse_server
from tests.sounds import noise

__all__ = ["pulse", "pulse_server"]
VOICE, RING = 24_000, 48_000
TARGET = -20.0
TEXT = "Abcdefghij klmnopqrst uvwxyz."
EIGHT = f"{STEREO},rear-left,rear-right,front-center,lfe,side-left,side-right"

# -- the judge itself ---------------------------------------------------------------------------


def late(sound: Samples, samples: float) -> Samples:
    """Later by any part of a sample, by another way than the judge's: at a hundred times the rate."""
    fine = at_rate(np.concatenate((sound, np.zeros(64, np.float32))), 1, 100)
    return np.concatenate((np.zeros(round(100 * samples), np.float32), fine))[::100]


@settings(max_examples=20, deadline=None)
@given(
    before=st.integers(0, 3_000),
    part=st.integers(0, 99),
    begin=st.integers(0, 2_000),
    end=st.integers(0, 2_000),
)
def test_what_is_cut_off_is_counted_wherever_the_sound_lies(
    before: int, part: int, begin: int, end: int
) -> None:
    sound = noise(0.5, RING)
    recording = np.concatenate((np.zeros(before, np.float32), late(sound, part / 100)))
    recording[: before + begin] = 0.0
    recording = recording[: before + sound.size - end] if end else recording
    found = judge(sound, recording, RING)
    assert found.at == pytest.approx(before + part / 100, abs=0.02)
    assert found.missing_begin == pytest.approx(begin, abs=3)
    assert found.missing_end == pytest.approx(end, abs=3)
    if not begin + end:
        assert found.snr_db > 60


@settings(max_examples=5, deadline=None)
@given(noise_db=st.floats(-80.0, -20.0), gain_db=st.floats(0.5, 6.0) | st.floats(-6.0, -0.5))
def test_noise_and_gain_are_told_apart(noise_db: float, gain_db: float) -> None:
    sound = noise(0.6, RING)
    rms = float(np.sqrt(np.mean(sound**2)))
    other = np.random.default_rng(1).standard_normal(sound.size).astype(np.float32)
    found = judge(sound, sound + other * np.float32(rms * 10 ** (noise_db / 20)), RING)
    assert found.snr_db == pytest.approx(-noise_db, abs=0.5)
    turned = judge(sound, sound * np.float32(10 ** (gain_db / 20)), RING)
    assert turned.loudness_lu == pytest.approx(gain_db, abs=0.11)
    assert turned.snr_db == pytest.approx(-20 * np.log10(abs(10 ** (gain_db / 20) - 1)), abs=0.1)


def test_peaks_between_samples_and_sounds_beside_the_sound_are_found() -> None:
    quarter = np.sin(np.pi / 2 * np.arange(RING) + np.pi / 4).astype(np.float32)  # samples are 3 dB below it
    assert true_peak_db(quarter[1_000:-1_000] * np.hanning(RING - 2_000).astype(np.float32), RING) == (
        pytest.approx(0.0, abs=0.05)
    )
    sound = noise(0.5, RING)
    recording = np.concatenate((np.zeros(4_000, np.float32), sound, np.zeros(4_000, np.float32)))
    assert judge(sound, recording, RING).stray == 0.0
    recording[500] = 0.25
    assert judge(sound, recording, RING).stray == 0.25
    assert judge(sound, np.zeros(RING, np.float32), RING).missing_begin > 0.9 * sound.size


# -- the daemon ---------------------------------------------------------------------------------


def spoken(
    daemon: Daemon, pulse: PulseServer, sink: str, rate: int, places: str = STEREO, **fields: Any
) -> tuple[Judgement, Samples]:
    """The judgement of the first channel, and all of them; fields: of the requests."""
    lufs = read_manifest(bundles.tone()).voices[0].loudness_lufs
    reply = daemon.request({"op": "synthesize", "text": TEXT, "format": "pcm_f32le"})
    voice = np.frombuffer(reply["audio_bytes"], np.float32)
    gain = gain_to(TARGET, lufs) * fields.get("volume", 1.0)
    expected = at_rate(loudspeakers(voice, VOICE, gain), RING, rate)
    with pulse.record(sink, places, rate) as recording:
        assert daemon.request({"op": "speak", "text": TEXT, **fields})["event"] == "done"
        time.sleep(0.3)
        channels = recording.samples
    return judge(expected, channels[:, 0], rate), channels


def listening(pulse: PulseServer, sink: str) -> Any:
    env = {"PULSE_SERVER": pulse.address, "PULSE_SINK": sink}
    audio = {"enabled": True, "device": "pulse", "latency_ms": 150, "loudness_lufs": TARGET}
    return running(bundles.tone(), env=env, audio=audio)


def check(heard: Judgement, snr_db: float) -> None:
    assert heard.snr_db >= snr_db
    assert (heard.missing_begin, heard.missing_end) == (0, 0)
    assert heard.stray < FLOOR
    assert heard.loudness_lu == pytest.approx(0.0, abs=1.0)
    assert heard.true_peak_db <= CEILING_DB


@pytest.mark.audio
def test_a_sentence_is_heard_as_it_was_made_and_a_loud_one_within_the_ceiling(pulse: PulseServer) -> None:
    pytest.importorskip("pyloudnorm", reason="pyloudnorm is not installed (extra compile)")
    with listening(pulse, "edged") as daemon:
        plain, channels = spoken(daemon, pulse, "edged", RING)
        loud, _ = spoken(daemon, pulse, "edged", RING, volume=4.0)
    check(plain, 60.0)
    assert plain.loudness_lufs == pytest.approx(TARGET, abs=1.0)
    assert np.array_equal(channels[:, 0], channels[:, 1])
    check(loud, 60.0)


@pytest.mark.audio
@pytest.mark.parametrize(("rate", "places", "snr_db"), [(44_100, STEREO, 45.0), (48_000, EIGHT, 60.0)])
def test_so_it_is_on_other_devices(pulse: PulseServer, rate: int, places: str, snr_db: float) -> None:
    pytest.importorskip("pyloudnorm", reason="pyloudnorm is not installed (extra compile)")
    module = pulse.load("other", rate=rate, channel_map=places, format="float32le")
    try:
        with listening(pulse, "other") as daemon:
            heard, channels = spoken(daemon, pulse, "other", rate, places)
    finally:
        pulse.unload(module)
    check(heard, snr_db)
    assert np.array_equal(channels[:, 0], channels[:, 1])
