"""What leaves through the ROUTER socket: never blocks, keeps order, holds back for peers that do not read.

Socket thread only; the server owns it. libzmq queues a few messages for a peer; what it refuses waits here,
in a bounded backlog of that peer's own, so that one slow client costs no other. Audio is bounded where it is
made, by the settings for replies, and a stream that is held back there may stand here for as long as its
client takes to play it; so only what is no job's audio counts towards the bound.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic

import zmq

from edged.log import event as log_event

log = logging.getLogger("edged.server")
BACKLOG = 1_024  # messages without audio that are kept for a peer that does not read
BACKLOG_BYTES = 64 * 1024 * 1024  # and their size

Taken = Callable[[], None]


@dataclass(slots=True)
class _Message:
    """job: whose audio it is, "" for anything else."""

    frames: list[bytes]
    taken: Taken | None
    job: str

    @property
    def counted(self) -> int:
        return 0 if self.job else sum(map(len, self.frames))


@dataclass(slots=True)
class _Backlog:
    """Messages a peer did not take yet. since: when the oldest was refused; count, size: without audio."""

    since: float
    count: int = 0
    size: int = 0
    messages: deque[_Message] = field(default_factory=deque)

    def append(self, message: _Message) -> None:
        self.messages.append(message)
        self.count += not message.job
        self.size += message.counted

    def popleft(self) -> None:
        message = self.messages.popleft()
        self.count -= not message.job
        self.size -= message.counted


class Outgoing:
    """gone(identity): its connection has ended. stalled(identity, why): it does not read its messages.

    lost(count): so many messages were dropped, because their peer did not read them or is gone.
    """

    def __init__(
        self,
        router: zmq.Socket[bytes],
        stall_s: float,
        gone: Callable[[bytes], None],
        stalled: Callable[[bytes, str], None],
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

    def send(self, frames: list[bytes], taken: Taken | None = None, job: str = "") -> None:
        """Sends frames (identity first), now or later. taken: called once, when the socket took them or
        they are dropped: from then on they are not in memory any more. job: whose audio they are."""
        identity = frames[0]
        backlog = self._backlogs.get(identity)
        if backlog is None:
            if self._try(frames, taken):
                return
            backlog = self._backlogs[identity] = _Backlog(monotonic())
        backlog.append(_Message(frames, taken, job))
        if backlog.count > BACKLOG or backlog.size > BACKLOG_BYTES:
            unread = f"{backlog.count} messages besides audio ({backlog.size} bytes)"
            text = "a client does not read its replies: they are dropped"
            log_event(log, logging.WARNING, text, code="replies_dropped", replies=len(backlog.messages))
            self.drop(identity)
            self._stalled(identity, f"the client left {unread} unread")

    def flush(self) -> None:
        """Tries every backlog again."""
        for identity, backlog in list(self._backlogs.items()):
            while backlog.messages:
                if not self._try(backlog.messages[0].frames, backlog.messages[0].taken):
                    break
                if not backlog.messages:  # the peer turned out to be gone
                    break
                backlog.popleft()
                backlog.since = monotonic()
            if not backlog.messages:
                self._backlogs.pop(identity, None)
            elif monotonic() - backlog.since > self._stall_s:
                self.drop(identity)
                self._stalled(identity, f"the client took no message for {self._stall_s:g} s")

    def discard(self, identity: bytes, job: str) -> None:
        """Forgets the audio of a job that was stopped: nobody wants it, and nothing bounds it any more."""
        backlog = self._backlogs.get(identity)
        if backlog is None:
            return
        unwanted = [message for message in backlog.messages if message.job == job]
        if not unwanted:
            return
        backlog.messages = deque(message for message in backlog.messages if message.job != job)
        if not backlog.messages:
            del self._backlogs[identity]
        for message in unwanted:
            if message.taken is not None:
                message.taken()

    def drop(self, identity: bytes) -> None:
        """Forgets what waits for a peer."""
        backlog = self._backlogs.pop(identity, None)
        if backlog is not None:
            self._lost(len(backlog.messages))
            while backlog.messages:
                taken = backlog.messages.popleft().taken
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
