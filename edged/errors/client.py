"""Errors that the client library raises on its side of the socket. Neighbour: `base`."""

from __future__ import annotations

from edged.errors.base import EdgedError


class TransportError(EdgedError):
    code = "transport"
    retryable = True


class NoDaemon(TransportError):
    code = "no_daemon"
    default_hint = "start it with: edged serve"


class ReplyTimeout(TransportError):
    code = "timeout"
    default_hint = "the daemon accepted the connection but did not answer in time"


class BadReply(TransportError):
    code = "bad_reply"
    retryable = False
    default_hint = "client and daemon may be of different versions"


class JobCancelled(EdgedError):
    code = "cancelled"
