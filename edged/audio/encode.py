"""Audio formats for clients: samples in, file bytes out, piece by piece or whole.

No thread of its own: `reply` runs it on `edged-reply`, the server calls `check_format` on admission.
WAV and raw PCM are written here; FLAC, Ogg Opus and MP3 by libsndfile through `soundfile`, into a `Tap`
that is emptied after every feed, so a stream holds no more than the encoder's own look-ahead.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import soundfile
from numpy.typing import NDArray

from edged.audio.resample import Resampler
from edged.audio.tap import Tap
from edged.errors import UnsupportedFormat, did_you_mean
from edged.job import Samples

Data = bytes | bytearray

_ANY_RATE = (8_000, 192_000)
_OPUS_RATES = (8_000, 12_000, 16_000, 24_000, 48_000)
_MP3_RATES = (8_000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000)
# None: any rate within _ANY_RATE.
FORMATS: dict[str, tuple[int, ...] | None] = {
    "wav": None,
    "flac": None,
    "ogg_opus": _OPUS_RATES,
    "mp3": _MP3_RATES,
    "pcm_s16le": None,
    "pcm_f32le": None,
}
_UNKNOWN_SIZE = 0xFFFFFFFF  # what a WAV header says whose file is still being made
_OGG_PAGE_MS = 100.0  # libsndfile's default page of 1 s would keep the first word back for a second
_SET_OGG_PAGE_LATENCY_MS = 0x1302  # SFC_SET_OGG_PAGE_LATENCY_MS of sndfile.h


def check_format(format: str, source_rate: int, target_rate: int) -> int:
    """The sample rate that will be used; 0 asks for the voice's own, or the nearest one above it that
    the format has. Raises `UnsupportedFormat`."""
    if format not in FORMATS:
        hint = did_you_mean(format, FORMATS) or f"one of: {', '.join(FORMATS)}"
        raise UnsupportedFormat(f"unknown audio format {format[:40]!r}", hint)
    rates = FORMATS[format]
    if rates is None:
        low, high = _ANY_RATE
        rate = target_rate or min(max(source_rate, low), high)
        if low <= rate <= high:
            return rate
        hint = f"sample_rate from {low} to {high} Hz, or 0 for the voice's own ({source_rate})"
    else:
        if target_rate == 0:
            return min((rate for rate in rates if rate >= source_rate), default=rates[-1])
        if target_rate in rates:
            return target_rate
        hint = f"sample_rate one of {', '.join(map(str, rates))}, or 0 for the best for this voice"
    raise UnsupportedFormat(f"{format} has no sample rate of {target_rate} Hz", hint)


class Encoder:
    """Mono float32 in, bytes of `format` out. One thread.

    Streaming, the pieces joined are a file of the format whose header does not know the length: a WAV
    says 0xFFFFFFFF, a FLAC 0 ("unknown"). With `whole`, `finish` returns all of it with true sizes.
    Samples beyond [-1, 1] are clipped and NaN becomes silence.
    """

    def __init__(self, format: str, source_rate: int, target_rate: int = 0, whole: bool = False) -> None:
        self.format = format
        self.rate = check_format(format, source_rate, target_rate)
        self.whole = whole
        self.samples = 0  # encoded so far, at `rate`
        self._resampler = Resampler(source_rate, self.rate)
        self._writer: _Raw | _Compressed
        if format in ("flac", "ogg_opus", "mp3"):
            self._writer = _Compressed(format, self.rate, whole)
        else:
            self._writer = _Raw(format, self.rate, whole)

    def feed(self, samples: Samples) -> Data:
        return self._feed(samples, last=False)

    @property
    def kept(self) -> int:
        """Bytes that wait for `finish`; 0 without `whole`."""
        return self._writer.kept if self.whole else 0

    def finish(self) -> Data:
        """The rest of the file. The encoder cannot be used after it, and holds nothing any more."""
        rest = self._feed(np.zeros(0, dtype=np.float32), last=True)
        end = self._writer.finish()
        return rest + end if rest else end  # a whole file is handed out, not copied

    def close(self) -> None:
        """Frees an encoder that will not be finished."""
        self._writer.close()

    def _feed(self, samples: Samples, last: bool) -> Data:
        clean = samples
        if not np.isfinite(samples).all():  # a voice that fails must not be heard as noise
            clean = np.nan_to_num(samples, nan=0.0, posinf=1.0, neginf=-1.0)
        # Clipped after resampling: a filter overshoots at the edges of what was clipped before it.
        ready = np.clip(self._resampler.feed(clean, last), -1.0, 1.0)
        self.samples += len(ready)
        return self._writer.feed(ready) if len(ready) else b""


def _int16(samples: Samples) -> NDArray[np.int16]:
    # One rounding for WAV, FLAC and PCM, so that the three decode to the same samples.
    scaled: NDArray[np.int16] = np.rint(samples * 32767.0).astype("<i2")
    return scaled


def _wav_header(rate: int, data_bytes: int | None) -> bytes:
    data = _UNKNOWN_SIZE if data_bytes is None else data_bytes
    riff = _UNKNOWN_SIZE if data_bytes is None else data_bytes + 36
    form = struct.pack("<4sI4s4sIHHIIHH", b"RIFF", riff, b"WAVE", b"fmt ", 16, 1, 1, rate, rate * 2, 2, 16)
    return form + struct.pack("<4sI", b"data", data)


class _Raw:
    """wav, pcm_s16le and pcm_f32le."""

    def __init__(self, format: str, rate: int, whole: bool) -> None:
        self._float = format == "pcm_f32le"
        self._wav = format == "wav"
        self._rate = rate
        # The header of a whole file comes when its length is known, into the place left for it.
        self._file = bytearray(len(_wav_header(rate, 0)) if self._wav else 0) if whole else None
        self._started = False

    @property
    def kept(self) -> int:
        return 0 if self._file is None else len(self._file)

    def feed(self, samples: Samples) -> Data:
        data = samples.astype("<f4").tobytes() if self._float else _int16(samples).tobytes()
        if self._file is None:
            return self._header() + data
        self._file += data
        return b""

    def finish(self) -> Data:
        if self._file is None:
            return self._header()  # empty unless there was no audio at all
        file, self._file = self._file, None
        if self._wav:
            size = len(_wav_header(self._rate, 0))
            file[:size] = _wav_header(self._rate, len(file) - size)
        return file

    def close(self) -> None:
        self._file = None

    def _header(self) -> bytes:
        """What a stream begins with."""
        if self._started or not self._wav:
            return b""
        self._started = True
        return _wav_header(self._rate, None)


class _Compressed:
    """flac, ogg_opus and mp3, written by libsndfile."""

    def __init__(self, format: str, rate: int, whole: bool) -> None:
        self._whole = whole
        self._empty = True
        self._silence: Samples = np.zeros(rate // 50, dtype=np.float32)
        self._tap = Tap()
        self._ints = format == "flac"
        self._placeholder = format == "mp3" and not whole
        options: dict[str, Any] = {
            "flac": {"format": "FLAC", "subtype": "PCM_16"},
            "ogg_opus": {"format": "OGG", "subtype": "OPUS"},
            "mp3": {"format": "MP3", "subtype": "MPEG_LAYER_III", **_mp3_options(rate)},
        }[format]
        self._file = soundfile.SoundFile(self._tap, "w", rate, 1, **options)
        if format == "ogg_opus":
            _set_ogg_page(self._file)

    def feed(self, samples: Samples) -> Data:
        self._empty = False
        self._file.write(_int16(samples) if self._ints else samples)
        return b"" if self._whole else self._drain()

    @property
    def kept(self) -> int:
        return len(self._tap.data)

    def finish(self) -> Data:
        # Without any audio libsndfile writes no file at all, or one that it refuses to read: 20 ms.
        first = self.feed(self._silence) if self._empty else b""
        self._file.close()
        rest = self._drain(last=True)
        return first + rest if first else rest

    def close(self) -> None:
        self._file.close()
        self._tap.take()

    def _drain(self, last: bool = False) -> Data:
        if not self._placeholder:
            return self._tap.take()
        # LAME leaves a frame of zeros for a table of contents that only a seekable file can get in the
        # end. In a stream it would be 24 ms of silence, so it is left out.
        frames = np.frombuffer(bytes(self._tap.data), dtype=np.uint8)
        filled = np.flatnonzero(frames[4:])
        if not len(filled):
            return self._tap.take() if last else b""
        self._placeholder = False
        at = 4 + int(filled[0])
        data = self._tap.take()
        is_frame = at > 36 and data[at : at + 1] == b"\xff" and data[at + 1] & 0xE0 == 0xE0
        return data[at:] if is_frame else data


def _mp3_options(rate: int) -> dict[str, Any]:
    # Constant bit rate, as a stream without a table of contents can then be timed and searched.
    # libsndfile's compression_level runs linearly from the highest (0.0) to the lowest (1.0) bit rate.
    low, high, kbps = (8, 64, 32) if rate <= 12_000 else (8, 160, 64) if rate <= 24_000 else (32, 320, 96)
    return {"bitrate_mode": "CONSTANT", "compression_level": (high - kbps) / (high - low)}


def _set_ogg_page(file: soundfile.SoundFile) -> None:
    """soundfile has no public way to this; without it a stream comes in pages of 1 s."""
    try:
        value = soundfile._ffi.new("double *", _OGG_PAGE_MS)
        soundfile._snd.sf_command(file._file, _SET_OGG_PAGE_LATENCY_MS, value, 8)
    except (AttributeError, TypeError):  # a version with other internals: slower, not wrong
        return
