"""`edged history` and `edged repeat`: what was heard, and once more. Main thread. Neighbour: `context`."""

from __future__ import annotations

from datetime import datetime

import click

from edged.cli.context import State, client_command, pass_state
from edged.cli.exits import tell
from edged.cli.render import duration, table
from edged.escape import printable


@click.command()
@click.option("--last", type=click.IntRange(1, 1_000), default=20, help="So many jobs.")
@client_command
@pass_state
def history(state: State, last: int) -> None:
    """What was heard on the loudspeaker lately, the last one first.

    Texts are kept only where the configuration has speech.history_texts.
    """
    with state.client() as client:
        reply = client.history(last)

    def text() -> None:
        rows = [
            (
                one.job,
                datetime.fromtimestamp(one.ended_at).strftime("%H:%M:%S"),
                one.priority,
                f"{one.ended} ({one.reason})" if one.reason else one.ended,
                duration(one.heard_s),
                printable(one.client),
                printable(one.text),
            )
            for one in reply.jobs
        ]
        table(("job", "at", "priority", "ended", "heard", "client", "text"), rows)
        if not rows:
            tell("nothing was heard yet")

    state.show(reply, text)


@click.command()
@click.argument("job", default="")
@client_command
@pass_state
def repeat(state: State, job: str) -> None:
    """Speak once more what was heard: JOB (see: edged history), or the last one."""
    with state.client() as client:
        done = client.repeat(job)
    state.show(done, lambda: None)
