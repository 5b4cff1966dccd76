"""edged/log.py and journal.py: real streams, a real datagram socket in journald's place."""

from __future__ import annotations

import io
import logging
import os
import re
import socket
import struct
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from edged import journal, log
from edged.notices import OTHER, message_id
from edged.settings import Log

ROOT = Path(__file__).resolve().parent.parent
LOGGER = logging.getLogger("edged.test")


@pytest.fixture(autouse=True)
def _restore() -> Iterator[None]:
    root, edged = logging.getLogger(), logging.getLogger("edged")
    levels = root.level, edged.level
    yield
    for handler in [h for h in root.handlers if isinstance(h, log.TextHandler)]:
        root.removeHandler(handler)
        handler.close()
    root.setLevel(levels[0])
    edged.setLevel(levels[1])
    logging.captureWarnings(False)


@pytest.fixture
def text() -> io.StringIO:
    stream = io.StringIO()
    log.setup(Log(level="info", format="text"), stream=stream)
    return stream


class Journald:
    """A datagram socket that takes entries apart as journald does (systemd's JOURNAL_NATIVE_PROTOCOL)."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(path)
        self.socket.settimeout(5)

    def entry(self) -> dict[str, str]:
        data, found = self.socket.recv(1 << 20), {}
        while data:
            line, _, data = data.partition(b"\n")
            if b"=" in line:
                name, _, value = line.partition(b"=")
            else:
                (size,) = struct.unpack("<Q", data[:8])
                name, value, end, data = line, data[8 : 8 + size], data[8 + size : 9 + size], data[9 + size :]
                assert end == b"\n"
            assert re.fullmatch(rb"[A-Z][A-Z0-9_]{0,63}", name)
            assert name.decode() not in found
            found[name.decode()] = value.decode()
        return found


@pytest.fixture
def journald() -> Iterator[Journald]:
    with tempfile.TemporaryDirectory(prefix="edged") as directory:
        server = Journald(f"{directory}/socket")
        yield server
        server.socket.close()


# -- text ---------------------------------------------------------------------------------------


def test_one_line_an_event(text: io.StringIO) -> None:
    log.event(
        LOGGER, logging.INFO, "job done", job="k3f9-12", audio_s=3.21, first_ms=87, rtf=0.0114, voice=None
    )
    line = text.getvalue()
    now = time.time()
    assert line[:5] in {time.strftime("%H:%M", time.localtime(now - ago)) for ago in (0, 30)}
    assert re.fullmatch(
        r"\d\d:\d\d:\d\d\.\d{3} info  job done job=k3f9-12 audio=3.21s first=87ms rtf=0.0114\n", line
    )


def test_plain_logging_calls_work_too(text: io.StringIO) -> None:
    LOGGER.warning("%d voices, 100%%", 2, extra={"fields": {"phase": "load"}})
    LOGGER.error("fields of another kind", extra={"fields": 3})
    first, second = text.getvalue().splitlines()
    assert first.endswith(" warn  2 voices, 100% phase=load")
    assert second.endswith(" error fields of another kind")


def test_a_message_is_no_format(text: io.StringIO) -> None:
    log.event(LOGGER, logging.INFO, "100%d", message_id="0" * 32)
    assert text.getvalue().endswith(" info  100%d\n")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("word", "word"),
        ("zwölf", "zwölf"),
        ("", '""'),
        ("two words", '"two words"'),
        ("a=b", '"a=b"'),
        ('say "x"', r'"say \"x\""'),
        ("x\n12:00:00.000 error forged", r'"x\n12:00:00.000 error forged"'),
        ("\x1b[31mred\x9b", r'"\x1b[31mred\x9b"'),
        ("\u2028\u202e\x85", r'"\u2028\u202e\x85"'),
        ("\udcff", r'"\udcff"'),
        (True, "true"),
        (0, "0"),
        (1234.5678, "1234.568"),
        (2.0, "2"),
        (0.0, "0"),
        (0.00012345, "0.000123"),
        (float("nan"), "nan"),
    ],
)
def test_values(text: io.StringIO, value: object, shown: str) -> None:
    log.event(LOGGER, logging.INFO, "x", key=value)
    assert text.getvalue()[13:] == f"info  x key={shown}\n"


@hypothesis_settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(), st.text(), st.text(min_size=1))
def test_nothing_breaks_out_of_its_line(message: str, value: str, key: str) -> None:
    stream = io.StringIO()
    log.setup(Log(format="text"), stream=stream)
    LOGGER.info("%s", message, extra={"fields": {key: value, "last": 1}})
    line = stream.getvalue()
    assert line.endswith(" last=1\n")
    assert line[:-1].isprintable()


def test_levels(text: io.StringIO) -> None:
    LOGGER.debug("hidden")
    logging.getLogger("library").info("hidden")
    logging.getLogger("library").warning("seen 1")
    log.setup(Log(level="error", format="text"), stream=text)
    LOGGER.warning("hidden")
    logging.getLogger("library").warning("hidden")
    LOGGER.critical("seen 2")
    log.setup(Log(level="debug", format="text"), stream=text)
    LOGGER.debug("seen 3")
    logging.getLogger("library").info("hidden")
    assert [line[13:] for line in text.getvalue().splitlines()] == [
        "warn  seen 1",
        "fatal seen 2",
        "debug seen 3",
    ]


def test_setup_again_does_not_double_lines(text: io.StringIO) -> None:
    log.setup(Log(format="text"), stream=text)
    LOGGER.info("once")
    assert text.getvalue().count("once") == 1


def test_a_traceback_is_indented(text: io.StringIO) -> None:
    try:
        raise ValueError("bad\x1bthing")
    except ValueError as exc:
        log.event(LOGGER, logging.ERROR, "failed", exc_info=exc, job="a")
    first, *rest = text.getvalue().splitlines()
    assert first.endswith(" error failed job=a")
    assert rest[0] == "    | Traceback (most recent call last):"
    assert rest[-1] == r"    | ValueError: bad\x1bthing"
    assert all(line.startswith("    | ") for line in rest)


def test_warnings_of_libraries_are_logged(text: io.StringIO) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        log.setup(Log(format="text"), stream=text)
        warnings.warn("old function", DeprecationWarning, stacklevel=1)
        logging.captureWarnings(False)
    assert "warn " in text.getvalue()
    assert "old function" in text.getvalue()


def test_a_line_that_cannot_be_formatted_does_not_show_its_arguments(tmp_path: Path) -> None:
    code = (
        "import logging\n"
        "from edged import log, settings\n"
        "log.setup(settings.Log(format='text'))\n"
        "logging.getLogger('edged.x').info('%d jobs', 'spoken ' + 'words')\n"
    )
    # In a process of its own: pytest's handler is on the root logger too, and raises.
    assert run(tmp_path, code).stderr == "a log line of edged.x:4 is lost: TypeError\n"


def test_a_dead_stderr_does_not_stop_the_daemon() -> None:
    stream = io.StringIO()
    log.setup(Log(format="text"), stream=stream)
    stream.close()
    LOGGER.info("into the void")
    log.setup(Log(format="text"), stream=(alive := io.StringIO()))
    LOGGER.info("heard")
    assert "heard" in alive.getvalue()


def test_without_a_stderr_nothing_is_written(tmp_path: Path) -> None:
    code = (
        "import logging, sys\n"
        "from edged import log, settings\n"
        "sys.stderr = None\n"
        "log.setup(settings.Log())\n"
        "logging.getLogger('edged.x').info('into the void')\n"
    )
    done = run(tmp_path, code)
    assert (done.stdout, done.stderr) == ("", "")


def test_the_daemon_is_heard_while_something_mutes_stderr(tmp_path: Path) -> None:
    """As PortAudio's start does, on another thread than the one that loads voices."""
    code = (
        "import logging, os\n"
        "from edged import log, settings\n"
        "relay = log.setup(settings.Log(format='text'), relayed=True)\n"
        "os.dup2(os.open(os.devnull, os.O_WRONLY), 2)\n"
        "logging.getLogger('edged.x').error('heard')\n"
        "relay.flush()\n"
    )
    assert run(tmp_path, code).stderr.endswith(" error heard\n")


