"""The clients of tools/load: N connections in one thread, each with at most one job under way.

One poll loop over all sockets, so that the tool takes a few percent of a core and its clock readings are
those of the arrivals. `Client` speaks for one connection, `drive` is the loop. Nothing is judged here:
`load_report` does that with the calls and the `stray` answers of a `Course`.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any

import zmq
from load_report import Call, Course, Reading

from edged import protocol
from edged.errors import BadReply

RETRY_S = (0.05, 0.25)  # a client that was refused comes again after a while in this range
WATCH_S = 0.5  # between two readings of the daemon's memory
QUIET_S = 0.5  # how long, after the last ending, somebody is still waited for who answers twice
TICK_MS = 20  # the longest that a client's next request may be late


@dataclass(frozen=True, slots=True)
class Wish:
    """What every client asks for. request: the fields of the request but its id and text.

    delimited: the frames of a REQ socket. They are sent from a DEALER socket all the same, because a REQ
    socket silently drops the second answer that is looked for. cancel: share of the jobs that are cancelled.
    """

    request: dict[str, Any]
    texts: Sequence[str]
    delimited: bool = False
    cancel: float = 0.0


class Client:
    """One connection."""

    def __init__(self, number: int, socket: zmq.Socket[bytes], wish: Wish, begin: float) -> None:
        self.socket = socket
        self.calls: dict[str, Call] = {}
        self.stray: list[str] = []
        self._number, self._wish, self._next = number, wish, begin
        self._chance = random.Random(number)
        self._open: Call | None = None
        self._cancel_at = 0.0

    @property
    def idle(self) -> bool:
        return self._open is None

    def tick(self, now: float, until: float) -> None:
        """Sends what is due."""
        if self._open is not None:
            if self._cancel_at and now >= self._cancel_at:
                self._cancel_at = 0.0
                self._send({"op": "cancel", "id": f"cancel {self._open.id}", "target": self._open.id})
        elif self._next <= now < until:
            call = self._open = Call(f"{self._number}.{len(self.calls)}", now)
            self.calls[call.id] = call
            wish = self._wish
            if self._chance.random() < wish.cancel:
                self._cancel_at = now + self._chance.random() * 2
            self._send({**wish.request, "id": call.id, "text": self._chance.choice(wish.texts)})

    def receive(self, now: float) -> None:
        while self.socket.getsockopt(zmq.EVENTS) & zmq.POLLIN:
            frames = self.socket.recv_multipart()
            if self._wish.delimited:
                frames = frames[1:]
            try:
                self._take(protocol.decode_event(frames[0]), now)
            except (BadReply, IndexError):
                self.stray.append("unreadable")

    def _take(self, event: protocol.AnyEvent, now: float) -> None:
        if event.id.startswith("cancel "):
            return
        kind = type(event).__name__.lower()
        call = self.calls.get(event.id)
        if call is None or call.endings:
            self.stray.append(f"{kind} for {event.id or 'no request'}")
            if call is not None and isinstance(event, protocol.TERMINAL):
                call.endings += 1
            return
        if isinstance(event, protocol.Started):
            call.started = now
        elif isinstance(event, protocol.Audio):
            call.hear(now, event.samples / event.sample_rate)
        elif isinstance(event, protocol.TERMINAL):
            self._end(call, event, now)

    def _end(
        self, call: Call, event: protocol.Done | protocol.Cancelled | protocol.Failed, now: float
    ) -> None:
        call.ended, call.endings = now, 1
        self._open, self._cancel_at, self._next = None, 0.0, now
        if isinstance(event, protocol.Done):
            call.outcome, call.rtf, call.audio_s = "done", event.rtf, event.audio_s
        elif isinstance(event, protocol.Failed):
            call.outcome, call.retryable = event.code, event.retryable
            self._next = now + self._chance.uniform(*RETRY_S)
        else:
            call.outcome = "cancelled"

    def _send(self, header: dict[str, Any]) -> None:
        frame = json.dumps(header).encode()
        self.socket.send_multipart([b"", frame] if self._wish.delimited else [frame])


class Watch:
    """Asks the daemon for its memory now and then, on a connection of its own."""

    def __init__(self, socket: zmq.Socket[bytes]) -> None:
        self.socket = socket
        self.readings: list[Reading] = []
        self._due = 0.0

    def tick(self, now: float) -> None:
        if now >= self._due:
            self._due = now + WATCH_S
            self.socket.send(protocol.encode(protocol.Stats(id="watch")))

    def receive(self, now: float) -> None:
        event = protocol.decode_event(self.socket.recv_multipart()[0])
        if isinstance(event, protocol.StatsReply):
            self.readings.append(Reading(now, event.rss_mb, event.running))


def drive(
    endpoint: str,
    wish: Wish,
    *,
    clients: int,
    ramp_s: float,
    duration_s: float,
    drain_s: float,
    alive: Callable[[], bool],
    say: Callable[[str], None],
) -> Course:
    """Runs the clients for `duration_s`, then waits for what is under way, at most `drain_s`."""
    context = zmq.Context()
    try:
        context.max_sockets = max(context.max_sockets, clients + 16)
        course = Course(monotonic())
        course.until = course.begin + duration_s
        watch = Watch(_connect(context, endpoint))
        people = [
            Client(n, _connect(context, endpoint), wish, course.begin + ramp_s * n / clients)
            for n in range(clients)
        ]
        _loop(course, watch, people, course.until + drain_s, alive, say)
        course.calls = [call for person in people for call in person.calls.values()]
        course.stray = [stray for person in people for stray in person.stray]
        course.readings = watch.readings
        return course
    finally:
        context.destroy(linger=0)


def _loop(
    course: Course,
    watch: Watch,
    people: Sequence[Client],
    give_up: float,
    alive: Callable[[], bool],
    say: Callable[[str], None],
) -> None:
    poller = zmq.Poller()
    by_socket: dict[Any, Client | Watch] = {p.socket: p for p in (watch, *people)}
    for socket in by_socket:
        poller.register(socket, zmq.POLLIN)
    told, quiet_since = course.begin, 0.0
    while alive():
        now = monotonic()
        for person in people:
            person.tick(now, course.until)
        watch.tick(now)
        for socket, _ in poller.poll(TICK_MS):
            by_socket[socket].receive(monotonic())
        open_calls = sum(not person.idle for person in people)
        course.end = now
        if now >= course.until:
            quiet_since = 0.0 if open_calls else quiet_since or now
            if now >= give_up or (quiet_since and now - quiet_since >= QUIET_S):
                return
        if now - told >= 5:
            told = now
            say(f"{now - course.begin:.0f} s: {open_calls} under way, {_ended(people)} ended")


def _ended(people: Sequence[Client]) -> int:
    return sum(len(person.calls) - (not person.idle) for person in people)


def _connect(context: zmq.Context[zmq.Socket[bytes]], endpoint: str) -> zmq.Socket[bytes]:
    socket = context.socket(zmq.DEALER)
    socket.linger = 0
    socket.rcvhwm = 0  # an answer that is dropped here would look like one that never came
    socket.connect(endpoint)
    return socket
