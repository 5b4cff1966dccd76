"""One DEALER socket and the calls that wait on it: all that `Client` and `AsyncClient` have in common.

Nothing here blocks and there is no thread: the owner calls `pump` when a descriptor is readable, and
`patience` to learn how long it may sleep. Answers are sorted by the request's `id` into the `Call` that
waits for them, so many calls share one socket and none ever sees another's audio. A call's answers are
not bounded here; the daemon bounds them (limits.text_chars, limits.jobs_per_client).

Whether the daemon is there is known from the socket's own monitor, not guessed from silence: the daemon
drops a connection's jobs when it ends, so every waiting call fails at that moment. Silence while
connected means a long job or a stuck daemon; a ping sent alongside tells which.
"""

from __future__ import annotations

import os
import struct
from contextlib import suppress
from itertools import count
from time import monotonic

import msgspec
import zmq

from edged import protocol
from edged.client.call import Call
from edged.client.endpoint import CHECK_ENDPOINT, Curve, look, start_it, unreachable
from edged.errors import BadReply, BadValue, EdgedError, FrameTooLarge, NoDaemon, ReplyTimeout

CONNECT_S = 1.0  # a restarting daemon gets this long before NoDaemon; local connects take under 10 ms
LINGER_MS = 1_000  # a cancel sent just before closing must still leave the process
HEARTBEAT_MS = 1_000  # tcp only: an unplugged cable is silent, a closed local socket is not
HEARTBEAT_LOST_MS = 5_000
FRAME_KB = 256  # the daemon's default limits.frame_kb; it cuts the connection above it

_MONITORED = (
    zmq.EVENT_CONNECTED
    | zmq.EVENT_HANDSHAKE_SUCCEEDED
    | zmq.EVENT_DISCONNECTED
    | zmq.EVENT_HANDSHAKE_FAILED_AUTH
    | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
    | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
)

# zmq.utils.monitor would read it too, but imports asyncio.
_MONITOR_EVENT = struct.Struct("=H")


# Python makes such halves of bytes that are not UTF-8 (a file name, an argument).
TORN = "leave it out, or put a sign in its place: text.encode('utf-8', 'replace').decode()"


