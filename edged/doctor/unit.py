"""Checks of the systemd service: whether it runs, why not, and whether its limits fit. Main thread.

They ask systemctl and journalctl. Neighbours: `findings` runs them; `redact` says what of a log line may be
shown; `support` packs `properties`.
"""

from __future__ import annotations

import grp
import json
import os
import pwd
import shutil
import signal
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
    " ExecMainCode MainPID StatusText WatchdogUSec FragmentPath DropInPaths User Group"
    " SupplementaryGroups InvocationID"
).split()
RESULTS = {
    "start-limit-hit": "it failed too often in a row",
    "watchdog": "it missed its watchdog",
    "oom-kill": "it took more memory than allowed",
    "timeout": "it was not ready, or not stopped, in time",
    "signal": "a signal ended it",
}
STATUSES = {
    "2": "a configuration that cannot be used",
    "5": "an address of listen.tcp that it could not have",
    "75": "its memory stayed over service.memory_mb",
    # From 200 on it is systemd that could not start it: systemd.exec(5) has the list.
    "203": "its program is not there or cannot be run (ExecStart=)",
    "216": "a group of the unit does not exist (Group=, SupplementaryGroups=)",
    "217": "the user of the unit does not exist (User=): systemd-sysusers, or correct the drop-in",
    "226": "a directory that the unit names is not there (BindPaths=, ReadWritePaths=)",
    "233": "its directory in /run cannot be made",
    "238": "its directory in /var/lib cannot be made",
}
CRASHES = {  # signals
    "SIGSEGV": "a crash in native code: a library, a sound driver, or the bundle's decoder",
    "SIGBUS": "a file that it had open was cut, or the disk is faulty",
    "SIGILL": "native code that this processor cannot run: build the bundle on this machine",
    "SIGABRT": "a library gave up, or it missed its watchdog",
    "SIGKILL": "killed, perhaps because the machine ran out of memory",
}
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
    yield judged(found, lambda: last_error(found))
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


def last_error(unit: dict[str, str]) -> str:
    """The latest line from `error` on that may be shown, of the service's last start; of one that runs
    again, of the starts before it since the boot. "" when there is none, or this user may not read the
    journal."""
    start = unit.get("InvocationID", "")
    found = _last_error(f"_SYSTEMD_INVOCATION_ID={start}") if start else ""
    if found or (start and unit.get("ActiveState") == "failed"):
        return found
    return _last_error("-b", "-u", UNIT)


def _last_error(*which: str) -> str:
    chosen = ("-p", "err", "-n", str(ERRORS), "-o", "json", "--no-pager", "-q", *which)
    for line in reversed(_told("journalctl", *chosen).splitlines()):
        raw = json.loads(line)
        entry = redact.entry(raw) if raw.get("LOGGER") else None
        if entry is not None:
            return entry["MESSAGE"].partition("\n")[0][:ERROR_CHARS]
    return ""


def forbidden(path: Path) -> str:
    """The service's user when that may not read the file. Only root can find out; "" otherwise."""
    told = properties() if os.geteuid() == 0 else {}
    become = _identity(told)
    if not become or shutil.which("setpriv") is None:
        return ""
    command = [*become, "test", "-r", str(path)]
    refused = subprocess.run(command, capture_output=True, check=False).returncode == 1
    return told["User"] if refused else ""


def _identity(unit: dict[str, str]) -> list[str]:
    """The command that becomes who the service is: names or numbers, as the unit has them. Empty where they
    do not exist."""
    user, groups = unit.get("User", ""), unit.get("SupplementaryGroups", "").split()
    if not user:
        return []
    try:
        entry = pwd.getpwuid(int(user)) if user.isdecimal() else pwd.getpwnam(user)
        own = _gid(unit["Group"]) if unit.get("Group") else entry.pw_gid
        all_groups = {*os.getgrouplist(entry.pw_name, own), *map(_gid, groups)}
    except KeyError:
        return []
    numbers = ",".join(map(str, sorted(all_groups)))
    return ["setpriv", f"--reuid={entry.pw_uid}", f"--regid={own}", f"--groups={numbers}", "--"]


def _gid(group: str) -> int:
    return int(group) if group.isdecimal() else grp.getgrnam(group).gr_gid


def _result(unit: dict[str, str]) -> str:
    result, status = unit.get("Result", ""), unit.get("ExecMainStatus", "")
    if result in ("signal", "core-dump") and status.isdecimal():
        try:
            name = signal.Signals(int(status)).name
        except ValueError:  # a real-time signal
            name = f"signal {status}"
        return f"it ended by {name}{f', {CRASHES[name]}' if name in CRASHES else ''}"
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
