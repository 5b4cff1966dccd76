"""A tone on each channel of a loudspeaker, and its number said by the built-in voice. Main thread.

The sound goes the way of speech: the ring, PortAudio's callback, the device. Neighbours: `edged.cli.audio`
calls it, `sound` has the tone.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic, sleep

import numpy as np
import soxr

from edged.audio.find import find
from edged.audio.match import settings_for
from edged.audio.output import Output
from edged.audio.ring import Ring
from edged.bundle import Bundle
from edged.bundle import find as find_bundle
from edged.doctor.sound import POLL_S, RATE, beep
from edged.engine.buffers import Arena
from edged.errors import AudioDeviceLost, EdgedError
from edged.job import Params, Samples
from edged.paths import bundle_directories
from edged.settings import Settings
from edged.voices import golden
from edged.voices.catalog import BUILT_IN
from edged.voices.load import open_bundle

NAMES = ("one", "two", "three", "four", "five", "six", "seven", "eight")
GAP_S = 0.3  # between a channel and the next one
VOICE_LEVEL = 0.5


@dataclass(frozen=True, slots=True)
class Played:
    """What was played. spoken: the numbers, too; otherwise `unspoken` says why not."""

    device: str
    rate: int
    channels: int
    latency_ms: float
    seconds: float
    underruns: int
    spoken: bool
    unspoken: str


def play(settings: Settings, tone_s: float, voice: bool) -> Played:
    """Raises `NoAudioDevice` when the device cannot be opened, `AudioDeviceLost` when it stops."""
    speaker = find(settings.audio, RATE)
    own = settings_for(settings.audio, speaker.name)
    numbers, why = _numbers(settings, speaker.channels, speaker.rate) if voice else ([], "not wanted")
    pieces = [np.zeros((int(own.lead_in_ms * speaker.rate / 1000), speaker.channels), np.float32)]
    gap = np.zeros(int(GAP_S * speaker.rate), np.float32)
    for channel in range(speaker.channels):
        mono = np.concatenate([beep(speaker.rate, tone_s), *numbers[channel : channel + 1], gap])
        piece = np.zeros((len(mono), speaker.channels), np.float32)
        piece[:, channel] = mono
        pieces.append(piece)
    sound = np.concatenate(pieces)
    ring = Ring(len(sound) + 1, speaker.channels)
    ring.write(sound)
    output = Output.open(speaker, ring, own.latency_ms / 1000)
    try:
        while ring.read < ring.written:
            if output.stalled(monotonic()):
                raise AudioDeviceLost(f"{speaker.name} took {ring.read} of {ring.written} frames")
            sleep(POLL_S)
        sleep(2 * output.latency_s + own.trail_ms / 1000)  # closing cuts off what the device has not played
    finally:
        output.close()
    latency_ms, seconds = output.latency_s * 1000, len(sound) / speaker.rate
    shape = (speaker.rate, speaker.channels)
    return Played(speaker.name, *shape, latency_ms, seconds, output.xruns, bool(numbers), why)


def _numbers(settings: Settings, channels: int, rate: int) -> tuple[list[Samples], str]:
    """ "Channel one" and so on, at the device's rate; or none, and the reason."""
    said = []
    try:
        bundle = Bundle.load(find_bundle(BUILT_IN, bundle_directories(settings.voices.directory)))
        voices = open_bundle(bundle, settings.engine, Arena())
        try:
            for number in range(channels):
                name = NAMES[number] if number < len(NAMES) else str(number + 1)
                samples = golden.speak(voices[0], f"Channel {name}.", Params()) * np.float32(VOICE_LEVEL)
                said.append(np.asarray(soxr.resample(samples, bundle.manifest.sample_rate, rate), np.float32))
        finally:
            for voice in voices:
                voice.close()
    except EdgedError as error:
        return [], error.message
    return said, ""
