"""The statistics as a page at an HTTP address, for Prometheus.

Thread `edged-http`; imported only when such an address is configured. No name of a client is looked up: on a
machine without a network that could take minutes. Neighbour: `exporter`.
"""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from socketserver import TCPServer
from typing import Any

from edged.errors import EdgedError
from edged.metrics import CONTENT_TYPE

log = logging.getLogger("edged.metrics")
READ_S = 2.0  # how long a client may take over its request, since it keeps the others waiting
LOOK_S = 0.5  # how soon a stop is noticed


class Page(TCPServer):
    """Bound when it is made. One request at a time: one Prometheus asks a few times a minute."""

    allow_reuse_address = True
    timeout = LOOK_S

    def __init__(self, host: str, port: int, text: Callable[[], str]) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.text = text
        super().__init__((host, port), _Handler)

    def serve(self, stopping: threading.Event) -> None:
        while not stopping.is_set():
            self.handle_request()

    def handle_error(self, request: Any, client_address: Any) -> None:
        log.debug("a reader of the statistics went away", exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    server: Page
    timeout = READ_S
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
