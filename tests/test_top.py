"""`edged top`: live jobs with how far they are, on a real terminal and without one."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

from edged.client import Client
from tests.daemon import Daemon, running, send
from tests.test_watch import Terminal

TOP = [sys.executable, "-m", "edged", "top"]
LONG = "This sentence is long enough to keep the voice busy. " * 40


def once(daemon: Daemon, *args: str) -> str:
    command = [*TOP, "--once", "--endpoint", daemon.endpoint, *args]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout


def test_it_shows_jobs_and_memory_against_the_budget(slow_bundle: Path) -> None:
    with running(slow_bundle, engine={"threads": 1}, service={"memory_mb": 1000}) as daemon:
        with daemon.socket() as socket, Client(daemon.endpoint) as client:
            for _ in range(2):
                send(socket, op="synthesize", text=LONG, format="wav", client="door")
            until = time.monotonic() + 10
            while {job.phase for job in client.status().jobs} < {"synthesis"}:
                assert time.monotonic() < until
            text, told = once(daemon), json.loads(once(daemon, "--json"))
        heading, memory, figures, columns, *jobs = text.splitlines()
        assert heading.startswith("edged ")
        assert "of 1000 MB [" in memory
        assert "steps/s" in figures
        assert columns.split() == ["job", "kind", "phase", "voice", "priority", "age", "client"]
        assert len(jobs) == 2
        assert all("door" in job for job in jobs)
        phases = [job["phase"] for job in told["status"]["jobs"]]
        assert "synthesis" in phases
        assert set(phases) <= {"text", "waiting", "synthesis", "delivery"}
        assert LONG[:20] not in text
        assert told["status"]["budget_mb"] == 1000


def test_on_a_terminal_q_ends_it(daemon: Daemon) -> None:
    shown = Terminal(*TOP, "--interval", "0.1", "--endpoint", daemon.endpoint)
    try:
        assert "MB [" in shown.wait_for(r"memory (.|\n)*0 jobs(.|\n)*q quits")
        shown.press(b"q")
        assert shown.end() == 0
        assert "Traceback" not in shown.shown
    finally:
        shown.close()


def test_without_a_daemon(tmp_path: Path) -> None:
    command = [*TOP, "--once", "--endpoint", f"ipc://{tmp_path}/nobody.sock"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 3
    assert "no daemon" in done.stderr


FOREIGN = "\x1b]0;x\x07\n\u202e\x9b2Jdoor"  # sets a title, breaks the line, turns the direction, clears
SHOWN = r"\x1b]0;x\x07\n\u202e\x9b2Jdoor"


def test_what_a_client_names_itself_does_nothing_to_the_terminal(slow_bundle: Path) -> None:
    with running(slow_bundle, engine={"threads": 1}) as daemon, daemon.socket() as socket:
        for _ in range(8):  # the last ones wait for long
            send(socket, op="synthesize", text=LONG, format="wav", client=FOREIGN)
        commands = {name: [sys.executable, "-m", "edged", *name.split()] for name in ("status", "top --once")}
        commands = {name: [*command, "--endpoint", daemon.endpoint] for name, command in commands.items()}
        for command in commands.values():
            plain = subprocess.run(command, capture_output=True, timeout=60, check=True).stdout.decode()
            assert SHOWN in plain
            _harmless(plain)
        for name, command in [*commands.items(), ("top", [*TOP, "--endpoint", daemon.endpoint])]:
            shown = Terminal(*command)
            try:
                # The table may have broken the name into two lines.
                text = shown.wait_for(r"client(.|\n)*x1b\](.|\n)*(q quits|╯|┘)")
                if name == "top":
                    shown.press(b"q")
                assert shown.end() == 0
                _harmless(text)
            finally:
                shown.close()


def _harmless(text: str) -> None:
    for part in ("\x1b]", "\x07", "\u202e", "\x9b"):
        assert part not in text, ascii(text)
