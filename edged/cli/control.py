"""`edged cancel`, `pause`, `volume` and so on: jobs that are there. Main thread. Neighbour: `context`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from edged.cli.context import State, client_command, pass_state
from edged.cli.exits import tell
from edged.controls import SPEEDS, VOLUMES
from edged.protocol import CancelReply, ControlReply

F = TypeVar("F", bound=Callable[..., Any])


def which(command: F) -> F:
    """JOB, --all or --mine."""
    command = click.option("--mine", is_flag=True, help="Every job this user gave with edged say.")(command)
    command = click.option("--all", "everything", is_flag=True, help="Every job of the daemon.")(command)
    return click.argument("job", required=False)(command)


@click.command()
@which
@client_command
@pass_state
def cancel(state: State, /, **named: Any) -> None:
    """Cancel the job with the number JOB (see: edged status), or all of them."""
    _ask(state, "cancel", "cancelled", "nothing was there to cancel", **named)


@click.command()
@which
@client_command
@pass_state
def pause(state: State, /, **named: Any) -> None:
    """Pause the job JOB (see: edged status); others are heard meanwhile.

    With --all those that come later wait, too, but for important ones, until: edged resume --all
    """
    _ask(state, "pause", "paused", "nothing was there to pause", **named)


@click.command()
@which
@client_command
@pass_state
def resume(state: State, /, **named: Any) -> None:
    """Go on with what was paused, where it was."""
    _ask(state, "resume", "goes on", "nothing was paused", **named)


@click.command()
@which
@client_command
@pass_state
def skip(state: State, /, **named: Any) -> None:
    """End the sentence that is being heard, and go on with the next one."""
    _ask(state, "skip", "skipped", "nothing is being heard", **named)


@click.command()
@click.argument("value", type=click.FloatRange(*VOLUMES))
@which
@client_command
@pass_state
def volume(state: State, /, value: float, **named: Any) -> None:
    """Set the volume, a factor from 0 to 4; without JOB that of the loudspeaker, until the next start."""
    _turn(state, "volume", value, **named)


@click.command()
@which
@client_command
@pass_state
def mute(state: State, /, **named: Any) -> None:
    """Silence a job, or without JOB the loudspeaker; what is spoken meanwhile is not heard."""
    _turn(state, "mute", True, **named)


@click.command()
@which
@client_command
@pass_state
def unmute(state: State, /, **named: Any) -> None:
    """Let what was muted be heard again."""
    _turn(state, "mute", False, **named)


@click.command()
@click.argument("value", type=click.FloatRange(*SPEEDS))
@which
@client_command
@pass_state
def speed(state: State, /, value: float, **named: Any) -> None:
    """Change the speed, a factor from 0.5 to 2, of the job JOB from its next sentence on."""
    _ask(state, "speed", "changed", "nothing was there to change", value, **named)


def _turn(state: State, do: str, value: float, job: str | None, everything: bool, mine: bool) -> None:
    """The loudspeaker's, where no job is named."""
    everything = everything or not (job or mine)
    nothing = "nothing was there to change"
    _ask(state, do, "changed", nothing, value, job=job, everything=everything, mine=mine)


def _ask(
    state: State,
    do: str,
    done: str,
    nothing: str,
    *value: float,
    job: str | None,
    everything: bool,
    mine: bool,
) -> None:
    """Does it to the jobs that are named. done, nothing: what is printed in front of them, or instead."""
    if [bool(job), everything, mine].count(True) != 1:
        raise click.UsageError("give one of: a job number, --all, --mine")
    with state.client() as client:
        scope = "all" if everything else "mine" if mine else "job"
        reply = getattr(client, do)(*value, job=job or "", scope=scope)
    state.show(reply, lambda: tell(_told(reply, done, nothing, do in ("volume", "mute") and everything)))


def _told(reply: CancelReply | ControlReply, done: str, nothing: str, loudspeaker: bool) -> str:
    if loudspeaker and isinstance(reply, ControlReply):
        return f"loudspeaker: {'muted, ' if reply.muted else ''}volume {reply.volume:g}"
    held = isinstance(reply, ControlReply) and reply.held
    return f"{done}: {', '.join(reply.jobs) or nothing}" + ("; later jobs wait, too" if held else "")
