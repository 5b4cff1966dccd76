"""Who may come in over TCP: keys of clients, and the addresses of those that were turned away.

Imported where listen.tcp is set only: pyzmq's authenticator brings asyncio. It answers libzmq on a thread of
its own; `refused` is taken by the socket thread. Neighbours: `endpoints`, and `server`, which logs them.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from pathlib import Path

import zmq
from zmq.auth import load_certificates
from zmq.auth.thread import ThreadAuthenticator

MOST_REFUSED = 64  # addresses that are kept until they are logged


class Doorkeeper(ThreadAuthenticator):
    """clients: the folder with one public key file (*.key) for each client."""

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], domain: str, clients: Path) -> None:
        super().__init__(context)
        self._known = {key for key, known in load_certificates(clients).items() if known}
        self._refused: deque[str] = deque(maxlen=MOST_REFUSED)
        self._asking = ""
        self.start()
        self.configure_curve_callback(domain, credentials_provider=self)

    def refused(self) -> list[str]:
        """Addresses of clients whose key is not known, since the last call; each once, in their order."""
        found: dict[str, None] = {}
        with suppress(IndexError):  # all are taken; the other thread may add more meanwhile
            while True:
                found[self._refused.popleft()] = None
        return list(found)

    # -- the authenticator's thread -------------------------------------------------------------

    async def handle_zap_message(self, msg: list[bytes]) -> None:
        """ZeroMQ's RFC 27: version, request, domain, address, identity, mechanism, credentials."""
        self._asking = msg[3].decode("ascii", "replace") if len(msg) > 3 else ""
        await super().handle_zap_message(msg)

    def callback(self, domain: str, key: bytes) -> bool:
        """Whether this key may come in."""
        if key in self._known:
            return True
        self._refused.append(self._asking)
        return False
