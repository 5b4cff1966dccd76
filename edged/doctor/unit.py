"""Checks of the systemd service: whether it runs, why not, and whether its limits fit. Main thread.

They ask systemctl and journalctl. Neighbours: `findings` runs them; `redact` says what of a log line may be
shown; `support` packs `properties`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

from edged.doctor import redact
from edged.doctor.findings import Case, Finding
from edged.errors import ConfigError
from edged.notices import message_id

UNIT = "edged.service"
PROPERTIES = (
    "LoadState ActiveState SubState Result NRestarts UnitFileState MemoryMax MemoryCurrent ExecMainStatus"
    " ExecMainCode MainPID StatusText WatchdogUSec FragmentPath DropInPaths User"
).split()
RESULTS = {
    "start-limit-hit": "it failed too often in a row",
    "watchdog": "it missed its watchdog",
    "oom-kill": "it took more memory than allowed",
    "timeout": "it was not ready, or not stopped, in time",
    "signal": "a signal ended it",
}
STATUSES = {"2": "a configuration that cannot be used", "75": "its memory stayed over service.memory_mb"}
PATIENCE_S = 10.0
ERRORS = 20  # lines of the journal that are looked through for one that may be shown
ERROR_CHARS = 400
HEADROOM = 1.25  # of MemoryMax= over service.memory_mb: page cache, and what a reload takes for a moment


def properties() -> dict[str, str]:
    """What systemd says about the service; empty where systemd does not run, or does not answer."""
    if not Path("/run/systemd/system").is_dir() or shutil.which("systemctl") is None:
        return {}
    shown = _told("systemctl", "show", UNIT, f"--property={','.join(PROPERTIES)}")
    return dict(line.split("=", 1) for line in shown.splitlines() if "=" in line)


def service(case: Case) -> Iterator[Finding]:
    found = properties()
    if not found:
        yield Finding("service", "skipped", "systemd does not run here, or does not answer")
        return
    yield judged(found, last_error)
    if found.get("LoadState") != "loaded":
        return
    yield from limited(found, case.settings.service.memory_mb)
    if not explained():
        text = "the journal's message catalog of edged is not installed: journalctl -x explains nothing"
        remedy = "copy systemd/*.catalog to /usr/lib/systemd/catalog, then: " + _root(
            "journalctl --update-catalog"
        )
        yield Finding("log", "warning", text, remedy)


def judged(unit: dict[str, str], why: Callable[[], str] = str) -> Finding:
    """What the properties of the unit mean. why: asked for the last error when it does not run well."""
    state, restarts = unit.get("ActiveState", ""), unit.get("NRestarts", "0")
    told = f"{state} ({unit.get('SubState', '')})"
    read_it = _root("journalctl -u edged -x -e")
    if unit.get("LoadState") != "loaded":
        text = f"{UNIT} is {unit.get('LoadState', 'unknown')}"
        return Finding("service", "skipped", text, "to run it at boot, install the unit: deploy/README.md")
    if state == "failed":
        again = f"{_root('systemctl reset-failed edged')} && {_root('systemctl start edged')}"
        remedy = f"read why ({read_it}), correct it, then: {again}"
        return Finding("service", "failed", f"failed: {_result(unit)}{_because(why())}", remedy)
    if state == "activating":
        text = f"{told}{_because(why() if restarts not in ('', '0') else '')}"
        return Finding("service", "warning", text, f"wait, or read what it does: {read_it}")
    if state not in ("active", "reloading"):
        return Finding("service", "warning", told, _root("systemctl start edged"))
    if unit.get("UnitFileState") not in ("enabled", "static", "indirect", "linked"):
        remedy = _root("systemctl enable edged")
        return Finding("service", "warning", f"{told}, not started at boot", remedy)
    if restarts not in ("", "0"):
        text = f"{told}, restarted {restarts} times by itself{_because(why())}"
        return Finding("service", "warning", text, f"read why: {read_it}")
    return Finding("service", "ok", told)


def limited(unit: dict[str, str], memory_mb: int) -> Iterator[Finding]:
    """The kernel's limit is a backstop behind edged's own: below it, it kills before edged can act."""
    limit = unit.get("MemoryMax", "")
    if limit.isdecimal() and int(limit) / 1e6 < memory_mb:
        text = f"MemoryMax= of the unit is {int(limit) / 1e6:.0f} MB, service.memory_mb is {memory_mb}"
        wanted = f"MemoryMax={memory_mb * HEADROOM / 1.048576:.0f}M"  # systemd's M is a MiB
        remedy = f"{_root('systemctl edit edged')}, with the lines [Service] and {wanted}; then restart it"
        yield Finding("service's limit", "warning", f"{text}: it would be killed first", remedy)


def explained() -> bool:
    """Whether journald's catalog knows the codes of edged."""
    return message_id(ConfigError.code) in _told("journalctl", "--list-catalog")


def last_error() -> str:
    """The latest line of the service from `error` on that may be shown; "" when there is none, or this user
    may not read the journal."""
    chosen = ("-u", UNIT, "-p", "err", "-n", str(ERRORS), "-o", "json", "--no-pager", "-q")
    for line in reversed(_told("journalctl", *chosen).splitlines()):
        raw = json.loads(line)
        entry = redact.entry(raw) if raw.get("LOGGER") else None
        if entry is not None:
            return entry["MESSAGE"].partition("\n")[0][:ERROR_CHARS]
    return ""


def forbidden(path: Path) -> str:
    """The service's user when that may not read the file. Only root can find out; "" otherwise."""
    user = properties().get("User", "") if os.geteuid() == 0 else ""
    if not user or shutil.which("runuser") is None:
        return ""
    command = ["runuser", "-u", user, "--", "test", "-r", str(path)]
    return user if subprocess.run(command, capture_output=True, check=False).returncode == 1 else ""


def _result(unit: dict[str, str]) -> str:
    result, status = unit.get("Result", ""), unit.get("ExecMainStatus", "")
    if result == "exit-code":
        meaning = STATUSES.get(status, "")
        return f"it ended with exit status {status}{f', {meaning}' if meaning else ''}"
    return RESULTS.get(result, f"result {result}")


def _because(reason: str) -> str:
    return f"; its last error: {reason}" if reason else ""


def _root(command: str) -> str:
    """As this user has to type it."""
    return command if os.geteuid() == 0 else f"sudo {command}"


def _told(*command: str) -> str:
    """What a command prints; "" when it is not there or hangs."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout
