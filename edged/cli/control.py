"""`edged pause`, `resume`, `skip`, `stop`, `volume`, `mute` and `unmute`: speech on the loudspeaker, while it
is heard. Main thread. Neighbour: `context` (the client).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import click

from edged.cli.context import Number, State, client_command, pass_state
from edged.cli.exits import tell

if TYPE_CHECKING:
    from edged.protocol import ControlReply

HOW = ("exact", "sentence", "restart")


def _whose(command: Callable[..., None]) -> Callable[..., None]:
    """The argument and options that name jobs."""
    command = click.option("--mine", is_flag=True, help="Every job this user gave with edged say.")(command)
    command = click.option("--all", "everything", is_flag=True, help="Every job of the daemon.")(command)
    return click.argument("job", required=False)(command)


def _named(job: str | None, everything: bool, mine: bool) -> dict[str, Any]:
    """As fields of a request; without any of them, every job is meant."""
    if [bool(job), everything, mine].count(True) > 1:
        raise click.UsageError("give one of: a job number, --all, --mine")
    scope: Literal["job", "mine", "all"] = "job" if job else "mine" if mine else "all"
    return {"job": job or "", "scope": scope}


def _told(state: State, reply: ControlReply, done: str) -> None:
    state.show(reply, lambda: tell(f"{done}: {', '.join(reply.jobs) or 'nothing was there to do so with'}"))


@click.command()
@_whose
@client_command
@pass_state
def pause(state: State, job: str | None, everything: bool, mine: bool) -> None:
    """Silence JOB, or else all that is spoken and what comes, until: edged resume."""
    with state.client() as client:
        reply = client.pause(**_named(job, everything, mine))
    _told(state, reply, "paused")


@click.command()
@_whose
@click.option("--from", "how", type=click.Choice(HOW), default="exact", help="Where it was, or before that.")
@client_command
@pass_state
def resume(state: State, job: str | None, everything: bool, mine: bool, how: Any) -> None:
    """Go on with JOB, or else with all that is paused."""
    with state.client() as client:
        reply = client.resume(**_named(job, everything, mine), how=how)
    _told(state, reply, "resumed")


@click.command()
@_whose
@client_command
@pass_state
def skip(state: State, job: str | None, everything: bool, mine: bool) -> None:
    """Go on with the next sentence of JOB, or else of what is heard."""
    with state.client() as client:
        reply = client.skip(**_named(job, everything, mine))
    _told(state, reply, "skipped a sentence of")


@click.command()
@_whose
@client_command
@pass_state
def stop(state: State, job: str | None, everything: bool, mine: bool) -> None:
    """Cancel JOB, or several."""
    if not (job or everything or mine):
        raise click.UsageError("give one of: a job number, --all, --mine")
    with state.client() as client:
        reply = client.cancel(**_named(job, everything, mine))
    state.show(reply, lambda: tell(f"cancelled: {', '.join(reply.jobs) or 'nothing was there to cancel'}"))


@click.command()
@click.argument("value", type=Number(0.0, 4.0))
@client_command
@pass_state
def volume(state: State, value: float) -> None:
    """Set the loudspeaker's VOLUME, a linear gain; 1 is as the voice speaks."""
    with state.client() as client:
        reply = client.set_volume(value)
    state.show(reply, lambda: tell(f"volume {reply.volume:g}{', muted' if reply.muted else ''}"))


@click.command()
@client_command
@pass_state
def mute(state: State) -> None:
    """Play what comes in silence, until: edged unmute."""
    _mute(state, True)


@click.command()
@client_command
@pass_state
def unmute(state: State) -> None:
    """The opposite of mute."""
    _mute(state, False)


def _mute(state: State, muted: bool) -> None:
    with state.client() as client:
        reply = client.mute(muted)
    state.show(reply, lambda: tell("muted" if reply.muted else f"volume {reply.volume:g}"))
