"""What may leave the machine: log lines without spoken text, settings without secrets. Pure functions.

Spoken text can be in lines at debug level, in what libraries write, and in the message of an exception at
the end of a traceback. These are left out; everything else of edged's own lines holds none, by the rules of
`edged.log`. Neighbour: `support`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from edged.settings import Settings

REMOVED = "(removed)"
DEBUG = 7  # syslog's number
SECRET = ("curve_secret", "curve_clients")
KEPT = (
    "__REALTIME_TIMESTAMP __MONOTONIC_TIMESTAMP _BOOT_ID _PID _TRANSPORT PRIORITY SYSLOG_IDENTIFIER"
    " MESSAGE_ID LOGGER THREAD_NAME CODE_FILE CODE_LINE CODE_FUNC UNIT JOB_RESULT EXIT_CODE EXIT_STATUS"
).split()
_LINE = re.compile(r"\d\d:\d\d:\d\d\.\d{3} (\w+) +")  # as edged.log writes it where there is no journal
_FRAME = re.compile(r'\s*(Traceback \(most recent call last\):|File "[^"]*", line \d+, in \S+)')
_FAULT = re.compile(r"([A-Za-z_][\w.]*)(: .*)?")  # the last line of a traceback: Type, or Type: message
_NATIVE = re.compile(r'(Fatal Python error: [\w ]+|Current thread |Thread 0x|  File "|Segmentation fault)')
TRACE = "    | "


def settings(found: Settings) -> dict[str, Any]:
    """All settings as plain values; where keys are is not told, only that there are some."""
    told: dict[str, Any] = msgspec.to_builtins(found)
    for name in SECRET:
        if told["listen"][name]:
            told["listen"][name] = REMOVED
    return told


def entry(raw: Mapping[str, Any]) -> dict[str, str] | None:
    """One entry of `journalctl -o json`; None when nothing of it may be shown."""
    try:
        priority = int(raw.get("PRIORITY", 6))
    except (TypeError, ValueError):
        priority = 6
    text = raw.get("MESSAGE")
    message = _message(raw, text) if isinstance(text, str) else REMOVED  # bytes come as a list of numbers
    if priority >= DEBUG or message is None:
        return None
    names = [name for name in raw if name in KEPT or name.startswith("EDGED_")]
    return {name: str(raw[name]) for name in names} | {"MESSAGE": message}


def _message(raw: Mapping[str, Any], text: str) -> str | None:
    """None: a line at debug level."""
    logger = str(raw.get("LOGGER", ""))
    if logger:  # our journal handler wrote it
        return traceback(text) if f"{logger}.".startswith("edged.") else f"{REMOVED} by {logger}"
    if raw.get("_TRANSPORT") != "stdout":  # systemd's own, about the unit
        return text if str(raw.get("SYSLOG_IDENTIFIER", "")) in ("systemd", "systemd-coredump") else REMOVED
    if line := _LINE.match(text):
        return None if line[1] == "debug" else text
    if text.startswith(TRACE):
        return traceback(text)
    return text if _NATIVE.match(text) else REMOVED


def traceback(text: str) -> str:
    """Of a traceback only where it was and the type of the fault: source and message may quote the text."""
    kept = []
    for line in text.split("\n"):
        if not line.startswith(TRACE):
            kept.append(line)
        elif frame := _FRAME.match(line, len(TRACE)):
            kept.append(TRACE + frame[0])
        elif fault := _FAULT.fullmatch(line, len(TRACE)):
            kept.append(TRACE + fault[1] + (f": {REMOVED}" if fault[2] else ""))
    return "\n".join(kept)
