"""The sound before speech that must not be missed: a file, ready at the ring's rate.

Read on the loading thread, used on `edged-player`. Neighbours: `takeover` has it loaded, `segment` plays it
before the first sample of a job.
"""

from __future__ import annotations

import logging
import os
import stat
from dataclasses import dataclass, field

import numpy as np
import soundfile

from edged.audio.limiter import CEILING_DB
from edged.audio.resample import Resampler
from edged.errors import ConfigError
from edged.job import Samples
from edged.log import event as log_event
from edged.settings import DEFAULT_CHIME

log = logging.getLogger("edged.audio")

LONGEST_S = 5.0
PAUSE_S = 0.15  # between the chime and the first word
FADE_S = 0.005  # at both ends, so that a file that was cut badly does not click
TONES = ((0.0, 659.3), (0.16, 880.0))  # of the built-in one: seconds, Hz
TONES_S, TONES_LEVEL, DECAY_S = 0.5, 0.31, 0.12  # as loud as the voices by default
RATES = (8_000, 96_000)
RATE = 48_000  # what nearly every device is opened with
MOST_CHANNELS = 2
PEAK = 10.0 ** ((CEILING_DB - 1.0) / 20.0)  # true peaks are below it, with room for those at another rate
TINY = 1e-9  # what a faint file may become by its fades is not divided by
HINT = "speech.chime takes a WAV or FLAC file of at most 5 seconds, 8 to 96 kHz, one or two channels"


@dataclass(frozen=True, slots=True)
class Chime:
    """samples: mono, at `rate` in Hz."""

    samples: Samples = field(repr=False)
    rate: int

    def at(self, rate: int) -> Samples:
        """At another rate, with the pause that follows."""
        sound = (
            self.samples if rate == self.rate else Resampler(self.rate, rate).feed(self.samples, last=True)
        )
        return np.concatenate((sound, np.zeros(int(PAUSE_S * rate), np.float32)))


def at_start(path: str) -> Chime | None:
    """None without one. Speech without its chime is better than none: what is wrong is told in the log."""
    try:
        return anew(path)
    except ConfigError as error:
        log_event(log, logging.WARNING, f"no chime: {error}", code="bad_chime", phase="start")
        return None


def anew(path: str) -> Chime | None:
    """For a reload. Raises `ConfigError` for a file that cannot be used."""
    return load(path) if path else None


def load(path: str) -> Chime:
    """Reads a file, mixed down to one channel; `DEFAULT_CHIME` needs none. Raises `ConfigError`."""
    if path == DEFAULT_CHIME:
        return Chime(_made_ready(path, _two_tones(), RATE), RATE)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # a pipe without a writer would wait for ever
    except (OSError, ValueError) as exc:
        raise _unusable(path, getattr(exc, "strerror", None) or str(exc)) from None
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise _unusable(path, "it is no file")
    with os.fdopen(fd, "rb") as file:
        try:
            with soundfile.SoundFile(file) as sound:
                low, high = RATES
                if not low <= sound.samplerate <= high:
                    raise _unusable(path, f"it has {sound.samplerate} Hz")
                if sound.channels > MOST_CHANNELS:
                    raise _unusable(path, f"it has {sound.channels} channels")
                if sound.frames > LONGEST_S * sound.samplerate:
                    raise _unusable(path, f"it has {sound.frames / sound.samplerate:.1f} seconds")
                audio = sound.read(dtype="float32", always_2d=True)
                rate = sound.samplerate
        except soundfile.SoundFileError:
            raise _unusable(path, "it is no audio that can be read") from None
    return Chime(_made_ready(path, audio.mean(axis=1), rate), RATE)


def _two_tones() -> Samples:
    """Soft ones, the second higher, each dying away."""
    sound: Samples = np.zeros(int(TONES_S * RATE), np.float32)
    for begin, hertz in TONES:
        time = np.arange(len(sound) - int(begin * RATE)) / RATE
        swell = np.minimum(time / FADE_S, 1.0) * np.exp(-time / DECAY_S)
        sound[-len(time) :] += (TONES_LEVEL * swell * np.sin(2 * np.pi * hertz * time)).astype(np.float32)
    return sound


def _made_ready(path: str, mono: Samples, rate: int) -> Samples:
    if len(mono) < 2 * FADE_S * rate or not np.isfinite(mono).all() or not mono.any():
        raise _unusable(path, "there is nothing to hear in it")
    sound: Samples = np.array(Resampler(rate, RATE).feed(mono, last=True), dtype=np.float32)
    count = int(FADE_S * RATE)
    ramp = np.linspace(0.0, 1.0, count, dtype=np.float32)
    sound[:count] *= ramp
    sound[len(sound) - count :] *= ramp[::-1]
    # It does not go through the limiter, which is the job's.
    between = Resampler(RATE, 4 * RATE).feed(sound, last=True)
    sound *= min(1.0, PEAK / max(float(np.abs(sound).max()), float(np.abs(between).max()), TINY))
    return sound


def _unusable(path: str, why: str) -> ConfigError:
    return ConfigError(f"the chime {path!r} cannot be used: {why}", HINT)
