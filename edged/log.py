"""Logging: one line an event, as text on a terminal and as structured fields in the journal.

Every module logs with the standard library under the name `edged.*`; `event` attaches fields. A record
is written by the thread that logs it; the PortAudio callback never logs. Neighbours: everybody may
call it; `service` calls `setup` once; `journal` is the way to journald.

Spoken text is private. It is never a field and never part of a message above debug level: nothing
here can tell it from other text, so every caller answers for that. For the same reason the arguments
of a log call are never written apart from the message (systemd's own handler writes CODE_ARGS, and
the standard library prints them when a line cannot be formatted).
"""

from __future__ import annotations

import logging
import math
import os
import sys
import time
import traceback
from contextlib import suppress
from numbers import Real
from typing import TextIO

from edged import settings
from edged.escape import printable
from edged.journal import SOCKET, Journal, JournalGone
from edged.notices import OTHER, WITHIN_S, Kind, Repeats, message_id
from edged.relay import Relay

NAMES = {10: "debug", 20: "info", 30: "warn", 40: "error", 50: "fatal"}
PRIORITIES = {10: 7, 20: 6, 30: 4, 40: 3, 50: 2}  # syslog's numbers, which journalctl -p takes
UNITS = ("s", "ms")  # audio_s=3.21 is shown as audio=3.21s


def event(
    logger: logging.Logger,
    level: int,
    message: str,
    /,
    *,
    exc_info: BaseException | bool = False,
    **fields: object,
) -> None:
    """Logs one event. Fields with the value None are left out.

    Well-known fields: job, code, voice, phase; times end in _s or _ms. A line from `warning` on has a
    code: the journal's message catalog explains it. `message_id` (32 hex digits) points to another entry.
    """
    if logger.isEnabledFor(level):
        logger.log(level, message, exc_info=exc_info, extra={"fields": fields}, stacklevel=2)


def setup(
    log: settings.Log,
    *,
    stream: TextIO | None = None,
    journal_socket: str | os.PathLike[str] = SOCKET,
    relayed: bool = False,
) -> logging.Handler:
    """Sends all logging to `stream` (stderr) or to the journal; a second call replaces the first.

    relayed: written by a thread of its own, so that a reader that has stopped stops nobody else, and to a
    duplicate of stderr: PortAudio is started with file descriptor 2 pointed at /dev/null for a moment.
    edged's own loggers get the configured level; other libraries are heard from `warning` on.
    """
    if stream is None:  # nor is there a stderr where the caller closed it
        stream = (_stderr_kept() if relayed else sys.stderr) or open(os.devnull, "w")  # noqa: SIM115
    to_journal = log.format == "journal" or (log.format == "auto" and is_journal(stream))
    handler: logging.Handler
    handler = JournalHandler(stream, Journal(journal_socket)) if to_journal else TextHandler(stream)
    if relayed:
        handler = Relay(handler)
    root = logging.getLogger()
    for old in [h for h in root.handlers if isinstance(h, (TextHandler, Relay))]:
        root.removeHandler(old)
        old.close()
    root.addHandler(handler)
    set_level(log.level)
    logging.captureWarnings(True)
    return handler


def _stderr_kept() -> TextIO | None:
    """stderr as it is now, whatever its file descriptor becomes; stderr itself where it has none."""
    try:
        number = os.dup(sys.stderr.fileno())
    except (AttributeError, OSError, ValueError):  # closed, or not a file
        return sys.stderr
    return open(number, "w", encoding=sys.stderr.encoding)


def set_level(name: str) -> None:
    """Any thread, also while others log."""
    level = logging.getLevelName(name.upper())
    logging.getLogger().setLevel(max(level, logging.WARNING))
    logging.getLogger("edged").setLevel(level)


def is_journal(stream: TextIO) -> bool:
    """True when systemd has connected the stream to the journal: $JOURNAL_STREAM names its inode."""
    try:
        status = os.fstat(stream.fileno())
    except (OSError, ValueError):  # closed, or not a file at all
        return False
    return os.environ.get("JOURNAL_STREAM") == f"{status.st_dev}:{status.st_ino}"


