"""`edged stats --watch`: the figures again and again, as a live table with the last minute as sparklines.

Main thread. On a terminal the table is drawn anew each time (rich), elsewhere each time adds a line. It
outlives the daemon: while none answers it says so, and goes on when one does. Neighbours: `info` (the
command), `context` (the client), `top` (its other user).
"""

from __future__ import annotations

import os
import select
import sys
import termios
import time
import tty
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from edged.cli.context import State
from edged.cli.exits import flush_stdout, tell
from edged.cli.render import duration, on_terminal
from edged.errors import TransportError

if TYPE_CHECKING:
    from rich.table import Table

    from edged.client import Client
    from edged.protocol import StatsReply

T = TypeVar("T")
BARS = "▁▂▃▄▅▆▇█"
HISTORY = 60  # values in a sparkline
ANSWER_S = 2.0  # a daemon that is silent for longer is shown as absent; it is asked again


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table. rate: the value counts up, and what it grew by in a second is shown."""

    name: str
    value: Callable[[StatsReply], float]
    shown: str = "{:.0f}"
    rate: bool = False


FIGURES = (
    Figure("running", lambda s: s.running),
    Figure("queued", lambda s: s.queued),
    Figure("jobs/s", lambda s: s.done, "{:.2f}", rate=True),
    Figure("steps/s", lambda s: s.steps_per_s, "{:.1f}"),
    Figure("rows/step", lambda s: s.rows_per_step, "{:.2f}"),
    Figure("step ms", lambda s: s.step_ms.p50, "{:.2f}"),
    Figure("slot wait ms p90", lambda s: s.slot_wait_ms.p90, "{:.1f}"),
    Figure("first audio ms p50", lambda s: s.first_audio_ms.p50),
    Figure("first audio ms p99", lambda s: s.first_audio_ms.p99),
    Figure("real-time factor", lambda s: s.rtf.p50, "{:.3f}"),
    Figure("audio s/s", lambda s: s.audio_s, "{:.2f}", rate=True),
    Figure("processor %", lambda s: 100 * s.cpu_s, "{:.0f}", rate=True),
    Figure("underruns", lambda s: s.underruns + s.stream_underruns),
    Figure("cancelled", lambda s: s.cancelled),
    Figure("failed", lambda s: sum(s.failed.values())),
    Figure("refused", lambda s: sum(s.rejected.values())),
    Figure("memory MB", lambda s: s.rss_mb, "{:.1f}"),
)


def sparkline(values: list[float]) -> str:
    """From nothing to the highest of them; a line of zeros lies on the floor."""
    top = max(values, default=0.0)
    if top <= 0.0:
        return BARS[0] * len(values)
    return "".join(BARS[min(len(BARS) - 1, int(max(0.0, v) / top * len(BARS)))] for v in values)


class History:
    """The last values of every figure."""

    def __init__(self) -> None:
        self.values: dict[str, deque[float]] = {f.name: deque(maxlen=HISTORY) for f in FIGURES}
        self._last: StatsReply | None = None

    def add(self, reply: StatsReply) -> None:
        last = self._last
        if last is not None and reply.uptime_s < last.uptime_s:  # another daemon: it counts from zero
            last = None
        for figure in FIGURES:
            value = figure.value(reply)
            if figure.rate:
                span = reply.uptime_s - last.uptime_s if last else reply.uptime_s
                value = (value - (figure.value(last) if last else 0.0)) / max(span, 1e-3)
            self.values[figure.name].append(value)
        self._last = reply

    def lines(self) -> list[tuple[str, str, str]]:
        """Name, latest value, sparkline; empty before the first answer."""
        return [
            (f.name, f.shown.format(values[-1]), sparkline(list(values)))
            for f in FIGURES
            if (values := self.values[f.name])
        ]


class Asker:
    """Asks the daemon and never fails: without one there is no answer."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._state.timeout_s = min(state.timeout_s, ANSWER_S)
        self._client: Client | None = None

    def ask(self, question: Callable[[Client], T]) -> T | None:
        try:
            if self._client is None:
                self._client = self._state.client()
            return question(self._client)
        except TransportError:
            self.close()  # the next one looks for the daemon anew
            return None

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None


def watch(state: State, interval_s: float) -> None:
    """Until q or Ctrl-C."""
    asker = Asker(state)
    try:
        if state.as_json or not on_terminal(sys.stdout):
            _lines(state, asker, interval_s)
        else:
            _live(asker, interval_s)
    except KeyboardInterrupt:
        pass
    finally:
        asker.close()


def _lines(state: State, asker: Asker, interval_s: float) -> None:
    """One line each time: JSON, or every figure with its name."""
    history = History()
    while True:
        reply = asker.ask(lambda client: client.stats())
        if reply is None:
            if not state.as_json:
                tell("no daemon")
        elif state.as_json:
            state.show(reply)
        else:
            history.add(reply)
            tell("  ".join(f"{name} {value}" for name, value, _ in history.lines()))
        flush_stdout()
        time.sleep(interval_s)


def _live(asker: Asker, interval_s: float) -> None:
    from rich.console import Console
    from rich.live import Live

    history = History()
    with keys() as pressed, Live(console=Console(), screen=True, auto_refresh=False) as live:
        while True:
            reply = asker.ask(lambda client: client.stats())
            if reply is not None:
                history.add(reply)
            live.update(_table(history, reply, interval_s), refresh=True)
            if pressed(interval_s) in ("q", "Q"):
                return


def _table(history: History, reply: StatsReply | None, interval_s: float) -> Table:
    from rich.table import Table

    state = f"running for {duration(reply.uptime_s)}" if reply else "no daemon"
    drawn = Table(title=f"edged: {state}", title_justify="left", caption=f"every {interval_s:g} s; q quits")
    drawn.add_column("figure")
    drawn.add_column("now", justify="right")
    drawn.add_column("before", no_wrap=True, overflow="crop")
    for line in history.lines():
        drawn.add_row(*line)
    return drawn


@contextmanager
def keys() -> Iterator[Callable[[float], str]]:
    """A function that waits for a key, and no longer than so many seconds; "" when there was none."""

    def pressed(seconds: float) -> str:
        if not on_terminal(sys.stdin):
            time.sleep(seconds)
            return ""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if select.select([fd], [], [], left)[0]:
                return os.read(fd, 1).decode(errors="replace")
        return ""

    if not on_terminal(sys.stdin):
        yield pressed
        return
    fd = sys.stdin.fileno()
    before = termios.tcgetattr(fd)
    tty.setcbreak(fd)  # keys arrive without the return key; Ctrl-C still interrupts
    try:
        yield pressed
    finally:
        termios.tcsetattr(fd, termios.TCSADRAIN, before)
