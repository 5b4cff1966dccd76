"""Encoders: decoding gives the audio back; streamed and whole files agree; nothing piles up."""

from __future__ import annotations

import io
import struct
import tracemalloc
import wave

import numpy as np
import pytest
import soundfile
import soxr

from edged.audio.encode import FORMATS, Encoder, check_format
from edged.errors import UnsupportedFormat
from edged.job import Samples
from tests.pulse import find, snr_db
from tests.sounds import noise

LOSSLESS = ["wav", "flac", "pcm_s16le", "pcm_f32le"]
LOSSY = ["ogg_opus", "mp3"]
RATE = 24_000


def encode(format: str, sound: Samples, size: int = 2_400, whole: bool = False, rate: int = RATE) -> bytes:
    encoder = Encoder(format, RATE, rate, whole=whole)
    parts = [encoder.feed(sound[i : i + size]) for i in range(0, len(sound), size)]
    if whole:
        assert not any(parts)
    return b"".join([*parts, encoder.finish()])


def decode(format: str, data: bytes, count: int, rate: int = RATE) -> Samples:
    if format == "pcm_s16le":
        return (np.frombuffer(data, "<i2") / 32768).astype(np.float32)
    if format == "pcm_f32le":
        return np.frombuffer(data, "<f4")
    if format == "flac":
        # The last 36 bits of this field are the length. soundfile cannot read a file that leaves it
        # open, as a stream does, so it is filled in.
        info = int.from_bytes(data[18:26], "big")
        if info % (1 << 36) == 0:
            data = data[:18] + (info + count).to_bytes(8, "big") + data[26:]
    samples, got_rate = soundfile.read(io.BytesIO(data), dtype="float32")
    assert got_rate == rate
    assert samples.ndim == 1
    return np.asarray(samples)


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("format", LOSSLESS)
def test_lossless_formats_give_the_samples_back(format: str, whole: bool) -> None:
    sound = noise(1.3, RATE)
    got = decode(format, encode(format, sound, whole=whole), len(sound))
    assert len(got) == len(sound)
    assert snr_db(sound, got) > (200 if format == "pcm_f32le" else 75)


