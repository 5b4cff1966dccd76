"""Tells systemd how the service is: ready, stopping, alive, and one line of status.

One datagram a message, any thread. Outside systemd (no NOTIFY_SOCKET) every call does nothing, and no
call raises: a service manager that does not listen must not stop the speech. Neighbours: `service`
says READY and STOPPING, `watchdog` says WATCHDOG=1, which keeps systemd from restarting us.
"""

from __future__ import annotations

import os
import socket
import struct
import time
from collections.abc import Mapping

PATIENCE_S = 1  # whole seconds; how long a message may wait for a busy systemd
LONGEST_STATUS = 200  # characters; `systemctl status` shows one line


class Notifier:
    """The notify protocol of sd_notify(3). Every method returns True when the message was sent."""

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        environ = os.environ if environ is None else environ
        address = environ.get("NOTIFY_SOCKET", "")
        # "@name" is a socket without a file; other forms (vsock:) are for virtual machines' firmware.
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self._socket: socket.socket | None = None
        if address[:1] in ("/", "@"):
            try:
                self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
                # The kernel's timeout: Python's would spin, as poll() calls an unconnected socket writable.
                self._socket.setsockopt(
                    socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", PATIENCE_S, 0)
                )
            except OSError:
                self._socket = None
        self.watchdog_timeout_s = _watchdog_timeout(environ)

    @property
    def enabled(self) -> bool:
        return self._socket is not None

    @property
    def watchdog_interval_s(self) -> float | None:
        """How often `watchdog` is to be called: twice per timeout, as systemd advises. None: never."""
        return None if self.watchdog_timeout_s is None else self.watchdog_timeout_s / 2

    def ready(self, status: str = "") -> bool:
        return self._send("READY=1", *_status(status))

    def status(self, text: str) -> bool:
        return self._send(*_status(text))

    def reloading(self) -> bool:
        """Reading the configuration again; `ready` ends it. systemd tells old from new by the time."""
        now_us = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
        return self._send("RELOADING=1", f"MONOTONIC_USEC={now_us}")

    def stopping(self, status: str = "") -> bool:
        return self._send("STOPPING=1", *_status(status))

    def watchdog(self) -> bool:
        return self._send("WATCHDOG=1")

    def close(self) -> None:
        """No message is sent after this."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _send(self, *lines: str) -> bool:
        sender = self._socket
        if sender is None or not lines:
            return False
        try:
            sender.sendto("\n".join(lines).encode("utf-8", "replace"), self._address)
        except (OSError, ValueError):  # nobody listens, it is busy, or the path cannot be one
            return False
        return True


def _status(text: str) -> tuple[str, ...]:
    """A line break would begin another assignment: "READY=1" must not come from a status text."""
    line = " ".join(text.split())[:LONGEST_STATUS]
    return (f"STATUS={line}",) if line else ()


def _watchdog_timeout(environ: Mapping[str, str]) -> float | None:
    """Seconds within which systemd wants a sign of life; None when it wants none from this process."""
    try:
        timeout_us = int(environ.get("WATCHDOG_USEC", "0"))
        process = int(environ.get("WATCHDOG_PID", os.getpid()))
    except ValueError:
        return None
    return timeout_us / 1e6 if timeout_us > 0 and process == os.getpid() else None