def test_letters_the_terminal_cannot_show(tmp_path: Path) -> None:
    with open(tmp_path / "log", "w", encoding="ascii") as stream:
        log.setup(Log(format="text"), stream=stream)
        LOGGER.info("Größe")
    assert (tmp_path / "log").read_text().endswith(r" info  Gr\xf6\xdfe" + "\n")


# -- the journal --------------------------------------------------------------------------------


def test_journal_fields(journald: Journald) -> None:
    log.setup(Log(format="journal"), stream=io.StringIO(), journal_socket=journald.path)
    log.event(
        LOGGER,
        logging.WARNING,
        "job failed",
        job="k3f9-12\nPRIORITY=0",
        code="busy",
        voice="hibari",
        phase="text",
        audio_s=3.21,
        message_id="0123456789abcdef0123456789abcdef",
        missing=None,
    )
    entry = journald.entry()
    first = test_journal_fields.__code__.co_firstlineno
    assert first < int(entry.pop("CODE_LINE")) < first + 15  # the call, not the inside of log.py
    assert entry == {
        "MESSAGE": 'job failed job="k3f9-12\\nPRIORITY=0" code=busy voice=hibari phase=text audio=3.21s',
        "MESSAGE_ID": "0123456789abcdef0123456789abcdef",
        "PRIORITY": "4",
        "SYSLOG_IDENTIFIER": "edged",
        "LOGGER": "edged.test",
        "THREAD_NAME": "MainThread",
        "CODE_FILE": __file__,
        "CODE_FUNC": "test_journal_fields",
        "EDGED_JOB": "k3f9-12\nPRIORITY=0",
        "EDGED_CODE": "busy",
        "EDGED_VOICE": "hibari",
        "EDGED_PHASE": "text",
        "EDGED_AUDIO_S": "3.21",
    }


