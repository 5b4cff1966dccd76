"""`edged audio list`: the loudspeakers of this machine. Main thread; it needs no daemon.

Neighbour: `edged.audio.find`, imported when the command runs.
"""

from __future__ import annotations

import click

from edged.cli.context import State, json_option, pass_state
from edged.cli.exits import write_json
from edged.cli.render import table


@click.group()
def audio() -> None:
    """The loudspeakers of this machine."""


@audio.command("list")
@json_option
@pass_state
def list_devices(state: State) -> None:
    """List the output devices by the names that audio.device takes; * marks the default.

    The daemon uses the first of the rates. A device that another program holds shows none.
    """
    from edged.audio.find import drivers_muted, found

    with drivers_muted():
        devices = found()
    if state.as_json:
        import msgspec

        write_json(msgspec.json.encode({"devices": devices}))
        return
    rows = [
        (
            f"{d.name} *" if d.default else d.name,
            str(d.channels),
            ", ".join(map(str, d.rates)) + " Hz" if d.rates else f"none: {d.problem}",
        )
        for d in devices
    ]
    table(("device", "channels", "rates"), rows)
