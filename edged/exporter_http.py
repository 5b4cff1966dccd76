"""The statistics as a page at an HTTP address, for Prometheus.

Thread `edged-http` takes connections, and a short-lived one of the same name answers each, so that a client
that is slow or silent keeps nobody waiting. Imported only when such an address is configured. No name of a
client is looked up: on a machine without a network that could take minutes. Neighbour: `exporter`.
"""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingTCPServer
from time import monotonic
from typing import Any

from edged.errors import EdgedError
from edged.metrics import CONTENT_TYPE

log = logging.getLogger("edged.metrics")
REQUEST_S = 5.0  # how long a connection may last, from its first byte to our last, however it is spent
MOST = 8  # connections at a time; one Prometheus asks a few times a minute. Another one ends the oldest
LOOK_S = 0.5  # how soon a stop, or the end of a connection's time, is noticed


class Page(ThreadingTCPServer):
    """Bound when it is made. `serve` is the only one that ends connections before their time."""

    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False  # the stop waits for no client
    timeout = LOOK_S

    def __init__(self, host: str, port: int, text: Callable[[], str]) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.text = text
        self._lock = threading.Lock()  # guards what follows: each connection's thread takes its own out
        self._ends: dict[socket.socket, float] = {}  # when the time of a connection is over, the oldest first
        super().__init__((host, port), _Handler)

    def serve(self, stopping: threading.Event) -> None:
        while not stopping.is_set():
            self.handle_request()
            self._end(until=monotonic())
        self._end()

    def process_request(self, request: Any, client_address: Any) -> None:
        self._end(most=MOST - 1)
        with self._lock:
            self._ends[request] = monotonic() + REQUEST_S
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:  # under it, so that `_end` never meets a descriptor that was closed and used again
            self._ends.pop(request, None)
        super().shutdown_request(request)

    def _end(self, until: float = float("inf"), most: int = 0) -> None:
        """Ends the connections whose time is over by then, so that no more than `most` are left of them; a
        thread that waits for one is woken."""
        with self._lock:
            over = [connection for connection, end in self._ends.items() if end <= until]
            for connection in over[: max(0, len(over) - most)]:
                del self._ends[connection]
                with suppress(OSError):  # it went away by itself
                    connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        log.debug("a reader of the statistics went away", exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    server: Page
    timeout = REQUEST_S
    server_version = "edged"
    sys_version = ""

    def do_GET(self) -> None:
        if self.path.partition("?")[0] not in ("/", "/metrics"):
            self.send_error(404)
            return
        try:
            body = self.server.text().encode()
        except EdgedError as exc:
            self.send_error(503, explain=exc.message)
            return
        self.send_response(200)
        self.send_header("Content-Type", CONTENT_TYPE)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        log.debug(format, *args)
