"""`edged cancel`, `pause`, `resume` and `skip`: jobs that are there. Main thread. Neighbour: `context`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from edged.cli.context import State, client_command, pass_state
from edged.cli.exits import tell

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
    """Pause the job JOB (see: edged status), or all of them; others are heard meanwhile."""
    _ask(state, "pause", "paused", "nothing was there to pause", **named)


@click.command()
@which
@client_command
@pass_state
def resume(state: State, /, **named: Any) -> None:
    """Go on with what was paused, from the beginning of the sentence that was cut."""
    _ask(state, "resume", "goes on", "nothing was paused", **named)


@click.command()
@which
@client_command
@pass_state
def skip(state: State, /, **named: Any) -> None:
    """End the sentence that is being heard, and go on with the next one."""
    _ask(state, "skip", "skipped", "nothing is being heard", **named)


def _ask(
    state: State, do: str, done: str, nothing: str, job: str | None, everything: bool, mine: bool
) -> None:
    """Does it to the jobs that are named. done, nothing: what is printed in front of them, or instead."""
    if [bool(job), everything, mine].count(True) != 1:
        raise click.UsageError("give one of: a job number, --all, --mine")
    with state.client() as client:
        scope = "all" if everything else "mine" if mine else "job"
        reply = getattr(client, do)(job=job or "", scope=scope)
    state.show(reply, lambda: tell(f"{done}: {', '.join(reply.jobs) or nothing}"))