@pytest.mark.parametrize("rate", [0, 8_000, 48_000])
@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("format", LOSSY)
def test_lossy_formats_give_the_sound_back(format: str, whole: bool, rate: int) -> None:
    sound = noise(2.0, RATE)
    encoder_rate = check_format(format, RATE, rate)
    expected = soxr.resample(sound, RATE, encoder_rate)
    got = decode(format, encode(format, sound, whole=whole, rate=rate), 0, encoder_rate)
    # MP3 delays by up to two frames and fills its last frame; Opus says how much to leave out.
    slack = 0.0 if format == "ogg_opus" else 0.2
    assert 0 <= len(got) / encoder_rate - 2.0 <= slack
    middle = expected[encoder_rate // 4 : -encoder_rate // 4]
    start = find(middle, got)
    assert 0 <= start / encoder_rate - 0.25 <= slack
    assert np.corrcoef(middle, got[start : start + len(middle)])[0, 1] > 0.9


@pytest.mark.parametrize("rate", [8_000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000])
def test_streamed_mp3_has_no_empty_frame_in_front(rate: int) -> None:
    sound = noise(1.0, RATE)
    streamed = encode("mp3", sound, rate=rate)
    whole = encode("mp3", sound, rate=rate, whole=True)
    assert streamed[:1] == b"\xff"
    assert streamed in whole  # the whole file has a table of contents before the same frames
    assert len(decode("mp3", streamed, 0, rate)) >= rate


@pytest.mark.parametrize("format", LOSSLESS)
def test_streamed_and_whole_decode_to_the_same_samples(format: str) -> None:
    sound = noise(0.7, RATE)
    streamed = decode(format, encode(format, sound, size=777, rate=22_050), 15_435, 22_050)
    whole = decode(format, encode(format, sound, whole=True, rate=22_050), 15_435, 22_050)
    assert len(whole) == 15_435
    assert np.array_equal(streamed, whole)


def test_integer_formats_agree_to_the_bit() -> None:
    sound = noise(0.5, RATE)
    pcm = encode("pcm_s16le", sound)
    assert encode("wav", sound)[44:] == pcm
    assert np.array_equal(decode("flac", encode("flac", sound, whole=True), 0), decode("pcm_s16le", pcm, 0))


def test_wav_headers() -> None:
    sound = noise(0.5, RATE)
    whole = encode("wav", sound, whole=True)
    assert struct.unpack("<I", whole[4:8])[0] == len(whole) - 8
    with wave.open(io.BytesIO(whole)) as file:
        assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (1, 2, RATE)
        assert file.getnframes() == len(sound)
    streamed = encode("wav", sound)
    assert streamed[4:8] == streamed[40:44] == b"\xff" * 4
    assert streamed[8:40] == whole[8:40]
    assert streamed[44:] == whole[44:]
    assert len(soundfile.read(io.BytesIO(streamed))[0]) == len(sound)


@pytest.mark.parametrize("format", FORMATS)
def test_what_is_too_loud_is_clipped(format: str) -> None:
    loud = (3 * np.sin(2 * np.pi * 300 * np.arange(RATE) / RATE)).astype(np.float32)
    expected = np.clip(loud, -1, 1)
    got = decode(format, encode(format, loud, whole=True), 0)[:RATE]
    if format in LOSSLESS:
        assert np.abs(got - expected).max() < 1e-4
    # Wrapped around, three times too loud would be close to uncorrelated.
    assert np.corrcoef(got[2_000:-2_000], expected[2_000:-2_000])[0, 1] > 0.95


@pytest.mark.parametrize("rate", [RATE, 48_000])
@pytest.mark.parametrize("format", FORMATS)
def test_what_is_no_number_becomes_one(format: str, rate: int) -> None:
    sound = noise(1.0, RATE)
    sound[100:200] = np.nan
    sound[200:300] = np.inf
    sound[300:400] = -np.inf
    got = decode(format, encode(format, sound, whole=True, rate=rate), 0, rate)
    assert np.isfinite(got).all()
    assert len(got) >= rate
    if format in LOSSLESS and rate == RATE:
        assert (got[100:200] == 0).all()
        assert got[200:300] == pytest.approx(1.0, abs=1e-4)
        assert got[300:400] == pytest.approx(-1.0, abs=1e-4)
        assert snr_db(sound[400:], got[400:]) > 70


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("format", FORMATS)
def test_no_audio_at_all_is_a_file_all_the_same(format: str, whole: bool) -> None:
    data = encode(format, np.zeros(0, dtype=np.float32), whole=whole)
    got = decode(format, data, RATE // 50)
    assert len(got) <= RATE // 5
    assert not len(got) or np.abs(got).max() < 1e-9
    assert (len(data) == 0) == format.startswith("pcm")


@pytest.mark.parametrize(
    ("format", "first_s"),
    [("wav", 0.1), ("flac", 0.4), ("ogg_opus", 0.3), ("mp3", 0.3), ("pcm_s16le", 0.1), ("pcm_f32le", 0.1)],
)
def test_a_stream_flows(format: str, first_s: float) -> None:
    """Audio comes out soon after it went in, all along."""
    encoder = Encoder(format, RATE)
    sound = noise(3.0, RATE)
    header = len(encoder.feed(sound[:1])) if format in ("ogg_opus", "flac") else 0
    dry = longest = 0.0
    for i in range(0, len(sound), 480):
        dry = 0.0 if encoder.feed(sound[i : i + 480]) else dry + 0.02
        longest = max(longest, dry)
    encoder.finish()
    assert header or format not in ("ogg_opus", "flac")
    assert longest <= first_s


@pytest.mark.parametrize("format", FORMATS)
def test_a_long_stream_does_not_pile_up(format: str) -> None:
    encoder = Encoder(format, RATE)
    second = noise(1.0, RATE)
    for _ in range(3):
        encoder.feed(second)
    tracemalloc.start()
    total = sum(len(encoder.feed(second)) for _ in range(60))
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    encoder.finish()
    assert total > 100_000
    assert held < 30_000


@pytest.mark.parametrize("format", FORMATS)
def test_a_whole_file_is_held_once(format: str) -> None:
    encoder = Encoder(format, RATE, whole=True)
    second = noise(1.0, RATE)
    tracemalloc.start()
    for _ in range(60):
        encoder.feed(second)
    before = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    kept = encoder.kept
    data = encoder.finish()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert encoder.kept == 0
    assert 100_000 < kept <= len(data) <= kept + 30_000
    assert before < 1.3 * kept + 50_000
    assert peak < before + 100_000


def test_the_rate_that_will_be_used() -> None:
    assert check_format("wav", 24_000, 0) == 24_000
    assert check_format("wav", 24_000, 192_000) == 192_000
    assert check_format("ogg_opus", 24_000, 0) == 24_000
    assert check_format("ogg_opus", 22_050, 0) == 24_000
    assert check_format("ogg_opus", 44_100, 0) == 48_000
    assert check_format("mp3", 22_050, 0) == 22_050
    assert check_format("mp3", 96_000, 0) == 48_000
    assert Encoder("ogg_opus", 22_050).rate == 24_000


@pytest.mark.parametrize(
    ("format", "rate", "hint"),
    [
        ("ogg_opus", 22_050, "8000, 12000, 16000, 24000, 48000"),
        ("mp3", 96_000, "8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000"),
        ("wav", 7_999, "8000 to 192000"),
        ("flac", 192_001, "8000 to 192000"),
        ("wave", 0, "did you mean 'wav'"),
        ("aac", 0, "wav, flac, ogg_opus"),
    ],
)
def test_refusals_say_what_would_work(format: str, rate: int, hint: str) -> None:
    with pytest.raises(UnsupportedFormat) as caught:
        check_format(format, 24_000, rate)
    assert hint in caught.value.hint
    with pytest.raises(UnsupportedFormat):
        Encoder(format, 24_000, rate)
