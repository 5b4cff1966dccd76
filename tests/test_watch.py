"""`edged stats --watch`: on a real terminal and without one, over a restart of the daemon."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edged.cli.watch import BARS, FIGURES, HISTORY, History, sparkline
from tests.daemon import Daemon, running
from tests.test_metrics import reply

WATCH = [sys.executable, "-m", "edged", "stats", "--watch", "--interval", "0.1"]


@given(st.lists(st.floats(0, 1e9), max_size=HISTORY))
def test_a_sparkline_has_a_bar_a_value_and_keeps_their_order(values: list[float]) -> None:
    bars = sparkline(values)
    assert len(bars) == len(values)
    assert set(bars) <= set(BARS)
    drawn = [bar for _, bar in sorted(zip(values, bars, strict=True))]
    assert drawn == sorted(drawn)
    if any(values):
        assert bars[values.index(max(values))] == BARS[-1]


def test_counters_are_shown_as_rates_also_over_a_restart() -> None:
    history = History()
    for uptime_s, done in ((10.0, 5), (12.0, 15), (1.0, 3)):
        history.add(reply(uptime_s=uptime_s, done=done))
    assert list(history.values["jobs/s"]) == [0.5, 5.0, 3.0]
    assert len(history.lines()) == len(FIGURES)


class Terminal:
    """A process whose three streams are a pseudo-terminal of 120 x 40."""

    def __init__(self, *command: str) -> None:
        self.shown = ""
        self._master, slave = pty.openpty()
        env = {**os.environ, "TERM": "xterm", "COLUMNS": "120", "LINES": "40"}
        self.process = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, env=env, start_new_session=True
        )
        os.close(slave)

    def wait_for(self, pattern: str, within_s: float = 20.0) -> str:
        """Until the pattern was shown, from here on."""
        self.shown = ""
        until = time.monotonic() + within_s
        while not re.search(pattern, self.shown):
            assert time.monotonic() < until, self.shown
            self._read()
        return self.shown

    def _read(self) -> None:
        if select.select([self._master], [], [], 0.1)[0]:
            try:
                self.shown += os.read(self._master, 65536).decode(errors="replace")
            except OSError:  # the other side is closed
                time.sleep(0.05)

    def end(self) -> int:
        until = time.monotonic() + 20.0
        while self.process.poll() is None:
            assert time.monotonic() < until
            self._read()  # or it could not write its last words
        return self.process.returncode

    def press(self, key: bytes) -> None:
        os.write(self._master, key)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._master)


@contextmanager
def terminal(daemon: Daemon) -> Iterator[Terminal]:
    shown = Terminal(*WATCH, "--endpoint", daemon.endpoint)
    try:
        yield shown
    finally:
        shown.close()


def test_on_a_terminal_it_lives_through_a_restart_and_q_ends_it(tone_bundle: Path) -> None:
    with running(tone_bundle) as daemon, terminal(daemon) as shown:
        first = shown.wait_for("running for(.|\n)*memory MB")
        assert re.search(f"[{BARS}]", first)
        assert "q quits" in shown.wait_for("q quits")
        daemon.stop()
        shown.wait_for("no daemon")
        daemon.start()
        shown.wait_for("running for")
        shown.press(b"x")
        shown.wait_for("running for")
        shown.press(b"q")
        assert shown.end() == 0
        assert "Traceback" not in shown.shown


def test_ctrl_c_ends_it_quietly(daemon: Daemon) -> None:
    with terminal(daemon) as shown:
        shown.wait_for("running for")
        shown.process.send_signal(signal.SIGINT)
        assert shown.end() == 0
        assert "Traceback" not in shown.shown


@pytest.mark.parametrize("as_json", [False, True])
def test_without_a_terminal_it_writes_lines(daemon: Daemon, as_json: bool) -> None:
    command = [*WATCH, "--endpoint", daemon.endpoint, *(["--json"] if as_json else [])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            lines = [process.stdout.readline() for _ in range(3)]
        finally:
            process.send_signal(signal.SIGINT)
        assert process.wait(10) == 0
    if as_json:
        assert [json.loads(line)["event"] for line in lines] == ["stats_reply"] * 3
    else:
        assert all("steps/s" in line and not set(line) & set(BARS) for line in lines)
