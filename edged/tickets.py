"""Live jobs with those who asked for them, and how a request names some of them.

Server thread. Neighbours: `admission` owns the table of tickets, `delivery` answers by them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from edged import protocol
from edged.errors import BadValue, UnknownJob
from edged.job import Job


@dataclass(frozen=True, slots=True)
class Peer:
    """Who sent a request, and how it takes answers.

    identity: the connection's ROUTER id; uid: peer user, -1 when unknown; delimited: it sends, and wants,
    an empty frame before the header, as REQ sockets do.
    """

    identity: bytes
    socket_type: str
    uid: int = -1
    pid: int = -1
    delimited: bool = False


@dataclass(slots=True, eq=False)
class Ticket:
    """A live job with what its client asked for."""

    job: Job
    peer: Peer
    app: str  # the client's own name
    reply: str
    on_disconnect: str
    format: str = ""
    sample_rate: int = 0
    stream: bool = False
    audio: bytes | None = None  # the whole result, kept for reply=final


def named(tickets: Iterable[Ticket], request: protocol.Cancel, peer: Peer) -> list[Job]:
    """The live jobs that a request names: at least one, where it does not name all of a kind.

    Raises `BadValue` where it names none, `UnknownJob` where there is none of that name.
    """
    if request.scope == "job" and not (request.job or request.target):
        operation = request.__struct_config__.tag
        raise BadValue(f"{operation} needs a job", "give job, target, or scope=mine or all")
    hit = [t.job for t in tickets if not t.job.ended and _means(request, peer, t)]
    if request.scope == "job" and not hit:
        raise UnknownJob(f"no live job {request.job or request.target!r}")
    return hit


def _means(request: protocol.Cancel, peer: Peer, ticket: Ticket) -> bool:
    same_connection = ticket.peer.identity == peer.identity
    same_app = bool(request.client) and (ticket.app, ticket.peer.uid) == (request.client, peer.uid)
    if request.scope == "all":
        return True
    if request.scope == "mine":
        return same_connection or same_app
    if request.job:
        return ticket.job.id == request.job
    return ticket.job.client_id == request.target and (same_connection or same_app)
