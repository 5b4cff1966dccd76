"""Runs a module of this program in a process of its own, and hears what it says until it ends.

Any thread, which waits meanwhile. Used by `trial` and `catalog`, at times as root: the process does not look
for Python modules in the folder that an administrator happens to be in, and what it began ends with it.
"""

from __future__ import annotations

import json
import os
import select
import selectors
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from subprocess import PIPE, CompletedProcess, TimeoutExpired
from time import monotonic

_MOST = 1 << 16  # bytes kept of each stream, its last ones; a pipe holds as many
_LOOK_S = 0.05  # between two looks whether the process has ended
_BEGIN = (
    "import json, runpy, sys; given = json.loads(sys.argv.pop(1)); "
    "sys.path[:] = given + [path for path in sys.path if path not in given]; "
    "runpy.run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)"
)


def python(module: str, *arguments: str) -> list[str]:
    """The command that runs a module with the interpreter, and with the modules, of this process."""
    return [sys.executable, "-I", "-c", _BEGIN, json.dumps(_search_path()), module, *arguments]


def _search_path() -> list[str]:
    """Where this process finds modules, but for the current folder, unless this program was begun in it."""
    own = str(Path(__file__).resolve().parents[2])
    here, kept = "", []
    with suppress(FileNotFoundError):  # somebody removed it
        here = os.path.realpath(os.getcwd())
    for path in sys.path:
        real = os.path.realpath(path)
        if os.path.isabs(path) and (real == own or real != here):
            kept.append(path)
    return kept if own in map(os.path.realpath, kept) else [own, *kept]


def converse(command: list[str], task: bytes, seconds: float) -> CompletedProcess[bytes]:
    """What a process made of `task`, which it gets on stdin: its exit code and the last of its output.

    It has a session of its own, without the terminal of this one. When it has ended, or when this thread is
    interrupted, whatever it began is killed, as far as it stayed in its process group. Raises
    `TimeoutExpired`.
    """
    process = subprocess.Popen(command, stdin=PIPE, stdout=PIPE, stderr=PIPE, start_new_session=True)
    try:
        stdout, stderr = _listen(process, task, monotonic() + seconds)
    except TimeoutError:
        raise TimeoutExpired(command, seconds) from None
    finally:
        with suppress(ProcessLookupError, PermissionError):  # nobody left in it
            os.killpg(process.pid, signal.SIGKILL)  # not reaped yet: the number is no other process's
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            assert stream is not None, "it is a pipe"
            with suppress(BrokenPipeError):
                stream.close()
    return CompletedProcess(command, process.returncode, stdout, stderr)


def _listen(process: subprocess.Popen[bytes], task: bytes, until: float) -> tuple[bytes, bytes]:
    """Both outputs. They may be open in another process for longer: the end of this one counts."""
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    said = {process.stdout.fileno(): b"", process.stderr.fileno(): b""}
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdin, selectors.EVENT_WRITE)
        for number in said:
            selector.register(number, selectors.EVENT_READ)
        while True:
            ended = _has_ended(process.pid)  # asked first: what it wrote before is in the pipes
            for key, _ in selector.select(0 if ended else _LOOK_S):
                if key.fileobj is process.stdin:
                    task = _write(key.fd, task)
                    if not task:
                        selector.unregister(key.fileobj)
                        process.stdin.close()
                elif chunk := os.read(key.fd, _MOST):
                    said[key.fd] = (said[key.fd] + chunk)[-_MOST:]
                else:
                    selector.unregister(key.fileobj)
            if ended:
                stdout, stderr = said.values()
                return stdout, stderr
            if monotonic() > until:
                raise TimeoutError


def _write(number: int, task: bytes) -> bytes:
    """Writes as much as a ready pipe certainly takes; what is left, nothing where nobody reads."""
    try:
        return task[os.write(number, task[: select.PIPE_BUF]) :]
    except BrokenPipeError:
        return b""


def _has_ended(pid: int) -> bool:
    """Without reaping it."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None
