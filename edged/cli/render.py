"""How results look: rich tables on a terminal, plain aligned text elsewhere. Main thread.

rich takes about 50 ms to import, so it is imported only where it shows something. Neighbours: the command
modules of `edged.cli`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status

    from edged.protocol import AnyEvent


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> None:
    """Rows under headings; on stdout."""
    if sys.stdout.isatty():
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
        print(title)
    widths = [max(len(row[i]) for row in [columns, *rows]) for i in range(len(columns))]
    for row in [columns, *rows]:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def fields(pairs: Sequence[tuple[str, str]]) -> None:
    """Names and values, one a line; on stdout."""
    width = max(len(name) for name, _ in pairs)
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.text import Text

        console = Console()
        for name, value in pairs:
            console.print(Text.assemble((name.ljust(width), "bold"), "  ", value))
        return
    for name, value in pairs:
        print(f"{name.ljust(width)}  {value}".rstrip())


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
        self._wanted = wanted and sys.stderr.isatty()
        self._status: Status | None = None

    def see(self, event: AnyEvent) -> None:
        if not self._wanted:
            return
        from edged import protocol

        if isinstance(event, protocol.Accepted):
            self._say(f"waiting, {event.position} ahead" if event.position else "starting")
        elif isinstance(event, protocol.Started):
            self._say(f"speaking ({event.voice})")
        elif isinstance(event, protocol.TERMINAL):
            self.close()

    def _say(self, text: str) -> None:
        if self._status is None:
            self._status = _stderr().status(text)
            self._status.start()
        else:
            self._status.update(text)

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
    if sys.stderr.isatty():
        from rich.progress import Progress

        with Progress(console=_stderr(), transient=True) as bar:
            task = bar.add_task("starting", total=1.0)
            yield lambda phase, fraction: bar.update(task, description=phase, completed=fraction)
        return
    seen: set[str] = set()

    def line(phase: str, fraction: float) -> None:
        if phase not in seen:
            seen.add(phase)
            print(f"edged: {phase}", file=sys.stderr)

    yield line
