"""Who is connected: tells the socket thread which connections have ended, and how many there are.

Socket thread only. ROUTER itself does not say that a peer went away; a socket monitor does, by file
descriptor, and each message carries the descriptor it came through. Together they map an ended
connection to its identity at once, without waiting for a heartbeat on a local socket; over TCP the
ZMTP heartbeats end a dead connection first.

A descriptor is reused as soon as it is free, while messages of its former owner can still be unread.
Which of two owners is the newer is told by the identities libzmq gives: a zero byte and a counter.
"""

from __future__ import annotations

import struct
from typing import Any

import zmq

from edged.tickets import Peer

WATCHED = zmq.EVENT_ACCEPTED | zmq.EVENT_DISCONNECTED | zmq.EVENT_HANDSHAKE_FAILED_AUTH
# zmq_socket_monitor(3): the first frame is the event's number and value. pyzmq's own reader is not used,
# because importing it brings asyncio.
_EVENT = struct.Struct("=Hi")
_OWN_IDENTITY = struct.Struct(">BI")


class Connections:
    """Maps file descriptors of the ROUTER socket to peers, from messages and monitor events.

    others: sockets whose connections only count. refused: clients turned away for their keys.
    """

    def __init__(self, router: zmq.Socket[bytes], *others: zmq.Socket[bytes]) -> None:
        self._sockets = (router, *others)
        self.monitors = [socket.get_monitor_socket(WATCHED) for socket in self._sockets]
        self.refused = 0
        self._open: set[int] = set()
        self._peers: dict[bytes, Peer] = {}
        self._by_fd: dict[int, bytes] = {}
        self._gone: list[bytes] = []

    def __len__(self) -> int:
        """Connections that are open now."""
        return len(self._open)

    def seen(self, identity: bytes, frame: Any) -> Peer:
        """Notes that a message came in; returns who sent it."""
        fd = frame.get(zmq.SRCFD)
        owner = self._by_fd.get(fd)
        if owner == identity:
            return self._peers[identity]
        if owner is not None and _is_older(identity, owner):
            self._gone.append(identity)  # a last word, read after the connection had ended
            return _peer(identity, frame)
        if owner is not None:
            self._gone.append(owner)  # its end was not reported yet
        for other, known in list(self._by_fd.items()):
            if known == identity:  # a client with an identity of its own has reconnected
                del self._by_fd[other]
        self._by_fd[fd] = identity
        peer = self._peers[identity] = _peer(identity, frame)
        return peer

    def departed(self) -> list[bytes]:
        """Identities whose connection ended since the last call."""
        for monitor in self.monitors:
            closed: dict[int, bool] = {}
            while monitor.poll(0):
                number, value = _EVENT.unpack(monitor.recv_multipart()[0])
                if number == zmq.EVENT_HANDSHAKE_FAILED_AUTH:
                    self.refused += 1
                    continue
                closed[value] = number == zmq.EVENT_DISCONNECTED
                (self._open.discard if closed[value] else self._open.add)(value)
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

    def all(self) -> list[bytes]:
        """The identities that have sent something and are not known to be gone."""
        return list(self._peers)

    def clear(self) -> None:
        """Every connection was ended by us."""
        self._open.clear()
        self._by_fd.clear()

    def close(self) -> None:
        for socket in self._sockets:
            socket.disable_monitor()


def _is_older(identity: bytes, than: bytes) -> bool:
    """True when both are libzmq's own and the first was given out before the second."""
    if not len(identity) == len(than) == _OWN_IDENTITY.size or identity[0] or than[0]:
        return False
    first, second = (_OWN_IDENTITY.unpack(i)[1] for i in (identity, than))
    return bool(0 < (second - first) % 2**32 < 2**31)  # the counter wraps around


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
