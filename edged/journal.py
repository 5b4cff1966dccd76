"""The way to journald: one entry, one datagram, in journald's native protocol.

Used by the log handler under its lock, from whichever thread logs. systemd-python does the sending when
it is installed; its function `send` only, because its JournalHandler writes the arguments of log calls.
Neighbours: `log` calls it.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Callable, Mapping
from typing import Any

SOCKET = "/run/systemd/journal/socket"
LONGEST_VALUE = 16 * 1024  # bytes; a datagram holds 200 kB by default, an entry has about 15 values
PATIENCE_S = 1  # whole seconds; a stuck journald may hold a thread of ours this long, then the line is lost


class JournalGone(Exception):
    """There is no journald at the socket."""


class Journal:
    """A sender of entries. `lost` counts those that a stuck journald did not take."""

    def __init__(self, path: str | os.PathLike[str] = SOCKET) -> None:
        self.path = os.fspath(path)
        self.lost = 0
        # libsystemd knows one socket only, so any other path is served by the code below.
        self._library = _library_send() if self.path == SOCKET else None
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        # The kernel's own timeout: Python's would spin, as poll() calls an unconnected socket writable.
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", PATIENCE_S, 0))

    def send(self, message: str, fields: Mapping[str, str]) -> None:
        """Writes one entry; raises `JournalGone` when nobody listens."""
        if self.lost:
            message = f"{message} (before this, {self.lost} lines were lost: journald was stuck)"
        if self._library is not None:
            if not os.path.exists(self.path):  # the library says nothing in this case
                raise JournalGone
            entry: dict[str, Any] = {
                name: _encode(value).decode("utf-8", "ignore") for name, value in fields.items()
            }
            if "CODE_LINE" in entry:
                entry["CODE_LINE"] = int(entry["CODE_LINE"])  # the one number it insists on
            self._library(_encode(message).decode("utf-8", "ignore"), **entry)
        else:
            try:
                self._socket.sendto(encode({"MESSAGE": message, **fields}), self.path)
            except BlockingIOError:
                self.lost += 1
                return
            except OSError:  # not there, refused, or a datagram larger than this kernel takes
                raise JournalGone from None
        self.lost = 0

    def close(self) -> None:
        self._socket.close()


def encode(entry: Mapping[str, str]) -> bytes:
    """`NAME=value` lines; a value of several lines goes as its length (8 bytes, little-endian) and bytes."""
    parts = []
    for name, value in entry.items():
        data = _encode(value)
        if b"\n" in data:
            parts.append(name.encode() + b"\n" + struct.pack("<Q", len(data)) + data + b"\n")
        else:
            parts.append(name.encode() + b"=" + data + b"\n")
    return b"".join(parts)


def _encode(value: str) -> bytes:
    """UTF-8, cut to the longest value; a lone surrogate (an undecodable file name) is written as \\udcff."""
    return value[:LONGEST_VALUE].encode("utf-8", "backslashreplace")[:LONGEST_VALUE]


def _library_send() -> Callable[..., Any] | None:
    try:
        from systemd.journal import send
    except ImportError:
        return None
    return send if callable(send) else None
