"""How results look: rich tables on a terminal, plain aligned text elsewhere. Main thread.

rich takes about 50 ms to import, so it is imported only where it shows something. Neighbours: the command
modules of `edged.cli`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, TextIO

from edged.cli.exits import complain, tell
from edged.errors import Starting
from edged.escape import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status

    from edged.protocol import AnyEvent


def on_terminal(stream: TextIO | None) -> bool:
    """A standard stream that the caller closed is None."""
    return stream is not None and stream.isatty()


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> None:
    """Rows under headings; on stdout. Here and in `fields` each value stays on its line, and is only seen."""
    rows = [[printable(cell) for cell in row] for row in rows]
    if on_terminal(sys.stdout):
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        drawn = Table(title=title or None, title_justify="left")
        for column in columns:
            drawn.add_column(column)
        for row in rows:
            drawn.add_row(*(Text(cell) for cell in row))
        Console().print(drawn)
        return
    if title:
        tell(title)
    widths = [max(len(row[i]) for row in [columns, *rows]) for i in range(len(columns))]
    for row in [columns, *rows]:
        tell("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def fields(pairs: Sequence[tuple[str, str]]) -> None:
    """Names and values, one a line; on stdout."""
    pairs = [(printable(name), printable(value)) for name, value in pairs]
    width = max(len(name) for name, _ in pairs)
    if on_terminal(sys.stdout):
        from rich.console import Console
        from rich.text import Text

        console = Console()
        for name, value in pairs:
            console.print(Text.assemble((name.ljust(width), "bold"), "  ", value))
        return
    for name, value in pairs:
        tell(f"{name.ljust(width)}  {value}".rstrip())


def duration(seconds: float) -> str:
    """1.8 s, 3 min 20 s, 5 h 12 min, 41 d 3 h."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, hours, days = int(seconds // 60), int(seconds // 3600), int(seconds // 86_400)
    if days:
        return f"{days} d {hours % 24} h"
    if hours:
        return f"{hours} h {minutes % 60} min"
    return f"{minutes} min {int(seconds % 60)} s"


def _stderr() -> Console:
    from rich.console import Console

    return Console(stderr=True)


class Spinner:
    """Shows on a terminal's stderr how a job gets on. Pass `see` as the client's on_event.

    It starts at the first event, when the request is already under way: importing rich delays nothing.
    """

    def __init__(self, wanted: bool) -> None:
        self._wanted = wanted and on_terminal(sys.stderr)
        self._status: Status | None = None

    def see(self, event: AnyEvent) -> None:
        if not self._wanted:
            return
        from edged import protocol

        if isinstance(event, protocol.Accepted):
            self._say(f"waiting, {event.position} ahead" if event.position else "starting")
        elif isinstance(event, protocol.Started):
            self._say(f"speaking ({event.voice})")
        elif isinstance(event, protocol.Failed) and event.code == Starting.code:
            self._say("the daemon is starting")
        elif isinstance(event, protocol.TERMINAL):
            self.close()

    def _say(self, text: str) -> None:
        from rich.text import Text

        shown = Text(printable(text))
        if self._status is None:
            self._status = _stderr().status(shown)
            self._status.start()
        else:
            self._status.update(shown)

    def close(self) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None

    def __enter__(self) -> Spinner:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@contextmanager
def progress_bar() -> Iterator[Callable[[str, float], None]]:
    """A callback for (phase, fraction): a bar on a terminal's stderr, a line for each phase elsewhere."""
    if on_terminal(sys.stderr):
        from rich.progress import Progress

        with Progress(console=_stderr(), transient=True) as bar:
            task = bar.add_task("starting", total=1.0)
            yield lambda phase, fraction: bar.update(task, description=phase, completed=fraction)
        return
    seen: set[str] = set()

    def line(phase: str, fraction: float) -> None:
        if phase not in seen:
            seen.add(phase)
            complain(phase)

    yield line
