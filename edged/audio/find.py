"""Which loudspeakers there are, and which one the settings mean.

Runs on the thread `edged-player` (for `device`), or on the main thread of `edged audio list` and `doctor`.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

from edged.audio.match import device_settings, entries, entry_of, matching
from edged.audio.output import Speaker, portaudio, reason
from edged.errors import NoAudioDevice
from edged.settings import Audio, Device

CONNECT = (
    "connect a loudspeaker and switch it on; who uses it must be in the group audio (the service is), and a "
    "sound server of a desktop is reached with libasound2-plugins and the drop-in desktop-sound.conf"
)


@dataclass(frozen=True, slots=True)
class Found:
    """One output device. rates: those the daemon would use, the first one by preference; empty when the
    device cannot be opened now, and `problem` says why. entry: the place in `audio.device` that means it,
    from 1, 0 for none; used: the daemon would take it. settings: the `match` of `audio.devices` that counts.
    """

    name: str
    default: bool
    channels: int
    rates: tuple[int, ...]
    problem: str = ""
    entry: int = 0
    used: bool = False
    settings: str = ""


def refresh() -> None:
    """Makes PortAudio list the devices anew (it does so only when it starts). No stream may be open.

    Not with `sounddevice._initialize`: it takes file descriptor 2 away meanwhile, and log lines with it.
    """
    sd = portaudio()
    try:
        while sd._initialized:
            sd._terminate()
        sd._check(sd._lib.Pa_Initialize(), "PortAudio")
        sd._initialized += 1
    except sd.PortAudioError as exc:
        raise NoAudioDevice(f"PortAudio cannot start: {reason(exc)}") from None


def find(
    settings: Audio, voice_rate: int, shape: tuple[int, int] | None = None, without: Collection[str] = ()
) -> Speaker:
    """The first device that `settings.device` means and that opens, with a rate and channels that it takes.

    shape: a rate and channels that come before all others. without: names of devices that are of no use.
    """
    sd = portaudio()
    refused = ""
    for place, (index, info) in _meant(_outputs(sd), sd.default.device[1], settings):
        name = str(info["name"])
        if name in without:
            continue
        channels, rates, refusal = _shape(sd, index, info, device_settings(settings, name), voice_rate, shape)
        if rates:
            return Speaker(index, name, rates[0], channels, place)
        refused = refused or f"the audio device {name!r} cannot be opened: {refusal}"
    raise NoAudioDevice(refused or "no audio device that is meant can be opened")


def found(settings: Audio | None = None, voice_rate: int = 24_000) -> list[Found]:
    """All output devices, by the names that `audio.device` takes. Raises `NoAudioDevice` without any."""
    settings = settings or Audio()
    sd = portaudio()
    outputs = _outputs(sd)
    default = _default(outputs, sd.default.device[1])[0]
    meant: list[int] = []
    with suppress(NoAudioDevice):
        meant = [index for _, (index, _) in _meant(outputs, default, settings)]
    listed = {}
    for index, info in outputs:
        name, most = str(info["name"]), int(info["max_output_channels"])
        device = device_settings(settings, name)
        _, rates, refusal = _shape(sd, index, info, device, voice_rate)
        entry = entry_of(settings, name, index == default)
        match = device.match if device else ""
        problem = "" if rates else refusal
        listed[index] = Found(name, index == default, most, rates, problem, entry, settings=match)
    used = next((index for index in meant if listed[index].rates), None)
    return [replace(one, used=index == used) for index, one in listed.items()]


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


def _shape(
    sd: Any,
    index: int,
    info: Any,
    device: Device | None,
    voice_rate: int,
    shape: tuple[int, int] | None = None,
) -> tuple[int, tuple[int, ...], str]:
    """Channels, the rates that the device takes with them, and why it takes none."""
    rate = device.rate if device else None
    most = int(info["max_output_channels"])
    counts = [shape[1] if shape else None, device.channels if device else None, 2, 1, most]
    refusal, channels = "", 1
    for channels in dict.fromkeys(min(count, most) for count in counts if count):
        first = [rate for rate in (shape[0] if shape else None, rate) if rate]
        rates, refusal = _rates(sd, index, info, channels, (*first, 48_000, voice_rate, 44_100))
        if rates:
            return channels, rates, ""
    return channels, (), refusal


def _rates(
    sd: Any, index: int, info: Any, channels: int, wanted: tuple[int, ...]
) -> tuple[tuple[int, ...], str]:
    """The rates that the device takes, the preferred one first, and why it does not take another.

    48 kHz comes first although PulseAudio and ALSA's plugins take any rate: they would resample with
    less care than soxr does, and one rate for all voices needs no reopening between jobs.
    """
    taken, refusal = [], ""
    for rate in dict.fromkeys((*wanted, int(info["default_samplerate"]))):
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


def _default(outputs: list[tuple[int, Any]], default: int) -> tuple[int, Any]:
    return next((pair for pair in outputs if pair[0] == default), outputs[0])


def _meant(
    outputs: list[tuple[int, Any]], default: int, settings: Audio
) -> list[tuple[int, tuple[int, Any]]]:
    """The devices that `audio.device` means, in the order to try them, each with the place of its entry."""
    names = [str(info["name"]) for _, info in outputs]
    meant: dict[int, tuple[int, tuple[int, Any]]] = {}
    for place, wanted in enumerate(entries(settings), 1):
        pairs = [outputs[i] for i in matching(wanted, names)] if wanted else [_default(outputs, default)]
        for pair in pairs:
            meant.setdefault(pair[0], (place, pair))
    if not meant:
        known = ", ".join(repr(name) for name in names)
        wanted = " or ".join(repr(entry) for entry in entries(settings))
        raise NoAudioDevice(
            f"there is no audio device {wanted}", f"set audio.device to one of (edged audio list): {known}"
        )
    return list(meant.values())
