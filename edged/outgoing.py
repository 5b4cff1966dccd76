"""What leaves through the ROUTER socket: never blocks, keeps order, holds back for peers that do not read.

Socket thread only; the server owns it. libzmq queues a few messages for a peer; what it refuses waits here,
in a bounded backlog of that peer's own, so that one slow client costs no other.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic

import zmq

log = logging.getLogger("edged.server")
BACKLOG = 1_024  # messages kept for a peer that does not read
BACKLOG_BYTES = 64 * 1024 * 1024  # and their size

Taken = Callable[[], None]


@dataclass(slots=True)
class _Backlog:
    """Messages a peer did not take yet. since: when the oldest was refused."""

    since: float
    size: int = 0
    messages: deque[tuple[list[bytes], Taken | None]] = field(default_factory=deque)


class Outgoing:
    """gone(identity): its connection has ended. stalled(identity): it took nothing for `stall_s`.

    lost(count): so many messages were dropped, because their peer did not read them or is gone.
    """

    def __init__(
        self,
        router: zmq.Socket[bytes],
        stall_s: float,
        gone: Callable[[bytes], None],
        stalled: Callable[[bytes], None],
        lost: Callable[[int], None],
    ) -> None:
        self._router = router
        self._stall_s = stall_s
        self._gone = gone
        self._stalled = stalled
        self._lost = lost
        self._backlogs: dict[bytes, _Backlog] = {}

    @property
    def waiting(self) -> bool:
        """Something is to be tried again."""
        return bool(self._backlogs)

    def send(self, frames: list[bytes], taken: Taken | None = None) -> None:
        """Sends frames (identity first), now or later. taken: called once, when the socket took them or
        they are dropped: from then on they are not in memory any more."""
        identity = frames[0]
        backlog = self._backlogs.get(identity)
        if backlog is None:
            if self._try(frames, taken):
                return
            backlog = self._backlogs[identity] = _Backlog(monotonic())
        backlog.messages.append((frames, taken))
        backlog.size += sum(map(len, frames))
        if len(backlog.messages) > BACKLOG or backlog.size > BACKLOG_BYTES:
            log.warning("a client does not read its replies: %d of them are dropped", len(backlog.messages))
            self.drop(identity)
            self._stalled(identity)

    def flush(self) -> None:
        """Tries every backlog again."""
        for identity, backlog in list(self._backlogs.items()):
            while backlog.messages:
                if not self._try(*backlog.messages[0]):
                    break
                if not backlog.messages:  # the peer turned out to be gone
                    break
                frames, _ = backlog.messages.popleft()
                backlog.size -= sum(map(len, frames))
                backlog.since = monotonic()
            if not backlog.messages:
                self._backlogs.pop(identity, None)
            elif monotonic() - backlog.since > self._stall_s:
                self.drop(identity)
                self._stalled(identity)

    def drop(self, identity: bytes) -> None:
        """Forgets what waits for a peer."""
        backlog = self._backlogs.pop(identity, None)
        if backlog is not None:
            self._lost(len(backlog.messages))
            while backlog.messages:
                _, taken = backlog.messages.popleft()
                if taken is not None:
                    taken()

    def _try(self, frames: list[bytes], taken: Taken | None) -> bool:
        """True when the message needs no further care: taken by the socket, or its peer is gone."""
        try:
            self._router.send_multipart(frames, zmq.NOBLOCK)
        except zmq.Again:
            return False
        except zmq.ZMQError as exc:
            if exc.errno != zmq.EHOSTUNREACH:
                raise
            kept = frames[0] in self._backlogs  # then it is the first of those that are dropped
            self.drop(frames[0])
            if taken is not None and not kept:
                taken()
            self._gone(frames[0])
            return True
        if taken is not None:
            taken()
        return True