def test_a_code_leads_to_its_entry_in_the_catalog(journald: Journald) -> None:
    log.setup(Log(format="journal"), stream=io.StringIO(), journal_socket=journald.path)
    log.event(LOGGER, logging.INFO, "request refused", code="busy")
    assert journald.entry()["MESSAGE_ID"] == message_id("busy")
    LOGGER.warning("a library's own words")
    entry = journald.entry()
    assert (entry["EDGED_CODE"], entry["MESSAGE_ID"]) == (OTHER, message_id(OTHER))
    LOGGER.info("all is well")
    assert "MESSAGE_ID" not in journald.entry()


@pytest.mark.parametrize(
    ("level", "priority"), [(10, "7"), (20, "6"), (30, "4"), (40, "3"), (50, "2"), (25, "5")]
)
def test_priorities(journald: Journald, level: int, priority: str) -> None:
    log.setup(Log(level="debug", format="journal"), stream=io.StringIO(), journal_socket=journald.path)
    log.event(LOGGER, level, "x")
    assert journald.entry()["PRIORITY"] == priority


def test_arguments_of_the_call_stay_out_of_the_journal(journald: Journald) -> None:
    log.setup(Log(format="journal"), stream=io.StringIO(), journal_socket=journald.path)
    LOGGER.info("a text of %.0s%d letters", "spoken words", 12)
    entry = journald.entry()
    assert entry["MESSAGE"] == "a text of 12 letters"
    assert "spoken" not in str(entry)


def test_odd_values_reach_the_journal(journald: Journald) -> None:
    log.setup(Log(format="journal"), stream=io.StringIO(), journal_socket=journald.path)
    LOGGER.info("x", extra={"fields": {"größe x" * 20: "\udcff", "long": "ü" * 100_000}})
    entry = journald.entry()
    (odd,) = [name for name in entry if name.startswith("EDGED_GR")]
    assert entry[odd] == r"\udcff"
    assert len(odd) == 64
    assert journal.LONGEST_VALUE - 1 <= len(entry["EDGED_LONG"].encode()) <= journal.LONGEST_VALUE


def test_a_traceback_reaches_the_journal(journald: Journald) -> None:
    log.setup(Log(format="journal"), stream=io.StringIO(), journal_socket=journald.path)
    try:
        raise ValueError("bad")
    except ValueError:
        log.event(LOGGER, logging.ERROR, "failed", exc_info=True)
    message = journald.entry()["MESSAGE"].split("\n")
    assert (message[0], message[-1]) == ("failed", "    | ValueError: bad")


def test_without_journald_every_line_has_a_priority(tmp_path: Path) -> None:
    stream = io.StringIO()
    log.setup(Log(format="journal"), stream=stream, journal_socket=tmp_path / "nobody")
    LOGGER.info("hello\nthere", extra={"fields": {"job": "a"}})
    try:
        raise ValueError("bad")
    except ValueError:
        LOGGER.exception("failed")
    lines = stream.getvalue().splitlines()
    assert lines[:2] == [r"<6>hello\nthere job=a", "<3>failed"]
    assert all(line.startswith("<3>    | ") for line in lines[2:])
    assert len(lines) > 4


