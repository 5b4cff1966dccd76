"""What the process is told by signals, and the sleep of the main thread that they end.

Main thread, but for `wake`. A signal that another thread receives does not end a lock wait of this one, and
its Python handler runs only here: so the main thread waits on a pipe, which the C handler writes to. SIGTERM
and SIGINT ask for the end, a second one takes it at once; SIGHUP asks for a reload. Neighbour: `service`.
"""

from __future__ import annotations

import logging
import os
import select
import signal
from contextlib import suppress

from edged import log

logger = logging.getLogger("edged")
READ_BYTES = 4096  # at once; how many signals there were does not matter


class Signals:
    """`stops`: how many have asked for the end."""

    def __init__(self) -> None:
        self.stops = 0
        self._hangups = 0
        self._pipe, self._wake_fd = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def receive(self) -> None:
        """From here on, instead of what the signals do by default, and though the parent blocked them."""
        signal.set_wakeup_fd(self._wake_fd, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_stop)
        signal.signal(signal.SIGHUP, self._on_hangup)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM, signal.SIGINT, signal.SIGHUP})

    def wait(self, timeout_s: float) -> None:
        """Until a signal, `wake`, or the end of that time."""
        select.select([self._pipe], [], [], timeout_s)
        with suppress(BlockingIOError):
            os.read(self._pipe, READ_BYTES)

    def wake(self) -> None:
        """Any thread: ends the wait."""
        with suppress(BlockingIOError):  # it is full, and so it wakes already
            os.write(self._wake_fd, b"!")

    def reload_wanted(self) -> bool:
        """Whether there was a SIGHUP since the last call."""
        hangups, self._hangups = self._hangups, 0
        return hangups > 0

    def _on_stop(self, number: int, frame: object) -> None:
        self.stops += 1
        if self.stops > 1:
            log.event(logger, logging.WARNING, "second signal: stopping at once", code="forced_stop")
            os._exit(128 + number)

    def _on_hangup(self, number: int, frame: object) -> None:
        self._hangups += 1
