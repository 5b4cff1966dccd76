"""`edged top`: the live jobs with the phase of each, and memory against the budget, again and again.

Main thread. On a terminal it is drawn anew each time, elsewhere each time adds a block of lines; it outlives
the daemon. Neighbours: `watch` has the asking, the keys and the sparklines.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from edged.cli.context import Number, State, client_command, pass_state
from edged.cli.exits import document, flush_stdout, tell, write_json
from edged.cli.render import duration, on_terminal, table
from edged.cli.watch import Asker, History, keys
from edged.escape import printable

if TYPE_CHECKING:
    from rich.console import RenderableType

    from edged.client import Client
    from edged.protocol import JobInfo, StatsReply, StatusReply

COLUMNS = ("job", "kind", "phase", "voice", "priority", "age", "client")
FIGURES = (
    "first audio ms p50",
    "real-time factor",
    "steps/s",
    "rows/step",
    "processor %",
    "failed",
    "refused",
)
BAR = 30  # characters
COLOURS = {"high": "yellow", "full": "red"}  # by the state of the memory

Answer = tuple["StatusReply", "StatsReply"]


@click.command()
@click.option(
    "--interval",
    type=Number(0.1, 3600),
    default=1.0,
    metavar="SECONDS",
    help="Between two looks (default 1).",
)
@click.option("--once", is_flag=True, help="One look, then end.")
@client_command
@pass_state
def top(state: State, interval: float, once: bool) -> None:
    """Live jobs with the phase of each, and memory against the budget."""
    if once:
        with state.client() as client:
            _print(state, _ask(client), History())
        return
    asker = Asker(state)
    try:
        if state.as_json or not on_terminal(sys.stdout):
            _lines(state, asker, interval)
        else:
            _live(asker, interval)
    except KeyboardInterrupt:
        pass
    finally:
        asker.close()


def _ask(client: Client) -> Answer:
    return client.status(), client.stats()


def _lines(state: State, asker: Asker, interval_s: float) -> None:
    history = History()
    while True:
        answer = asker.ask(_ask)
        if answer is not None:
            _print(state, answer, history)
        elif not state.as_json:
            tell("no daemon")
        flush_stdout()
        time.sleep(interval_s)


def _print(state: State, answer: Answer, history: History) -> None:
    status, stats = answer
    history.add(stats)
    if state.as_json:
        import msgspec

        write_json(document({"status": msgspec.to_builtins(status), "stats": msgspec.to_builtins(stats)}))
        return
    tell(_heading(status))
    tell(_memory(status))
    tell("  ".join(f"{name} {value}" for name, value, _ in _figures(history)))
    if status.jobs:
        table(COLUMNS, list(_rows(status.jobs)))


def _live(asker: Asker, interval_s: float) -> None:
    from rich.console import Console
    from rich.live import Live

    history = History()
    with keys() as pressed, Live(console=Console(), screen=True, auto_refresh=False) as live:
        while True:
            answer = asker.ask(_ask)
            if answer is not None:
                history.add(answer[1])
            live.update(_drawn(answer, history), refresh=True)
            if pressed(interval_s) in ("q", "Q"):
                return


def _drawn(answer: Answer | None, history: History) -> RenderableType:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    if answer is None:
        return Text("edged: no daemon (q quits)")
    status = answer[0]
    colour = COLOURS.get(status.memory_state, "green")
    figures = Table(box=None, show_header=False)
    for name, value, bars in _figures(history):
        figures.add_row(name, Text(value, justify="right"), bars)
    jobs = Table(*COLUMNS, title=f"{len(status.jobs)} jobs", title_justify="left", caption="q quits")
    for row in _rows(status.jobs):
        jobs.add_row(*(Text(cell) for cell in row))
    return Group(Text(_heading(status), "bold"), Text(_memory(status), colour), figures, jobs)


def _heading(status: StatusReply) -> str:
    sound = status.audio_device or "no loudspeaker"
    text = f"edged {status.version}: {status.state}, running for {duration(status.uptime_s)}, {sound}"
    return printable(text)


def _memory(status: StatusReply) -> str:
    """`memory 643 of 1500 MB [#############.................] 43 %`"""
    share = _share(status)
    filled = min(BAR, round(share * BAR))
    bar = "#" * filled + "." * (BAR - filled)
    told = {"high": ", high", "full": ", new jobs are refused"}.get(status.memory_state, "")
    return f"memory {_used_mb(status):.0f} of {status.budget_mb:.0f} MB [{bar}] {share:.0%}{told}"


def _used_mb(status: StatusReply) -> float:
    """What the budget is held against; the resident size until the watchdog has looked."""
    return status.used_mb or status.rss_mb


def _share(status: StatusReply) -> float:
    return _used_mb(status) / status.budget_mb if status.budget_mb else 0.0


def _figures(history: History) -> Iterator[tuple[str, str, str]]:
    return (line for line in history.lines() if line[0] in FIGURES)


def _rows(jobs: list[JobInfo]) -> Iterator[tuple[str, ...]]:
    for job in jobs:
        row = (job.job, job.kind, job.phase, job.voice, job.priority, duration(job.age_s), job.client)
        yield tuple(map(printable, row))
