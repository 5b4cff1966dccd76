"""Sending: `taken` is called once for every message, whatever becomes of it."""

from __future__ import annotations

import errno
from typing import Any

import pytest
import zmq

from edged import outgoing
from edged.outgoing import Outgoing


class Router:
    """A socket whose peer reads ("ok"), does not read ("full") or is gone ("gone")."""

    peer = "ok"

    def send_multipart(self, frames: list[bytes], flags: int) -> None:
        if self.peer == "full":
            raise zmq.Again
        if self.peer == "gone":
            raise zmq.ZMQError(errno.EHOSTUNREACH)


@pytest.mark.parametrize("ending", ["read", "gone", "gone at once", "dropped", "stalled", "too many"])
def test_every_message_is_off_our_hands_once(ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outgoing, "BACKLOG", 4)
    router: Any = Router()
    taken: list[int] = []
    gone: list[bytes] = []
    stall_s = -1.0 if ending == "stalled" else 60.0
    out = Outgoing(router, stall_s, gone.append, gone.append, lambda count: None)
    router.peer = "gone" if ending == "gone at once" else "full"
    count = 5 if ending == "too many" else 3
    for number in range(count):
        out.send([b"peer", b"x"], lambda number=number: taken.append(number))  # type: ignore[misc]
        assert ending in ("too many", "gone at once") or not taken
    if ending == "dropped":
        out.drop(b"peer")
    router.peer = {"read": "ok", "gone": "gone"}.get(ending, router.peer)
    out.flush()
    assert taken == list(range(count))
    assert not out.waiting
    assert (ending in ("read", "dropped")) == (not gone)
