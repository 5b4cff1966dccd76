"""The support archive: whole, private, and free of spoken texts and secrets."""

from __future__ import annotations

import json
import logging
import os
import stat
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edged import log
from edged.doctor import redact
from edged.settings import Listen, Settings
from tests.daemon import Daemon
from tests.pulse import wait_until

SECRET = "melancholy pelican"  # what must not get out


def archive(path: Path, daemon: Daemon, *args: str, **env: str) -> tuple[int, dict[str, bytes]]:
    command = [sys.executable, "-m", "edged", "doctor", "--json", "--config", str(daemon.config)]
    command += ["--bundle", str(path), *args]
    done = subprocess.run(command, capture_output=True, env={**os.environ, **env}, timeout=60, check=False)
    assert b"Traceback" not in done.stderr, done.stderr
    with tarfile.open(path) as packed:
        members = packed.getmembers()
        assert all(member.name.startswith("edged-support/") for member in members)
        read = {m.name.partition("/")[2]: packed.extractfile(m).read() for m in members}  # type: ignore[union-attr]
    assert set(json.loads(done.stdout)["files"]) == set(read)
    return done.returncode, read


def test_the_archive_of_a_running_daemon(daemon: Daemon, tmp_path: Path) -> None:
    daemon.request({"op": "synthesize", "text": f"{SECRET} one", "format": "wav"})
    wait_until(lambda: "job done" in daemon.log, what="its line in the log, which a thread of its own writes")
    lines = [as_journald(line) for line in [*daemon.log.splitlines(), f"12:00:00.000 debug text {SECRET}"]]
    script = tmp_path / "bin" / "journalctl"  # there is no journald to read from
    script.parent.mkdir()
    (tmp_path / "lines").write_text("".join(json.dumps(line) + "\n" for line in lines))
    script.write_text(f"#!/bin/sh\ncat {tmp_path}/lines\n")
    script.chmod(0o755)
    path = tmp_path / "out.tar.gz"
    code, files = archive(path, daemon, PATH=f"{script.parent}:{os.environ['PATH']}")
    assert code == 0
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not any(SECRET.encode() in data for data in files.values())
    assert b"job done" in files["journal.jsonl"]
    assert json.loads(files["status.json"])["memory"]
    assert json.loads(files["stats.json"])["accepted"] >= 1
    assert json.loads(files["settings.json"])["audio"]["enabled"] is False
    assert json.loads(files["versions.json"])["packages"]["onnxruntime"]
    assert {f["name"] for f in json.loads(files["doctor.json"])} >= {"daemon", "speech"}
    assert not [left for left in os.listdir(tmp_path) if left.startswith(".")]


def as_journald(line: str) -> dict[str, str]:
    return {"_TRANSPORT": "stdout", "PRIORITY": "6", "SYSLOG_IDENTIFIER": "edged", "MESSAGE": line}


def test_without_a_journal_or_a_daemon_the_rest_is_packed(daemon: Daemon, tmp_path: Path) -> None:
    path = tmp_path / "out.tar.gz"
    nobody = f"ipc://{tmp_path}/nobody.sock"
    code, files = archive(path, daemon, "--endpoint", nobody, PATH="/nonexistent")
    assert code == 1
    notes = files["notes.txt"].decode()
    assert "journal.jsonl: " in notes
    assert "status.json: no daemon" in notes
    assert "settings.json" in files


def test_an_archive_that_cannot_be_written_is_told(daemon: Daemon, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "edged", "doctor", "--config", str(daemon.config)]
    command += ["--bundle", str(tmp_path / "missing" / "out.tar.gz")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "edged: error [system]: No such file or directory" in done.stderr


def test_where_keys_are_is_not_told() -> None:
    listen = Listen(tcp="tcp://0.0.0.0:5555", curve_secret=f"/etc/{SECRET}", curve_clients=f"/{SECRET}")
    told = redact.settings(Settings(listen=listen))
    assert SECRET not in json.dumps(told)
    assert told["listen"]["tcp"] == "tcp://0.0.0.0:5555"
    assert redact.settings(Settings())["listen"]["curve_secret"] == ""


# -- log lines ----------------------------------------------------------------------------------


def fault(text: str) -> str:
    """What edged's log writes of an exception that quotes a text, in source and message."""
    try:
        exec(f"raise KeyError({text!r} + chr(10) + {text!r})")
    except KeyError as exc:
        record = logging.LogRecord("edged.x", 40, __file__, 1, "synthesis failed", (), (KeyError, exc, None))
        return log.body(record)
    raise AssertionError


@pytest.mark.parametrize(
    "raw",
    [
        {"LOGGER": "edged.voices", "PRIORITY": "7", "MESSAGE": SECRET},
        {"LOGGER": "hibari", "PRIORITY": "4", "MESSAGE": SECRET},
        {"LOGGER": "py.warnings", "PRIORITY": "4", "MESSAGE": SECRET},
        {"LOGGER": "edgedness", "PRIORITY": "4", "MESSAGE": SECRET},
        {"LOGGER": "edged.worker", "PRIORITY": "3", "MESSAGE": fault(SECRET)},
        {"_TRANSPORT": "stdout", "MESSAGE": f"12:00:00.000 debug job a: {SECRET}"},
        {"_TRANSPORT": "stdout", "MESSAGE": f"    | KeyError: '{SECRET}'"},
        {"_TRANSPORT": "stdout", "MESSAGE": f"    |     say('{SECRET}')"},
        {"_TRANSPORT": "stdout", "MESSAGE": SECRET},
        {"_TRANSPORT": "stdout", "PRIORITY": "not a number", "MESSAGE": f"    | {SECRET}"},
        {"_TRANSPORT": "journal", "MESSAGE": SECRET, "CODE_ARGS": SECRET},
        {"LOGGER": "edged.x", "MESSAGE": list(SECRET.encode())},
        {"LOGGER": "edged.x", "MESSAGE": None, "_CMDLINE": SECRET},
    ],
)
def test_texts_are_removed(raw: dict[str, Any]) -> None:
    assert SECRET not in json.dumps(redact.entry(raw))


def test_what_helps_is_kept() -> None:
    kept = redact.entry(
        {
            "LOGGER": "edged.worker",
            "PRIORITY": "3",
            "EDGED_CODE": "internal",
            "EDGED_JOB": "a-1",
            "_HOSTNAME": "box",
            "MESSAGE": fault("x"),
        }
    )
    assert kept is not None
    assert (kept["EDGED_CODE"], kept["EDGED_JOB"]) == ("internal", "a-1")
    assert "_HOSTNAME" not in kept
    lines = kept["MESSAGE"].splitlines()
    assert lines[0] == "synthesis failed"
    assert any('File "' in line for line in lines)
    assert "    | KeyError: (removed)" in lines
    for text in ("12:00:00.000 warn  no loudspeaker", "Fatal Python error: Segmentation fault"):
        told = redact.entry({"_TRANSPORT": "stdout", "MESSAGE": text})
        assert told is not None
        assert told["MESSAGE"] == text
    ended = {
        "_TRANSPORT": "journal",
        "SYSLOG_IDENTIFIER": "systemd",
        "UNIT": "edged.service",
        "MESSAGE": "Started.",
    }
    assert redact.entry(ended) == ended


@given(st.text(alphabet="ab :\n'\"|().,", max_size=60))
def test_no_exception_text_survives(text: str) -> None:
    marked = f"{text}{SECRET}{text}"
    assert SECRET not in redact.traceback(fault(marked))
