"""The configuration file: finds it, reads it, and reports everything that is wrong with it at once.

Runs once at start (and for `edged check-config`), on the main thread; the `Settings` it returns are
frozen and go to every other part. Neighbours: `service` and `cli` call it; `config_nodes` checks keys
and values one by one, this module what only shows when several are seen together.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import NoReturn

import msgspec
import yaml

from edged.config_nodes import Reading
from edged.errors import ConfigError, Problem
from edged.paths import events_endpoint
from edged.settings import DEFAULT_CHIME, Settings

__all__ = ["SYSTEM_FILE", "Problem", "find", "load", "overridden", "parse", "template"]

SYSTEM_FILE = Path("/etc/edged/edged.yaml")
LARGEST_FILE = 1024 * 1024  # bytes; the annotated file has 6 kB, so this is some other file
LONGEST_SOCKET_PATH = 107  # bytes; sun_path of Linux without its final zero

# PyYAML's wording -> what to do about it
SYNTAX_HINTS = {
    "that cannot start any token": "indent with spaces, not tabs; quote text that begins with @ ` or %",
    "mapping values are not allowed here": "look at the indentation; quote text that holds ': '",
    "could not find expected ':'": "every setting is written 'name: value'",
    "expected <block end>": "settings of one group begin in the same column",
    "found unexpected end of stream": "a quote is not closed",
    "found another document": "delete the '---' in the middle of the file",
    "found undefined alias": "quote text that begins with *",
}


def find(explicit: str | None = None) -> Path | None:
    """The file to read: `--config`, else `$EDGED_CONFIG`, else the system's; None for the defaults.

    A file that was named is returned even when it is not there, so that `load` can say so.
    """
    named = explicit or os.environ.get("EDGED_CONFIG")
    if named:
        return Path(named)
    try:
        SYSTEM_FILE.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:  # it is there but may not be read: `load` reports that, we must not ignore the file
        pass
    return SYSTEM_FILE


def _is_plain(found: os.stat_result) -> bool:
    """A regular file, or /dev/null for no settings: neither makes a reader wait."""
    return stat.S_ISREG(found.st_mode) or found.st_rdev == os.makedev(1, 3)


def load(path: Path | None, pipes: bool = False) -> Settings:
    """The settings in a file, or the defaults for None. Raises one `ConfigError` for all problems.

    pipes: what is no regular file is read, too, for as long as it takes; without it that is a problem, since
    a pipe that nobody writes to would hold the daemon for ever.
    """
    if path is None:
        return Settings()
    try:
        with open(path, "rb", opener=None if pipes else _at_once) as file:
            if not pipes and not _is_plain(os.fstat(file.fileno())):
                _fail(path, "is not a regular file", "write the settings to a file")
            data = file.read(LARGEST_FILE + 1)
    except FileNotFoundError:
        hint = "EDGED_CONFIG names it" if str(path) == os.environ.get("EDGED_CONFIG") else ""
        _fail(path, "there is no such file", hint or "edged serve without --config uses the defaults")
    except IsADirectoryError:
        _fail(path, "is a directory, not a file", f"perhaps {path / SYSTEM_FILE.name} is meant")
    except PermissionError:
        _fail(path, "may not be read by this user", "the service's user needs read access to it")
    except (OSError, ValueError) as exc:  # ValueError: a zero byte in the name
        _fail(path, f"cannot be read: {getattr(exc, 'strerror', None) or exc}", "")
    if len(data) > LARGEST_FILE:
        _fail(path, "is larger than 1 MiB", "this is not a configuration file of edged")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as exc:
        line = data.count(b"\n", 0, exc.start) + 1
        _fail(path, "this line is not UTF-8 text", "save the file as UTF-8", line)
    settings = parse(text, str(path))
    beside = os.path.abspath(path.parent)
    replace = msgspec.structs.replace
    if settings.reading.lexicons:
        files = [os.path.join(beside, file) for file in settings.reading.lexicons]
        settings = replace(settings, reading=replace(settings.reading, lexicons=files))
    if settings.speech.chime not in ("", DEFAULT_CHIME):
        chime = os.path.join(beside, settings.speech.chime)
        settings = replace(settings, speech=replace(settings.speech, chime=chime))
    return settings


def _at_once(path: str, flags: int) -> int:
    """Opens without waiting for the other end of a pipe."""
    return os.open(path, flags | os.O_NONBLOCK)


def overridden(
    settings: Settings, endpoint: str | None, bundles: tuple[str, ...], log_level: str | None
) -> Settings:
    """The settings with what the command line says instead; None or nothing: as they are."""
    replace = msgspec.structs.replace
    if endpoint:
        settings = replace(settings, listen=replace(settings.listen, endpoint=endpoint, events=""))
    if bundles:
        voices = replace(settings.voices, bundles=list(bundles), default="", defaults={})
        settings = replace(settings, voices=voices)
    if log_level:
        level = {"level": log_level, "format": settings.log.format}
        settings = replace(settings, log=msgspec.convert(level, type(settings.log)))
    return settings


def parse(text: str, file: str = "configuration") -> Settings:
    """The settings in a YAML text; `file` is its name in messages."""
    reading = Reading(file)
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as exc:
        _fail_syntax(file, exc)
    except yaml.reader.ReaderError as exc:
        line = text.count("\n", 0, exc.position) + 1
        _fail(
            file, f"holds a character that may not stand in YAML (U+{ord(text[exc.position]):04X})", "", line
        )
    except RecursionError:
        _fail(file, "is nested too deeply", "settings are two levels deep: a group and a name")
    except (yaml.YAMLError, ValueError, OverflowError):  # "\UFFFFFFFF", %YAML 1.999…: PyYAML's own faults
        _fail(file, "is not YAML", "look for a wrong \\U escape or a wrong %YAML line")
    if root is not None:
        reading.read(root)
    _check_listen(reading)
    _check_audio(reading)
    _check_voices(reading)
    _check_limits(reading)
    _check_stats(reading)
    if reading.problems:
        raise ConfigError.of(reading.problems, reading.more)
    return reading.settings


def template() -> str:
    """The annotated configuration file, from the installed package or from a checkout."""
    here = Path(__file__).resolve().parent
    for path in (here / "data" / "edged.yaml", here.parent / "config" / "edged.yaml"):
        if path.is_file():
            return path.read_text(encoding="utf-8")
    raise ConfigError("the annotated configuration file is not part of this installation", "reinstall edged")


def _fail(file: Path | str, message: str, hint: str, line: int = 0) -> NoReturn:
    raise ConfigError.of([Problem(str(file), line, "", message, hint=hint)]) from None


def _fail_syntax(file: str, exc: yaml.MarkedYAMLError) -> NoReturn:
    mark = exc.problem_mark or exc.context_mark
    what = exc.problem or exc.context or "not YAML"
    hint = next((hint for wording, hint in SYNTAX_HINTS.items() if wording in what), "")
    line, column = (mark.line + 1, mark.column + 1) if mark is not None else (0, 0)
    problem = Problem(file, line, "", f"this is not YAML: {what}", "YAML", hint, column)
    raise ConfigError.of([problem]) from None


# -- checks across settings ---------------------------------------------------------------------


def _check_audio(reading: Reading) -> None:
    """A list of no device means none, and what differs for devices needs to say for which."""
    if reading.settings.audio.device == []:
        hint = "name a device, or delete the line to use the system's default"
        reading.report("audio.device", "expected at least one name", hint=hint)
    for index in range(len(reading.settings.audio.devices)):
        key = f"audio.devices[{index}]"
        wrong = any(problem.key.startswith(key) for problem in reading.problems)
        if not wrong and f"{key}.match" not in reading.given:
            reading.report(key, "needs match", hint="match: '*USB*' names the devices that are meant")


def _check_voices(reading: Reading) -> None:
    """A daemon without a voice is of no use, nor is a level of what is not done."""
    if not reading.settings.voices.bundles:
        hint = "name a bundle, or delete the line to keep the built-in voice"
        reading.report("voices.bundles", "expected at least one bundle", hint=hint)
    for name, wanted in reading.settings.voices.defaults.items():
        levels = {"oral": wanted.oral, "laugh": wanted.laugh, "break": wanted.break_}
        level = next((level for level, value in levels.items() if value is not None), "")
        if level and wanted.refine is False:
            key = f"voices.defaults.{name}.{level}"
            hint = "delete one of the two lines"
            reading.report(key, "steers the refined text, but refine is false", hint=hint)


def _check_limits(reading: Reading) -> None:
    """The longest text must fit into the largest frame, at 4 bytes a character."""
    limits = reading.settings.limits
    needed = -(-limits.text_chars * 4 // 1024)
    if limits.frame_kb < needed:
        key = "limits.frame_kb" if "limits.frame_kb" in reading.given else "limits.text_chars"
        message = f"{limits.text_chars} characters can take {needed} kB, more than limits.frame_kb"
        reading.report(key, message, hint=f"set limits.frame_kb to {needed + 1} or more")


def _check_stats(reading: Reading) -> None:
    """Where Prometheus looks: an address of numbers or a name, and an absolute path."""
    stats = reading.settings.stats
    port = re.fullmatch(r"(?:\[[0-9a-fA-F:.]+\]|[^\s:/\[\]]+):([0-9]{1,5})", stats.prometheus)
    if stats.prometheus and not (port and int(port[1]) < 65536):
        expected = "HOST:PORT, such as 127.0.0.1:9640"
        reading.report("stats.prometheus", f"expected {expected}", expected=expected)
    file = stats.prometheus_file
    if file and not (file.startswith("/") and file.endswith(".prom") and file.isprintable()):
        expected = "an absolute path that ends in .prom"
        reading.report("stats.prometheus_file", f"expected {expected}", expected=expected)


def _check_listen(reading: Reading) -> None:
    """The endpoints: their form, and that TCP never comes without keys."""
    listen = reading.settings.listen
    wrong = {problem.key for problem in reading.problems}  # these have their default value now

    def report(name: str, message: str, expected: str = "", hint: str = "") -> None:
        reading.report(f"listen.{name}", message, expected=expected, hint=hint)

    for name in ("endpoint", "events"):
        value: str = getattr(listen, name)
        if not value:
            continue
        expected = "ipc:// and an absolute path, such as ipc:///run/edged/edged.sock"
        if value.startswith("tcp://"):  # this socket is bound without keys
            report(name, f"expected {expected}, got a TCP address", expected, "for TCP use listen.tcp")
        elif not value.startswith("ipc:///") or value.endswith("/") or not value.isprintable():
            hint = f"did you mean 'ipc://{value}'?" if value.startswith("/") else ""
            report(name, f"expected {expected}", expected, hint)
        elif (size := len(os.fsencode(value.removeprefix("ipc://")))) > LONGEST_SOCKET_PATH:
            expected = f"a path of at most {LONGEST_SOCKET_PATH} bytes"
            report(name, f"expected {expected}, got {size} bytes", expected, "choose a shorter path")
        elif name == "endpoint" and not listen.events:
            size = len(os.fsencode(events_endpoint(value).removeprefix("ipc://")))
            if size > LONGEST_SOCKET_PATH:
                over = size - LONGEST_SOCKET_PATH
                message = f"the socket of the events beside it would have a path of {size} bytes"
                report(name, message, hint=f"shorten the path by {over} bytes or set listen.events")
    for name in ("tcp", "tcp_events"):
        value = getattr(listen, name)
        expected = "tcp://HOST:PORT, such as tcp://0.0.0.0:5555"
        port = re.fullmatch(r"tcp://[^\s/]+:([0-9]{1,5})", value)
        if value and not (port and 0 < int(port[1]) < 65536):
            report(name, f"expected {expected}", expected)
    for name, other in (("events", "endpoint"), ("tcp_events", "tcp")):
        if getattr(listen, name) and getattr(listen, name) == getattr(listen, other):
            report(name, f"is the same address as listen.{other}", hint="choose another path or port")
    if listen.tcp_events and not listen.tcp:
        report("tcp_events", "needs listen.tcp", hint="set listen.tcp, or delete this line")
    if listen.tcp:
        for name, hint in (
            ("curve_secret", "the daemon's own key file; make one with: edged keys make DIR NAME"),
            ("curve_clients", "the directory of the public key files of clients that may connect"),
        ):
            # The problem is shown at listen.tcp, where the wish for TCP was written.
            if not getattr(listen, name) and f"listen.{name}" not in wrong:
                report("tcp", f"needs listen.{name}: TCP is served only with keys", f"listen.{name}", hint)