class Connection:
    """The socket, its monitor and the table of waiting calls. Used by one thread at a time."""

    def __init__(
        self, endpoint: str, name: str, timeout_s: float, curve: Curve | None, frame_kb: int
    ) -> None:
        if not _is_unicode(endpoint) or "\0" in endpoint:
            raise BadValue("the endpoint holds characters that no address has", CHECK_ENDPOINT)
        self.endpoint = endpoint
        self.name = name
        self.connected = False
        self._timeout_s = timeout_s
        self._frame_limit = frame_kb * 1024
        self._reached = False  # connected, though the other side may not have said anything yet
        self._refused = False
        self._heard = 0.0
        self._probing = False
        self._calls: dict[str, Call] = {}
        self._prefix = os.urandom(4).hex()
        self._numbers = count(1)
        self.socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.DEALER)
        self.socket.setsockopt(zmq.LINGER, LINGER_MS)
        # Not IMMEDIATE: at the end of a connection libzmq would drop what has arrived and was not read yet.
        # That a request does not reach a daemon started next week is seen to by `_ended`.
        if endpoint.startswith("tcp:"):
            self.socket.setsockopt(zmq.HEARTBEAT_IVL, HEARTBEAT_MS)
            self.socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, HEARTBEAT_LOST_MS)
            # With a full queue libzmq would not read the daemon's heartbeats either, and seem dead to it.
            self.socket.setsockopt(zmq.RCVHWM, 0)
        self.monitor: zmq.Socket[bytes] = self.socket.get_monitor_socket(_MONITORED)
        try:
            if curve is not None:
                curve.apply(self.socket)
            self.socket.connect(endpoint)
        except zmq.ZMQError as exc:
            self.close()
            raise NoDaemon(
                f"the endpoint {endpoint} cannot be used: {exc.strerror}", CHECK_ENDPOINT
            ) from None
        except EdgedError:
            self.close()
            raise

    @property
    def closed(self) -> bool:
        return bool(self.socket.closed)

    def close(self) -> None:
        """Ends every waiting call; what was sent still gets `LINGER_MS` to leave."""
        self._fail_all("the client was closed")
        self.connected = False
        if not self.closed:
            self.socket.disable_monitor()
            self.monitor.close(linger=0)
            self.socket.close()

    def new_id(self) -> str:
        return f"{self._prefix}-{next(self._numbers)}"

    # -- sending --------------------------------------------------------------------------------

    def encode(self, request: protocol.Request) -> bytes:
        """The header of a request, refused here when the daemon would cut the connection for it."""
        try:
            header = protocol.encode(request)
        except UnicodeEncodeError:
            values = msgspec.structs.asdict(request).items()
            wrong = next((k for k, v in values if isinstance(v, str) and not _is_unicode(v)), "the request")
            raise BadValue(f"{wrong}: holds an unpaired surrogate, half of a character", TORN) from None
        if len(header) > self._frame_limit:
            limit = self._frame_limit // 1024
            raise FrameTooLarge(f"the request has {len(header)} bytes, more than the limit of {limit} KiB")
        return header

    def send(self, call: Call, header: bytes) -> None:
        """Sends a request and enters its call. The owner has seen `connected` just before."""
        self._push(header)
        self._calls[call.id] = call

    def end(self, call: Call) -> None:
        """No more answers are wanted: cancels the job unless its ending has come. Never raises."""
        self.pump()
        if self._calls.pop(call.id, None) is None or not call.long or call.has_ended():
            return
        if not self.connected:  # the daemon ended the job with it
            return
        with suppress(EdgedError):
            self._push(protocol.encode(protocol.Cancel(id=self.new_id(), client=self.name, target=call.id)))

    def _push(self, header: bytes) -> None:
        _ = self.socket.events  # takes in a pipe that came or went; send() alone may look too late
        try:
            self.socket.send(header, zmq.NOBLOCK)
        except zmq.Again:
            raise ReplyTimeout("the daemon does not take requests from its socket") from None

    # -- receiving ------------------------------------------------------------------------------

    def pump(self) -> None:
        """Takes in everything that has arrived: answers first, so that a last one counts."""
        self._receive_all()
        while not self.closed:
            try:
                frames = self.monitor.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            event = _MONITOR_EVENT.unpack_from(frames[0])[0]
            if event == zmq.EVENT_CONNECTED:
                self._reached = True
            elif event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
                self.connected, self._refused = True, False
            elif event == zmq.EVENT_DISCONNECTED:
                self._receive_all()
                self._ended()
            else:
                self._refused = True

    def _ended(self) -> None:
        """The connection is over: its calls fail, and a new one begins, without what the old one held."""
        self.connected = self._reached = self._probing = False
        self._fail_all("the daemon closed the connection")
        with suppress(zmq.ZMQError):
            self.socket.disconnect(self.endpoint)
        while self.monitor.poll(0):  # of a connection that libzmq has made anew meanwhile
            self.monitor.recv_multipart()
        self.socket.connect(self.endpoint)

    def _receive_all(self) -> None:
        while not self.closed:
            try:
                frames = self.socket.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            self._heard = monotonic()
            self._probing = False
            if frames[0] == b"" and len(frames) > 1:
                del frames[0]
            self._sort(frames[0], frames[1] if len(frames) > 1 else b"")

    def _sort(self, header: bytes, payload: bytes) -> None:
        """An answer to its call. Pongs of our own and answers to abandoned calls have none."""
        try:
            event = protocol.decode_event(header)
        except BadReply as exc:
            call = self._calls.get(protocol.request_id(header))
            if call is not None:
                call.put(exc)
            return
        call = self._calls.get(event.id)
        if call is None and isinstance(event, protocol.Failed) and not event.id:
            # The daemon could not read a header far enough to find its id. It reads them in order, so
            # that header is the oldest one that has no answer.
            call = next((c for c in self._calls.values() if not c.answered), None)
        if call is not None:
            call.put((event, payload))

    def _fail_all(self, why: str) -> None:
        calls, self._calls = self._calls, {}
        for call in calls.values():
            call.put(NoDaemon(f"{why} ({self.endpoint})", start_it()))

    # -- waiting --------------------------------------------------------------------------------

    def look(self) -> None:
        """Before a connection is waited for: raises `NoDaemon` when there can be none."""
        if self.closed:
            raise NoDaemon("the client was closed", "make a new Client")
        if not self.connected:
            look(self.endpoint)

    def link(self, since: float) -> float:
        """Seconds the owner may sleep for a connection it awaits `since` then. Raises at the end of them.

        A daemon that was reached but does not greet is overloaded or frozen, not absent.
        """
        slow = self._reached and not self._refused
        left = since + (max(self._timeout_s, CONNECT_S) if slow else CONNECT_S) - monotonic()
        if left > 0:
            return left
        raise self._silent() if slow else unreachable(self.endpoint, self._refused)

    def patience(self, call: Call) -> float:
        """Seconds the owner may sleep for this call. Raises `ReplyTimeout` when there are none left.

        Half of the way through a silence that may be a long job, it asks the daemon with a ping.
        """
        now = monotonic()
        rest = call.begun + call.within_s - now
        if rest <= 0:
            raise ReplyTimeout(f"the daemon has not done it within {call.within_s:g} s")
        return min(rest, self._silence(call, now))

    def _silence(self, call: Call, now: float) -> float:
        """Seconds that the daemon may go on without a word."""
        heard = max(call.since, self._heard) if call.long else call.since
        left = heard + self._timeout_s - now
        if left <= 0:
            raise self._silent()
        if not call.long or self._probing:
            return left
        if left > self._timeout_s / 2:
            return left - self._timeout_s / 2
        self._push(protocol.encode(protocol.Ping(id=self.new_id(), client=self.name)))
        self._probing = True
        return left

    def _silent(self) -> ReplyTimeout:
        return ReplyTimeout(f"the daemon was silent for {self._timeout_s:g} s")


def _is_unicode(value: str) -> bool:
    """A lone surrogate, as Python makes of a byte that is not UTF-8, cannot be sent."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