class TextHandler(logging.Handler):
    """`12:03:55.123 info  job done job=k3f9-12 audio=3.21s rtf=0.011`; local time."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self.stream = stream
        self._repeats = Repeats()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._tell_left_out(time.monotonic())
            if record.levelno < logging.WARNING or self._repeats.ask(_kind(record), time.monotonic()):
                self.write(record)
        except Exception as exc:
            self._complain(record, exc)

    def close(self) -> None:
        with suppress(Exception):  # the stream may be gone
            self._tell_left_out(math.inf)
        super().close()

    def _tell_left_out(self, now: float) -> None:
        for (file, line, code), count in self._repeats.ended(now):
            text = f"{count} more lines of this kind within {WITHIN_S:g} s were left out"
            place = {"name": "edged.log", "pathname": file, "lineno": line, "levelno": logging.WARNING}
            self.write(logging.makeLogRecord({**place, "msg": text, "fields": {"code": code}}))

    def write(self, record: logging.LogRecord) -> None:
        clock = time.strftime("%H:%M:%S", time.localtime(record.created))
        level = NAMES.get(record.levelno, record.levelname.lower())
        self._print(f"{clock}.{int(record.msecs):03d} {level:5} {body(record)}\n")

    def _print(self, text: str) -> None:
        encoding = getattr(self.stream, "encoding", None) or "utf-8"
        # Under LANG=C a letter that cannot be shown must not cost the line.
        self.stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        self.stream.flush()

    def _complain(self, record: logging.LogRecord, exc: Exception) -> None:
        """Instead of the standard library's report, which prints the arguments of the call."""
        try:
            self._print(f"a log line of {record.name}:{record.lineno} is lost: {type(exc).__name__}\n")
        except Exception:  # stderr is gone, and the daemon must go on without it
            return


class JournalHandler(TextHandler):
    """Structured fields to journald; lines with a priority prefix to stderr when it is not there."""

    def __init__(self, stream: TextIO, journal: Journal) -> None:
        super().__init__(stream)
        self.journal = journal

    def close(self) -> None:
        self.journal.close()
        super().close()

    def write(self, record: logging.LogRecord) -> None:
        text = body(record)
        priority = PRIORITIES.get(record.levelno, 5)
        entry = {
            "PRIORITY": str(priority),
            "SYSLOG_IDENTIFIER": "edged",
            "LOGGER": record.name,
            "THREAD_NAME": record.threadName or "",
            "CODE_FILE": record.pathname,
            "CODE_LINE": str(record.lineno),
            "CODE_FUNC": record.funcName or "",
        }
        if code := _code(record):
            entry |= {"MESSAGE_ID": message_id(code), "EDGED_CODE": code}
        for name, value in _fields(record).items():
            entry["MESSAGE_ID" if name == "message_id" else journal_name(name)] = _text(value)
        try:
            self.journal.send(text, entry)
        except JournalGone:
            # journald cuts what it reads from stderr into lines: each needs its own priority.
            self._print("".join(f"<{priority}>{line}\n" for line in text.split("\n")))


def body(record: logging.LogRecord) -> str:
    """Message and fields on one line, then the traceback, if there is one, on lines of its own."""
    words = [printable(record.getMessage())]
    for name, value in _fields(record).items():
        stem, _, unit = name.rpartition("_")
        if name == "message_id":
            continue
        if stem and unit in UNITS and isinstance(value, Real):
            words.append(f"{stem}={_text(value)}{unit}")
        else:
            words.append(f"{printable(name)}={_quoted(_text(value))}")
    line = " ".join(words)
    if record.exc_info and record.exc_info[1] is not None:
        trace = "".join(traceback.format_exception(record.exc_info[1])).rstrip().splitlines()
        line = "\n".join([line, *(f"    | {printable(row)}" for row in trace)])
    return line


def journal_name(name: str) -> str:
    """EDGED_AUDIO_S for audio_s; journald takes A-Z, 0-9 and _, at most 64 of them."""
    upper = name.upper()
    return "EDGED_" + "".join(c if c.isascii() and c.isalnum() else "_" for c in upper)[:58]


def _code(record: logging.LogRecord) -> str:
    least = OTHER if record.levelno >= logging.WARNING else ""
    return str(_fields(record).get("code", least))


def _kind(record: logging.LogRecord) -> Kind:
    return record.pathname, record.lineno, _code(record)


def _fields(record: logging.LogRecord) -> dict[str, object]:
    fields = getattr(record, "fields", None)
    if not isinstance(fields, dict):
        return {}
    return {str(name): value for name, value in fields.items() if value is not None}


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Real) and not isinstance(value, int):
        number = float(value)  # milliseconds matter in a time, three digits in a ratio
        return f"{number:.3f}".rstrip("0").rstrip(".") if abs(number) >= 1 else f"{number:.3g}"
    return str(value)


def _quoted(text: str) -> str:
    """A value as one word: quoted when it could be taken for more than that."""
    if text and text.isprintable() and not any(c in text for c in " \"'="):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{printable(escaped)}"'
