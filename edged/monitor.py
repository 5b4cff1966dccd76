"""Who is connected: tells the socket thread which connections have ended.

Socket thread only. ROUTER itself does not say that a peer went away; a socket monitor does, by file
descriptor, and each message carries the descriptor it came through. Together they map an ended
connection to its identity at once, without waiting for a heartbeat on a local socket; over TCP the
ZMTP heartbeats end a dead connection first.
"""

from __future__ import annotations

import struct
from typing import Any

import zmq

from edged.admission import Peer

WATCHED = zmq.EVENT_ACCEPTED | zmq.EVENT_DISCONNECTED
# zmq_socket_monitor(3): the first frame is the event's number and value. pyzmq's own reader is not used,
# because importing it brings asyncio.
_EVENT = struct.Struct("=Hi")


class Connections:
    """Maps file descriptors to peers, from messages and monitor events."""

    def __init__(self, router: zmq.Socket[bytes]) -> None:
        self.socket = router.get_monitor_socket(WATCHED)
        self._router = router
        self._peers: dict[bytes, Peer] = {}
        self._by_fd: dict[int, bytes] = {}
        self._gone: list[bytes] = []

    def seen(self, identity: bytes, frame: Any) -> Peer:
        """Notes that a message came in; returns who sent it."""
        fd = frame.get(zmq.SRCFD)
        previous = self._by_fd.get(fd)
        if previous == identity:
            return self._peers[identity]
        if previous is not None:  # the descriptor was reused before its end was reported
            self._gone.append(previous)
        for other, known in list(self._by_fd.items()):
            if known == identity:  # a client with a fixed identity has reconnected
                del self._by_fd[other]
        self._by_fd[fd] = identity
        peer = self._peers[identity] = _peer(identity, frame)
        return peer

    def departed(self) -> list[bytes]:
        """Identities whose connection ended since the last call."""
        closed: dict[int, bool] = {}
        while self.socket.poll(0):
            number, fd = _EVENT.unpack(self.socket.recv_multipart()[0])
            closed[fd] = number == zmq.EVENT_DISCONNECTED
        # A descriptor that was closed and accepted again belongs to a living connection; its former
        # owner is found when the new one first sends.
        for fd, is_closed in closed.items():
            if is_closed and fd in self._by_fd:
                self._gone.append(self._by_fd.pop(fd))
        gone, self._gone = self._gone, []
        return gone

    def forget(self, identity: bytes) -> None:
        self._peers.pop(identity, None)
        for fd, known in list(self._by_fd.items()):
            if known == identity:
                del self._by_fd[fd]

    def close(self) -> None:
        self._router.disable_monitor()


def _peer(identity: bytes, frame: Any) -> Peer:
    """Peer data of the connection: on ipc the address is `localhost:uid:gid:pid`."""
    try:
        socket_type = str(frame.get("Socket-Type"))
        parts = str(frame.get("Peer-Address")).split(":")
        if len(parts) == 4:
            return Peer(identity, socket_type, uid=int(parts[1]), pid=int(parts[3]))
    except (zmq.ZMQError, ValueError):
        return Peer(identity, "")
    return Peer(identity, socket_type)
