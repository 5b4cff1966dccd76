"""Log lines leave the caller's thread: a terminal or pipe that nobody reads must not stop the daemon.

Thread `edged-log` writes what the others log. The queue between is bounded; what does not fit is lost,
and a line says how much. Neighbours: `log` sets it up for the service.
"""

from __future__ import annotations

import logging
import queue
import threading
from time import monotonic, sleep

from edged.threads import name_thread

ROOM = 2_000  # lines
LAST_LINES_S = 1.0  # how long the last lines may take at the end


class Relay(logging.Handler):
    """Passes records on to `target`, in order, on a thread of its own."""

    def __init__(self, target: logging.Handler) -> None:
        super().__init__()
        self.target = target
        self._lost = 0
        self._busy = False
        # Its `put` may interrupt itself, as in a signal handler; the bound is kept by hand.
        self._queue: queue.SimpleQueue[logging.LogRecord] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._main, name="edged-log", daemon=True)
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        if self._queue.qsize() >= ROOM:
            self._lost += 1
        else:
            self._queue.put(record)

    @property
    def idle(self) -> bool:
        """Everything was written."""
        return self._queue.empty() and not self._busy

    def flush(self) -> None:
        """Waits for the lines so far, but not for a reader that has stopped."""
        until = monotonic() + LAST_LINES_S
        while not self.idle and monotonic() < until:
            sleep(0.005)

    def close(self) -> None:
        self.flush()
        super().close()

    def _main(self) -> None:
        name_thread("edged-log")
        while True:
            record = self._queue.get()
            self._busy = True
            lost, self._lost = self._lost, 0
            if lost:
                text = f"{lost} log lines were lost: nobody reads them, or there are too many"
                fields = {"code": "log_lines_lost"}
                line = {"name": "edged.log", "levelno": logging.WARNING, "msg": text, "fields": fields}
                self.target.handle(logging.makeLogRecord(line))
            self.target.handle(record)
            self._busy = False
