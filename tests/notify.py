"""A socket in the place of systemd, for daemons of tests: what they tell it, and its watchdog."""

from __future__ import annotations

import select
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def manager(timeout_s: float) -> Iterator[tuple[socket.socket, list[str]]]:
    """A socket in systemd's place, and the command that makes a daemon speak to it."""
    with tempfile.TemporaryDirectory(prefix="edged-") as directory:
        path = f"{directory}/notify"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
            listener.bind(path)
            micros = int(timeout_s * 1e6)
            yield listener, ["env", f"NOTIFY_SOCKET={path}", f"WATCHDOG_USEC={micros}"]


def heard(listener: socket.socket, seconds: float) -> list[str]:
    found, until = [], time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        if select.select([listener], [], [], left)[0]:
            found.append(listener.recv(4096).decode())
    return found
