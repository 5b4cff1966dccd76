"""Which loudspeakers there are, and which one the settings mean.

Runs on the thread `edged-player` (for `device`), or on the main thread of `edged audio list` and `doctor`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from edged.audio.output import Speaker, portaudio, reason
from edged.errors import NoAudioDevice
from edged.settings import Audio

CONNECT = (
    "connect a loudspeaker and switch it on; who uses it must be in the group audio (the service is), and a "
    "sound server of a desktop is reached with libasound2-plugins and the drop-in desktop-sound.conf"
)


@dataclass(frozen=True, slots=True)
class Found:
    """One output device. rates: those the daemon would use, the first one by preference; empty when the
    device cannot be opened now, and `problem` says why."""

    name: str
    default: bool
    channels: int
    rates: tuple[int, ...]
    problem: str = ""


def refresh() -> None:
    """Makes PortAudio list the devices anew (it does so only when it starts). No stream may be open."""
    sd = portaudio()
    try:
        sd._terminate()
        sd._initialize()
    except sd.PortAudioError as exc:
        raise NoAudioDevice(f"PortAudio cannot start: {reason(exc)}") from None


def find(settings: Audio, voice_rate: int) -> Speaker:
    """The device that `settings.device` means, with a rate and channels that it takes."""
    sd = portaudio()
    index, info = _choose(_outputs(sd), sd.default.device[1], settings.device)
    for channels in _channels(info):
        rates, refusal = _rates(sd, index, info, channels, voice_rate)
        if rates:
            return Speaker(index, str(info["name"]), rates[0], channels)
    raise NoAudioDevice(f"the audio device {info['name']!r} cannot be opened: {refusal}")


def found(voice_rate: int = 24_000) -> list[Found]:
    """All output devices, by the names that `audio.device` takes. Raises `NoAudioDevice` without any."""
    sd = portaudio()
    outputs = _outputs(sd)
    default, _ = _choose(outputs, sd.default.device[1], "")
    listed = []
    for index, info in outputs:
        for channels in _channels(info):
            rates, refusal = _rates(sd, index, info, channels, voice_rate)
            if rates:
                break
        most = int(info["max_output_channels"])
        listed.append(Found(str(info["name"]), index == default, most, rates, "" if rates else refusal))
    return listed


@contextmanager
def drivers_muted() -> Iterator[None]:
    """PortAudio and ALSA write about every device that is not there straight to file descriptor 2.

    For commands only: meanwhile nothing else of the process can write there.
    """
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _channels(info: Any) -> tuple[int, ...]:
    most = int(info["max_output_channels"])
    return tuple(dict.fromkeys((min(2, most), 1, most)))


def _rates(sd: Any, index: int, info: Any, channels: int, voice_rate: int) -> tuple[tuple[int, ...], str]:
    """The rates that the device takes, the preferred one first, and why it does not take another.

    48 kHz comes first although PulseAudio and ALSA's plugins take any rate: they would resample with
    less care than soxr does, and one rate for all voices needs no reopening between jobs.
    """
    taken, refusal = [], ""
    for rate in dict.fromkeys((48_000, voice_rate, 44_100, int(info["default_samplerate"]))):
        try:
            sd.check_output_settings(device=index, channels=channels, dtype="float32", samplerate=rate)
        except sd.PortAudioError as exc:
            refusal = reason(exc)
        else:
            taken.append(rate)
    return tuple(taken), refusal


def _outputs(sd: Any) -> list[tuple[int, Any]]:
    outputs = [(i, info) for i, info in enumerate(sd.query_devices()) if info["max_output_channels"] > 0]
    if not outputs:
        raise NoAudioDevice("there is no audio output device", CONNECT)
    return outputs


def _choose(outputs: list[tuple[int, Any]], default: int, wanted: str) -> tuple[int, Any]:
    """Index and description: an exact name first, then the first that contains it in any case."""
    if not wanted:
        return next((pair for pair in outputs if pair[0] == default), outputs[0])
    names = [(pair, str(pair[1]["name"])) for pair in outputs]
    for pair, name in names:
        if name == wanted:
            return pair
    for pair, name in names:
        if wanted.casefold() in name.casefold():
            return pair
    known = ", ".join(repr(name) for _, name in names)
    raise NoAudioDevice(
        f"there is no audio device {wanted!r}", f"set audio.device to one of (edged audio list): {known}"
    )
