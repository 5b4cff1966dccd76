"""`edged audio list` and `test`: the loudspeakers of this machine. Main thread; they need no daemon.

Neighbours: `edged.audio.find` and `edged.doctor.channels`, imported when a command runs.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from edged.cli.context import Number, State, endpoint_options, json_option, pass_state
from edged.cli.exits import document, tell, write_json
from edged.cli.render import table
from edged.errors import EdgedError, NoAudioDevice

if TYPE_CHECKING:
    from edged.settings import Settings

HOLDER_WAIT_S = 1.0
config_option = click.option(
    "--config", "config_path", metavar="FILE", help="Default: as the daemon finds it."
)


def _settings(config_path: str | None) -> Settings:
    from edged import config

    return config.load(config.find(config_path))


@click.group()
def audio() -> None:
    """The loudspeakers of this machine."""


@audio.command("list")
@config_option
@json_option
@pass_state
def list_devices(state: State, config_path: str | None) -> None:
    """List the output devices by the names that audio.device takes; * marks the default.

    The daemon uses the first of the rates. A device that another program holds shows none. The last column
    has the entries of audio.device and audio.devices that mean a device, and which one the daemon would use.
    """
    from edged.audio.find import drivers_muted, found
    from edged.audio.match import entries

    settings = _settings(config_path).audio
    with drivers_muted():
        devices = found(settings)
    if state.as_json:
        write_json(document({"devices": [asdict(device) for device in devices]}))
        return
    wanted = entries(settings)
    rows = []
    for d in devices:
        means = ["used"] if d.used else []
        means += [f"device {wanted[d.entry - 1]!r}"] if d.entry else []
        means += [f"devices {d.settings!r}"] if d.settings else []
        rates = ", ".join(map(str, d.rates)) + " Hz" if d.rates else f"none: {d.problem}"
        rows.append((f"{d.name} *" if d.default else d.name, str(d.channels), rates, ", ".join(means)))
    table(("device", "channels", "rates", "configuration"), rows)


@audio.command("test")
@click.option("--device", metavar="NAME", help="A name, pattern or part of a name; default: audio.device.")
@click.option("--seconds", type=Number(0.1, 60), default=0.6, help="Of the tone on each channel (0.6).")
@click.option("--voice/--no-voice", default=True, help="Whether the built-in voice says each number.")
@config_option
@endpoint_options
@json_option
@pass_state
def test_device(
    state: State, device: str | None, seconds: float, voice: bool, config_path: str | None
) -> None:
    """Play a tone on each channel of a loudspeaker, and say its number.

    It needs no daemon, but the bundle of the built-in voice, or there are tones alone. Only ears can tell
    whether it is heard.
    """
    import msgspec

    from edged.audio.find import drivers_muted
    from edged.doctor.channels import play

    settings = _settings(config_path)
    if device is not None:
        audio = msgspec.structs.replace(settings.audio, device=device)
        settings = msgspec.structs.replace(settings, audio=audio)
    try:
        with drivers_muted():
            played = play(settings, seconds, voice)
    except NoAudioDevice as error:
        if not (holder := _holder(state)):
            raise
        hint = f"the daemon uses {holder!r}; if it holds the device alone, it lets go audio.keep_open_s later"
        raise NoAudioDevice(error.message, hint) from None
    if state.as_json:
        write_json(document(asdict(played)))
        return
    tell(f"{played.device}: {played.rate} Hz, {played.channels} channels, latency {played.latency_ms:.0f} ms")
    for channel in range(1, played.channels + 1):
        tell(f"channel {channel}: " + ("a tone and its number" if played.spoken else "a tone"))
    if not played.spoken:
        tell(f"no number was said: {played.unspoken}")
    tell(f"{played.seconds:.1f} s were played, {played.underruns} underruns")


def _holder(state: State) -> str:
    """The device of the daemon that runs, "" without one."""
    state.timeout_s = min(state.timeout_s, HOLDER_WAIT_S)
    try:
        with state.client() as client:
            return client.status().audio_device
    except EdgedError:
        return ""