def test_a_restarted_journald_is_found_again(journald: Journald) -> None:
    stream = io.StringIO()
    log.setup(Log(format="journal"), stream=stream, journal_socket=journald.path)
    LOGGER.info("one")
    journald.socket.close()
    LOGGER.info("two")
    os.unlink(journald.path)
    again = Journald(journald.path)
    LOGGER.info("three")
    assert again.entry()["MESSAGE"] == "three"
    assert stream.getvalue() == "<6>two\n"
    again.socket.close()


def test_lines_that_a_stuck_journald_did_not_take_are_counted(journald: Journald) -> None:
    log.setup(Log(format="journal"), stream=io.StringIO(), journal_socket=journald.path)
    handler = next(h for h in logging.getLogger().handlers if isinstance(h, log.JournalHandler))
    started, sent = time.monotonic(), 0
    while not handler.journal.lost:
        LOGGER.info("x")
        sent += 1
    assert 0.5 < time.monotonic() - started < 10
    for _ in range(sent - 1):
        assert journald.entry()["MESSAGE"] == "x"
    LOGGER.info("y")
    assert journald.entry()["MESSAGE"] == "y (before this, 1 lines were lost: journald was stuck)"
    LOGGER.info("z")
    assert journald.entry()["MESSAGE"] == "z"


def run(tmp_path: Path, code: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """A process of its own, because stderr and the optional library belong to the process."""
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={
            **os.environ,
            "PYTHONPATH": ":".join([str(tmp_path), str(ROOT), os.environ.get("PYTHONPATH", "")]),
            **environ,
        },
        capture_output=True,
        text=True,
        check=True,
    )


AUTO = """
import logging, os, sys
from edged import log, settings
status = os.fstat(2)
os.environ["JOURNAL_STREAM"] = f"{status.st_dev}:{status.st_ino + int(sys.argv[1])}"
log.setup(settings.Log(), journal_socket="/nonexistent/journal")
logging.getLogger("edged.x").info("hello")
"""


def test_auto_knows_the_journal_by_the_inode_of_stderr(tmp_path: Path) -> None:
    assert run(tmp_path, AUTO.replace("int(sys.argv[1])", "0")).stderr == "<6>hello\n"
    assert run(tmp_path, AUTO.replace("int(sys.argv[1])", "1")).stderr.endswith(" info  hello\n")
    assert not log.is_journal(io.StringIO())


def test_systemd_python_does_the_sending_when_it_is_there(tmp_path: Path) -> None:
    """A stand-in with the signature and the demands of systemd.journal.send (version 235)."""
    (tmp_path / "systemd").mkdir()
    (tmp_path / "systemd" / "__init__.py").write_text("")
    (tmp_path / "systemd" / "journal.py").write_text(
        "def send(MESSAGE, MESSAGE_ID=None, CODE_FILE=None, CODE_LINE=None, CODE_FUNC=None, **kwargs):\n"
        "    args = ['MESSAGE=' + MESSAGE, 'MESSAGE_ID=' + getattr(MESSAGE_ID, 'hex', MESSAGE_ID)]\n"
        "    args += ['CODE_FUNC=' + CODE_FUNC]\n"
        "    args += ['CODE_FILE=' + CODE_FILE, 'CODE_LINE={:d}'.format(CODE_LINE)]\n"
        "    args += [name + '=' + value for name, value in kwargs.items()]\n"
        "    print(ascii([arg.encode() for arg in args]))\n"
    )
    code = (
        "import logging\n"
        "from edged import journal, log, settings\n"
        f"journal.SOCKET = {str(tmp_path / 'socket')!r}\n"
        "handler = log.setup(settings.Log(format='journal'), journal_socket=journal.SOCKET)\n"
        "log.event(logging.getLogger('edged.x'), 20, 'hello', job='a\\udcff', message_id='0' * 32)\n"
    )
    (tmp_path / "socket").write_text("")
    done = run(tmp_path, code)
    assert done.stderr == ""
    for part in (
        "MESSAGE=hello job=",
        "MESSAGE_ID=000",
        "CODE_LINE=5",
        "PRIORITY=6",
        r"EDGED_JOB=a\\udcff",
    ):
        assert part in done.stdout
    (tmp_path / "socket").unlink()
    gone = run(tmp_path, code)
    assert (gone.stdout, gone.stderr) == ("", '<6>hello job="a\\udcff"\n')
