"""Checks of sound: a loudspeaker is there, the daemon has one, and a tone gets through. Main thread.

The tone goes the way of speech: the ring, PortAudio's callback, the device. Neighbours: `findings` runs
them, `edged.audio` has the devices.
"""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic, sleep

import numpy as np

from edged.audio.chime import RATE as CHIME_RATE
from edged.audio.chime import load
from edged.audio.find import drivers_muted, find, found
from edged.audio.match import settings_for
from edged.audio.output import Output, Speaker
from edged.audio.ring import Ring
from edged.audio.stretch import INSTALL, LIBRARY, library
from edged.doctor.findings import Case, Finding
from edged.errors import AudioDeviceLost, ConfigError, EdgedError, NoAudioDevice
from edged.job import Samples

RATE = 24_000  # what voices have, mostly
TONE_S, TONE_HZ, TONE_LEVEL = 0.6, 880.0, 0.1
FADE_S = 0.02
POLL_S = 0.02
AUDIBLE = 0.02  # of the volume: below it speech is 34 dB softer than it was made


def loudspeaker(case: Case) -> Iterator[Finding]:
    settings, status = case.settings.audio, case.status
    if not settings.enabled:
        yield Finding("loudspeaker", "skipped", "switched off (audio.enabled)")
        return
    told = status if not isinstance(status, EdgedError) else None
    daemons = told.audio_error if told is not None else ""
    with drivers_muted():
        try:
            speaker = find(settings, RATE)
            others = len(found(settings, RATE)) - 1
        except NoAudioDevice as error:
            if daemons and daemons != str(error):
                yield _daemons(daemons)
            yield _unseen(error, held=bool(told and told.audio_device and not daemons))
            return
    if daemons:
        yield _daemons(daemons)
    text = f"{speaker.name}, {speaker.rate} Hz, {speaker.channels} channels; {others} other devices"
    yield Finding("loudspeaker", "ok", text)
    if not case.tone:
        yield Finding("test tone", "skipped", "not wanted; play one with: edged doctor --tone")
        return
    with drivers_muted():
        own = settings_for(settings, speaker.name)
        yield _tone(speaker, own.latency_ms / 1000, own.lead_in_ms / 1000)


def remote(case: Case) -> Iterator[Finding]:
    """What people have set that keeps a sound loudspeaker silent, and the chime."""
    path = case.settings.speech.chime
    if path:
        try:
            length_s = len(load(path).samples) / CHIME_RATE
            yield Finding("chime", "ok", f"{path}, {length_s:.1f} s")
        except ConfigError as error:
            yield Finding.of("chime", error, "warning")
    status = case.status
    if isinstance(status, EdgedError):
        return
    if status.held:
        text = "all speech is paused, but for important jobs"
        yield Finding("remote control", "warning", text, "let it go on: edged resume --all")
    if status.muted or status.volume < AUDIBLE:
        text = "the loudspeaker is muted" if status.muted else f"the volume is {status.volume:g}"
        remedy = "edged unmute" if status.muted else "set it: edged volume 1"
        yield Finding("remote control", "warning", text, remedy)


def stretching(case: Case) -> Iterator[Finding]:
    """Without the library there is speech, only not as it was asked for."""
    if library() is not None:
        yield Finding("speed and pitch", "ok", f"{LIBRARY} changes what a voice cannot")
        return
    text = f"{LIBRARY} is not there: no voice can change its pitch, and some not their speed"
    yield Finding("speed and pitch", "warning", text, INSTALL)


def _daemons(error: str) -> Finding:
    """Another one than this user's: it looks again for the next job."""
    remedy = "say something, then run this again; the service's user must be in the group audio"
    text = f"none when it last looked: {error}"
    return Finding("daemon's loudspeaker", "failed", text, remedy, NoAudioDevice.code)


def _unseen(error: NoAudioDevice, held: bool) -> Finding:
    """A sound card without a mixer has one user at a time: the daemon, while it keeps the card open. A sound
    server that has died looks the same from here: the daemon notices with its next job."""
    if held:
        text = f"the daemon has one, or had when it last spoke; this user can open none: {error.message}"
        remedy = (
            "say something: when it is heard, the daemon holds the card alone, for audio.keep_open_s; "
            "otherwise restart the sound server (as its user: systemctl --user restart pipewire-pulse)"
        )
        return Finding("loudspeaker", "warning", text, remedy, error.code)
    return Finding.of("loudspeaker", error)


def _tone(speaker: Speaker, latency_s: float, lead_in_s: float) -> Finding:
    """Whether the device takes a tone in the time that it lasts. Only ears can tell that it is heard."""
    tone = beep(speaker.rate)
    ring = Ring(len(tone) + int(lead_in_s * speaker.rate) + 1, speaker.channels)
    ring.write(np.zeros(int(lead_in_s * speaker.rate), np.float32))
    ring.write(tone)
    try:
        output = Output.open(speaker, ring, latency_s)
    except NoAudioDevice as error:
        return Finding.of("test tone", error)
    try:
        while ring.read < ring.written:
            if output.stalled(monotonic()):
                text = f"{speaker.name} took {ring.read} of {ring.written} samples"
                return Finding.of("test tone", AudioDeviceLost(text))
            sleep(POLL_S)
        sleep(2 * output.latency_s + POLL_S)  # closing cuts off what the device has not played
    finally:
        output.close()
    remedy = "when you did not hear it: plug, power, volume (alsamixer, pactl), and the right audio.device"
    return Finding("test tone", "ok", f"{speaker.name} took a tone of {TONE_S:g} s", remedy)


def beep(rate: int, seconds: float = TONE_S) -> Samples:
    """A quiet sine with soft ends."""
    count, fade = int(seconds * rate), int(FADE_S * rate)
    tone = np.sin(2 * np.pi * TONE_HZ * np.arange(count) / rate)
    tone[:fade] *= np.linspace(0, 1, fade)
    tone[-fade:] *= np.linspace(1, 0, fade)
    return (tone * TONE_LEVEL).astype(np.float32)
