"""Sending: `taken` is called once for every message, whatever becomes of it; audio is bounded elsewhere."""

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
    why: list[str] = []

    def stalled(identity: bytes, reason: str) -> None:
        gone.append(identity)
        why.append(reason)

    out = Outgoing(router, stall_s, gone.append, stalled, lambda count: None)
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
    if ending == "too many":
        assert why == ["the client left 5 messages besides audio (25 bytes) unread"]
    elif ending == "stalled":
        assert why == ["the client took no message for -1 s"]


def waiting(monkeypatch: pytest.MonkeyPatch) -> tuple[Outgoing, list[str]]:
    """The audio of two jobs, ten messages each, and three others wait for one peer, which may leave four."""
    monkeypatch.setattr(outgoing, "BACKLOG", 4)
    monkeypatch.setattr(outgoing, "BACKLOG_BYTES", 40)
    router: Any = Router()
    router.peer = "full"
    taken: list[str] = []

    def stalled(identity: bytes, reason: str) -> None:
        taken.append(reason)

    out = Outgoing(router, 60.0, lambda identity: None, stalled, lambda count: None)
    for _ in range(10):
        for job in ("a", "b"):
            out.send([b"peer", bytes(100)], lambda job=job: taken.append(job), job)  # type: ignore[misc]
    for _ in range(3):
        out.send([b"peer", b"x"])
    return out, taken


def test_audio_does_not_count_towards_the_bound_and_all_else_does(monkeypatch: pytest.MonkeyPatch) -> None:
    out, taken = waiting(monkeypatch)
    assert not taken
    out.send([b"peer", bytes(100)])
    assert taken == [*["a", "b"] * 10, "the client left 4 messages besides audio (119 bytes) unread"]
    assert not out.waiting


def test_the_audio_of_one_job_is_discarded_and_the_rest_keeps_its_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out, taken = waiting(monkeypatch)
    out.discard(b"peer", "a")
    out.discard(b"peer", "c")
    out.discard(b"another", "b")
    assert taken == ["a"] * 10
    sent: list[bytes] = []
    out._router.send_multipart = lambda frames, flags: sent.append(frames[1])  # type: ignore[assignment,method-assign]
    out.flush()
    assert sent == [bytes(100)] * 10 + [b"x"] * 3
    assert taken == ["a"] * 10 + ["b"] * 10
    assert not out.waiting
