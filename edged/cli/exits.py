"""What the `edged` command ends with: its exit codes, and how a failure is told to people and to scripts.

Leaf of the command line; main thread. Neighbours: `edged.cli` catches with it, tests read the constants.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from edged import errors
from edged.errors import EdgedError
from edged.escape import printable_lines

OK = 0
FAILED = 1
USAGE = 2
NO_DAEMON = 3
TIMEOUT = 4
BUSY = 5
MISSING = 6
INTERRUPTED = 130

HELP = """\b
Exit codes:
  0    ok
  1    the job or the request failed
  2    wrong usage, or a configuration that cannot be used
  3    no daemon answers
  4    the daemon did not answer in time
  5    the daemon cannot do it now: try again
  6    a part is missing: an optional package, a voice bundle, a loudspeaker
  75   serve: its memory stayed over the budget; systemd starts it again
  130  interrupted (Ctrl-C); the job was cancelled
"""

_CODES: tuple[tuple[tuple[type[EdgedError], ...], int], ...] = (
    ((errors.ConfigError,), USAGE),
    ((errors.NoDaemon,), NO_DAEMON),
    ((errors.ReplyTimeout,), TIMEOUT),
    (
        (
            errors.Busy,
            errors.OverBudget,
            errors.Starting,
            errors.ShuttingDown,
            errors.DeadlineMissed,
            errors.StoreBusy,
            errors.AddressUnavailable,
        ),
        BUSY,
    ),
    ((errors.MissingExtra, errors.BundleMissing, errors.AudioError), MISSING),
)


def exit_code(error: EdgedError) -> int:
    for kinds, code in _CODES:
        if isinstance(error, kinds):
            return code
    return FAILED


def report(error: EdgedError, as_json: bool, job: str = "") -> int:
    """Tells a failure: a `failed` event on stdout for scripts, two lines on stderr for people."""
    if as_json:
        from edged import protocol

        write_json(protocol.encode(protocol.failed(error, job=job)))
    else:
        complain(f"error [{error.code}]: {error.message}", error.hint)
    return exit_code(error)


# -- the standard streams: sys.stdin, stdout and stderr are None when the caller closed them -----


def hold_descriptors() -> None:
    """Opens /dev/null in place of closed standard streams.

    Otherwise the first socket would get the number 1 or 2, and what a C library prints would go into it.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number, which is this one


def complain(message: str, hint: str = "") -> None:
    """A message on stderr; the hint gets a line of its own. Without a usable stderr it is lost.

    What a terminal would obey is shown instead, here and in `tell`; line breaks are kept."""
    if sys.stderr is None:  # print would take stdout instead
        return
    with suppress(OSError):
        print(f"edged: {printable_lines(message)}", file=sys.stderr)
        if hint:
            print(f"  {printable_lines(hint)}", file=sys.stderr)


@contextmanager
def naming(stream: str) -> Iterator[None]:
    """An OSError of a standard stream knows no file name; it gets this one."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or stream
        raise


def tell(text: object = "", end: str = "\n", *, coloured: str = "") -> None:
    """A result on stdout. coloured: our own words before it, written as they are."""
    with naming("standard output"):
        print(coloured + printable_lines(str(text)), end=end)


def write_json(document: bytes) -> None:
    """One JSON document, one line, on stdout."""
    if sys.stdout is not None:
        with naming("standard output"):
            sys.stdout.buffer.write(document + b"\n")
            sys.stdout.buffer.flush()


def document(value: object) -> bytes:
    """As JSON, escaped by the standard library: a path may hold bytes that msgspec refuses to write."""
    import json

    return json.dumps(value).encode()


def flush_stdout() -> None:
    """Writes out what print holds back, while a failure can still be told."""
    if sys.stdout is not None:
        with naming("standard output"):
            sys.stdout.flush()


def mute_stdout() -> None:
    """Nobody reads stdout any more: keeps the interpreter from complaining about it at exit."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
