"""`edged cancel`, `pause`, `resume` and `skip`: jobs that are there. Main thread. Neighbour: `context`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from edged.cli.context import State, client_command, pass_state
from edged.cli.exits import tell

if TYPE_CHECKING:
    from edged.client.base import Scope

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
def cancel(state: State, job: str | None, everything: bool, mine: bool) -> None:
    """Cancel the job with the number JOB (see: edged status), or all of them."""
    scope = _scope(job, everything, mine)
    with state.client() as client:
        reply = client.cancel(job=job or "", scope=scope)
    state.show(reply, lambda: tell(f"cancelled: {', '.join(reply.jobs) or 'nothing was there to cancel'}"))


@click.command()
@which
@client_command
@pass_state
def pause(state: State, job: str | None, everything: bool, mine: bool) -> None:
    """Pause the job JOB (see: edged status), or all of them; others are heard meanwhile."""
    scope = _scope(job, everything, mine)
    with state.client() as client:
        reply = client.pause(job=job or "", scope=scope)
    state.show(reply, lambda: tell(f"paused: {', '.join(reply.jobs) or 'nothing was there to pause'}"))


@click.command()
@which
@client_command
@pass_state
def resume(state: State, job: str | None, everything: bool, mine: bool) -> None:
    """Go on with what was paused, from the beginning of the sentence that was cut."""
    scope = _scope(job, everything, mine)
    with state.client() as client:
        reply = client.resume(job=job or "", scope=scope)
    state.show(reply, lambda: tell(f"goes on: {', '.join(reply.jobs) or 'nothing was paused'}"))


@click.command()
@which
@client_command
@pass_state
def skip(state: State, job: str | None, everything: bool, mine: bool) -> None:
    """End the sentence that is being heard, and go on with the next one."""
    scope = _scope(job, everything, mine)
    with state.client() as client:
        reply = client.skip(job=job or "", scope=scope)
    state.show(reply, lambda: tell(f"skipped: {', '.join(reply.jobs) or 'nothing is being heard'}"))


def _scope(job: str | None, everything: bool, mine: bool) -> Scope:
    if [bool(job), everything, mine].count(True) != 1:
        raise click.UsageError("give one of: a job number, --all, --mine")
    return "all" if everything else "mine" if mine else "job"
