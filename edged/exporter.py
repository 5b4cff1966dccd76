"""Leaves statistics for Prometheus: in a file, at an HTTP address, or both, as the settings say.

Threads `edged-metrics` (the file) and `edged-http` (the address); neither exists unless it is wanted. Both
ask the server thread for figures, as any client does, and wait: it never waits for them. Neighbours:
`metrics` writes the text, `exporter_http` serves it, the service gives `figures`.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from edged import __version__
from edged.errors import EdgedError
from edged.log import event as log_event
from edged.metrics import text
from edged.protocol import StatsReply
from edged.settings import Stats
from edged.threads import name_thread

if TYPE_CHECKING:
    from edged.exporter_http import Page

log = logging.getLogger("edged.metrics")


class Exporter:
    """An address that cannot be had, or trouble with the file, is logged: speech comes before statistics."""

    def __init__(self, settings: Stats, figures: Callable[[], StatsReply]) -> None:
        self._settings = settings
        self._figures = figures
        self._stopping = threading.Event()
        self._troubled = False
        self._threads: list[threading.Thread] = []
        self._page: Page | None = None

    def start(self) -> None:
        if self._settings.prometheus_file:
            self._run("edged-metrics", self._keep_file)
        if self._settings.prometheus:
            page = self._page = self._listen(self._settings.prometheus)
            if page is not None:
                self._run("edged-http", lambda: page.serve(self._stopping))

    def stop(self, timeout_s: float) -> None:
        """Ends the threads; figures of a daemon that is gone are taken away."""
        self._stopping.set()
        for thread in self._threads:
            thread.join(timeout_s)
        if self._page is not None:
            self._page.server_close()

    @property
    def port(self) -> int:
        """Of the HTTP address; where the settings say 0, the one that the system chose. 0: there is none."""
        return 0 if self._page is None else int(self._page.server_address[1])

    def text(self) -> str:
        """Any thread but the server's. Raises `EdgedError` when that one does not answer."""
        return text(self._figures(), __version__)

    def _run(self, name: str, work: Callable[[], None]) -> None:
        def main() -> None:
            name_thread(name)
            work()

        thread = threading.Thread(target=main, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    # -- the file -------------------------------------------------------------------------------

    def _keep_file(self) -> None:
        path = Path(self._settings.prometheus_file)
        while True:
            self._write(path)
            if self._stopping.wait(self._settings.prometheus_file_s):
                break
        try:
            path.unlink(missing_ok=True)
        except (OSError, ValueError) as exc:
            if not self._troubled:
                log.info("%s stays behind: %s", path, exc)

    def _write(self, path: Path) -> None:
        """Whole or not at all: a reader never meets half a file. Trouble is logged once, and its end."""
        beside = path.parent / f".{path.name}.{os.getpid()}"
        try:
            beside.write_text(self.text(), encoding="utf-8")
            beside.replace(path)
        except (OSError, ValueError, EdgedError) as exc:  # ValueError: what can be no path at all
            if not self._troubled and not self._stopping.is_set():
                text = f"statistics cannot be written to {path}: {exc}"
                log_event(log, logging.WARNING, text, code="stats_unwritable")
            self._troubled = True
            with suppress(OSError, ValueError):  # what kept it from being written may keep it from going
                beside.unlink(missing_ok=True)
        else:
            if self._troubled:
                log.info("statistics are written to %s again", path)
            self._troubled = False

    # -- the address ----------------------------------------------------------------------------

    def _listen(self, address: str) -> Page | None:
        from edged.exporter_http import Page  # 20 ms of import that only this needs

        host, _, port = address.rpartition(":")
        try:
            return Page(host.strip("[]"), int(port), self.text)
        except OSError as exc:
            text = (
                f"stats.prometheus: cannot listen at {address}: {exc.strerror or exc} (who has it: ss -ltnp)"
            )
            log_event(log, logging.WARNING, text, code="stats_unserved")
            return None
