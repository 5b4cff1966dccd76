"""The chime: what files it takes, and that it is heard before the words."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from edged import config
from edged.audio import chime
from edged.audio.chime import PAUSE_S, PEAK, Chime, load
from edged.audio.fader import Fader
from edged.audio.limiter import CEILING_DB
from edged.audio.line import Line
from edged.audio.player import Player
from edged.audio.ring import Ring
from edged.audio.segment import PlayerSink
from edged.compiler.loudness import meter
from edged.doctor.sound import remote
from edged.errors import ConfigError
from edged.job import AudioChunk, Samples
from edged.settings import DEFAULT_CHIME, Audio, Speech
from tests import bundles
from tests.daemon import running
from tests.judging import true_peak_db
from tests.pulse import RATE, PulseServer, find, pulse, pulse_server, snr_db
from tests.sounds import make_job, noise, usual
from tests.test_doctor import case
from tests.test_manners import ALARM, FIRST, placed
from tests.test_speak import AUDIO, expected, heard

__all__ = ["pulse", "pulse_server"]


def tone(rate: int, seconds: float = 0.3, level: float = 0.3) -> Samples:
    return (level * np.sin(2 * np.pi * 880 * np.arange(int(seconds * rate)) / rate)).astype(np.float32)


@pytest.mark.parametrize("rate", [8_000, 22_050, 44_100, 48_000, 96_000])
@pytest.mark.parametrize("form", ["PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT"])
@pytest.mark.parametrize("channels", [1, 2])
def test_every_usual_file_is_taken(tmp_path: Path, rate: int, form: str, channels: int) -> None:
    path = tmp_path / "chime.wav"
    soundfile.write(path, np.repeat(tone(rate)[:, np.newaxis], channels, axis=1), rate, form)
    one = load(str(path))
    for wanted in (48_000, 44_100):
        sound = one.at(wanted)
        assert len(sound) == pytest.approx((0.3 + PAUSE_S) * wanted, abs=4)
        assert not sound[-int(PAUSE_S * wanted) + 4 :].any()
        middle = sound[wanted // 20 : wanted // 5]
        clean = 0.3 * np.sin(2 * np.pi * 880 * np.arange(wanted // 20, wanted // 5) / wanted)
        assert snr_db(clean.astype(np.float32), middle) > (30 if form == "PCM_U8" else 55)


def test_a_loud_file_has_room_and_its_ends_do_not_click(tmp_path: Path) -> None:
    path = tmp_path / "chime.wav"
    soundfile.write(path, np.ones(4_800, np.float32), 48_000, "FLOAT")
    sound = load(str(path)).at(48_000)
    assert 0.9 * PEAK < sound.max() <= PEAK
    assert np.abs(np.diff(sound, prepend=0.0)).max() < 0.01


def test_peaks_between_the_samples_have_room_too(tmp_path: Path) -> None:
    path = tmp_path / "chime.wav"
    steep = np.random.default_rng(0).choice([-1.0, 1.0], 24_000)
    high = 1.4 * np.sin(np.pi / 2 * np.arange(24_000) + np.pi / 4)  # 3 dB above its samples
    for sound in (steep, high):
        soundfile.write(path, sound, 48_000, "FLOAT")
        for rate in (48_000, 44_100):
            assert true_peak_db(load(str(path)).at(rate), rate) <= CEILING_DB


def test_the_built_in_one_is_short_soft_and_as_loud_as_voices() -> None:
    sound = load(DEFAULT_CHIME)
    assert len(sound.samples) <= 0.5 * sound.rate
    assert true_peak_db(sound.samples, sound.rate) < -6.0
    assert np.abs(np.diff(sound.samples, prepend=0.0, append=0.0)).max() < 0.05
    pytest.importorskip("pyloudnorm", reason="pyloudnorm is not installed (extra compile)")
    assert meter()(sound.samples, sound.rate) == pytest.approx(Audio().loudness_lufs, abs=1.0)


def test_a_torn_wav_is_played_as_far_as_it_goes(tmp_path: Path) -> None:
    path = tmp_path / "chime.wav"
    soundfile.write(path, tone(48_000), 48_000, "PCM_16")
    whole = load(str(path)).samples
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    part = load(str(path)).samples
    assert len(part) == pytest.approx(len(whole) / 2, abs=30)
    assert np.allclose(part[:-480], whole[: len(part) - 480], atol=1e-6)


def broken(folder: Path) -> dict[str, str]:
    """Files that cannot be used, with a word of the reason."""
    good = folder / "good.wav"
    soundfile.write(good, tone(48_000), 48_000)
    (folder / "empty.wav").write_bytes(b"")
    (folder / "text.wav").write_text("no sound")
    (folder / "torn.wav").write_bytes(good.read_bytes()[:30])
    soundfile.write(folder / "long.wav", tone(8_000, 6.0), 8_000)
    soundfile.write(folder / "slow.wav", tone(4_000), 4_000)
    soundfile.write(folder / "many.wav", np.ones((4_800, 64)), 48_000)
    soundfile.write(folder / "one.wav", np.ones(1), 48_000)
    soundfile.write(folder / "silent.wav", np.zeros(4_800), 48_000)
    os.mkfifo(folder / "pipe.wav")
    return {
        "none.wav": "No such file",
        "empty.wav": "no audio",
        "text.wav": "no audio",
        "torn.wav": "cannot be used",
        "long.wav": "6.0 seconds",
        "slow.wav": "4000 Hz",
        "silent.wav": "nothing to hear",
        "one.wav": "nothing to hear",
        "many.wav": "64 channels",
        "pipe.wav": "no file",
        ".": "no file",
        "good.wav/chime.wav": "Not a directory",
        "a\0b": "null byte",
    }


def test_what_cannot_be_used_is_named_with_the_reason(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name, why in broken(tmp_path).items():
        with pytest.raises(ConfigError, match=why):
            load(str(tmp_path / name))
        assert chime.at_start(str(tmp_path / name)) is None
        assert why in caplog.records[-1].getMessage()
    assert chime.at_start("") is chime.anew("") is None


def test_its_path_is_beside_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "edged.yaml").write_text("speech: {chime: sounds/bell.wav}\n")
    assert config.load(tmp_path / "edged.yaml").speech.chime == str(tmp_path / "sounds" / "bell.wav")
    (tmp_path / "edged.yaml").write_text("speech: {chime: default}\n")
    assert config.load(tmp_path / "edged.yaml").speech.chime == DEFAULT_CHIME


def test_the_doctor_tells_of_it(tmp_path: Path) -> None:
    broken(tmp_path)
    for path in (DEFAULT_CHIME, str(tmp_path / "good.wav")):
        (finding,) = remote(case(speech=Speech(chime=path)))
        assert (finding.name, finding.state) == ("chime", "ok")
    (finding,) = remote(case(speech=Speech(chime=str(tmp_path / "many.wav"))))
    assert (finding.state, finding.code) == ("warning", "config")
    assert "64 channels" in finding.message
    assert list(remote(case())) == []


@pytest.mark.parametrize("rate", [48_000, 44_100])
def test_it_comes_once_before_the_first_sample_and_is_no_part_of_the_job(rate: int) -> None:
    line, ring = Line(Speech(), lambda *_: None), Ring(rate, 1, fader=Fader())
    job, one = make_job(), Chime(tone(48_000), 48_000)
    sink = PlayerSink(Player(Audio(enabled=False), lambda: None), job, rate, 0.0, one)
    line.add(sink, usual(job), 0.0, ring)
    sound = noise(0.1, rate)
    sink.queue(AudioChunk(sound, last=True))
    line.ready(sink, ring)
    while line.pump(ring, rate):
        pass
    before = one.at(rate)
    out = np.empty((len(before) + len(sound), 1), np.float32)
    ring.read_into(out)
    assert np.allclose(out[: len(before), 0], before, atol=1e-6)
    assert np.allclose(out[len(before) :, 0], sound, atol=1e-6)
    assert sink.end == len(out)
    assert sink.heard_s(len(before)) == 0.0
    assert sink.heard_s(len(out)) == pytest.approx(0.1, abs=1e-3)


@pytest.mark.audio
def test_an_alarm_is_announced_and_a_reload_changes_the_chime(pulse: PulseServer, tmp_path: Path) -> None:
    first, second = tmp_path / "first.wav", tmp_path / "second.flac"
    soundfile.write(first, tone(22_050), 22_050, "PCM_16")
    other = noise(0.3, 44_100, seed=5)
    soundfile.write(second, other, 44_100)
    speech: dict[str, Any] = {"chime": str(first)}
    env = {"PULSE_SERVER": pulse.address}
    with running(bundles.tone_of(-26.0), env=env, audio=dict(AUDIO), speech=speech) as daemon:
        alarm, text = expected(daemon, ALARM), expected(daemon, FIRST)
        with pulse.record() as recording:
            assert daemon.request({"op": "speak", "text": FIRST})["event"] == "done"
            assert daemon.request({"op": "speak", "text": ALARM, "priority": "important"})["event"] == "done"
            played = heard(recording)
        quiet, (begin,) = np.abs(played), placed(played, alarm)
        (at,) = placed(played[:begin], text)
        between = quiet[at + text.size : begin]
        loud = np.flatnonzero(between > 0.01)
        assert loud[-1] - loud[0] == pytest.approx(0.3 * RATE, abs=0.02 * RATE)
        assert between.size - loud[-1] == pytest.approx(PAUSE_S * RATE, abs=0.05 * RATE)
        daemon.configure(speech={"chime": str(tmp_path / "none.wav")})
        refused = daemon.request({"op": "reload"})
        assert (refused["event"], refused["code"]) == ("failed", "config")
        daemon.configure(speech={"chime": str(second)})
        assert daemon.request({"op": "reload"})["changed"] == ["speech.chime"]
        with pulse.record() as recording:
            time.sleep(0.2)
            daemon.request({"op": "speak", "text": ALARM, "priority": "important"})
            played = heard(recording)
        bell = load(str(second)).at(RATE)
        at = find(bell, played)
        assert snr_db(bell, played[at : at + bell.size]) > 60
        placed(played[at:], alarm)
