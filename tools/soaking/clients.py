"""The load of tools/soak: connections that ask, listen, cancel, ask wrongly, and leave in the middle.

Thread `soak-load`, one poll loop over all sockets. Half of the clients send the frames of a REQ socket (from
a DEALER, because a REQ drops the second answer that is looked for). Nothing is judged here; `report` does.
Neighbour: `rig`, for the times when no daemon was there.
"""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any

import zmq
from benchmarks.common import varied
from load_report import Call

from edged import protocol
from edged.errors import BadReply
from soaking.rig import Outage, within

THINK_S = (0.05, 0.6)  # between the end of a job and the next one
TICK_MS = 10
GIVE_UP_S = 10.0  # after a restart, a client takes an answer that has not come for lost
QUIET_S = 0.5  # how long, after the last ending, somebody who answers twice is waited for
REFUSALS = frozenset({"busy", "over_budget", "starting", "shutting_down"})  # retryable: nothing was done
WRONG: Sequence[tuple[str, dict[str, Any]]] = (
    ("unknown_voice", {"voice": "nobody"}),
    ("empty_text", {"text": ""}),
    ("unknown_field", {"sped": 1}),
    ("bad_value", {"speed": 9}),
    ("text_too_long", {"text": "x" * 6000}),
    ("unknown_operation", {"op": "sing"}),
)


@dataclass(slots=True)
class Asked(Call):
    """expected: how it may end. left: the client went away; interrupted: the daemon did."""

    expected: frozenset[str] = frozenset()
    left: bool = False
    interrupted: bool = False
    streamed: bool = False

    def met(self, outages: Sequence[Outage], now: float) -> bool:
        """Whether one of them was at some time between its sending and its ending."""
        return within(outages, self.sent, self.ended or now)


class Person:
    """One client with one job at a time."""

    def __init__(self, number: int, context: zmq.Context[Any], endpoint: str, seed: int) -> None:
        self.asked: dict[str, Asked] = {}
        self.stray: list[str] = []
        self.connects = 0
        self._number, self._context, self._endpoint = number, context, endpoint
        self._delimited = number % 2 == 0
        self._chance = random.Random(f"{seed} {number}")
        self._texts = varied(10**9, self._chance.randrange(10**6), 2, 14)
        self._open: Asked | None = None
        self._cancel_at = self._leave_at = 0.0
        self._next = monotonic() + self._chance.random()
        self.connect()

    @property
    def idle(self) -> bool:
        return self._open is None

    def connect(self) -> None:
        self.connects += 1
        self.socket = self._context.socket(zmq.DEALER)
        self.socket.linger = 0
        self.socket.rcvhwm = 0  # an answer that is dropped here would look like one that never came
        self.socket.connect(self._endpoint)

    def tick(self, now: float, outages: Sequence[Outage], until: float) -> bool:
        """Does what is due; True when it has a new socket."""
        call = self._open
        if call is None:
            if self._next <= now < until:
                self._ask(now)
            return False
        if self._leave_at and now >= self._leave_at:
            call.left = True
            self._close(call, now)
            self.socket.close()
            self.connect()
            return True
        if self._cancel_at and now >= self._cancel_at:
            self._cancel_at = 0.0
            self._send({"op": "cancel", "id": f"cancel {call.id}", "target": call.id})
        if any(o.end >= call.sent and o.end + GIVE_UP_S < now for o in outages):
            call.interrupted = True
            self._close(call, now)
        return False

    def receive(self, now: float) -> None:
        while self.socket.getsockopt(zmq.EVENTS) & zmq.POLLIN:
            frames = self.socket.recv_multipart()[1 if self._delimited else 0 :]
            try:
                self._take(protocol.decode_event(frames[0]), now)
            except (BadReply, IndexError):
                self.stray.append("unreadable")

    def _ask(self, now: float) -> None:
        chance = self._chance
        events = not self._delimited and chance.random() < 0.7
        request: dict[str, Any] = {"op": "synthesize", "text": next(self._texts)}
        expected = {"done"}
        if events:
            request |= {"reply": "events", "stream": True, "format": "pcm_s16le"}
        else:
            request["format"] = chance.choice(("wav", "flac", "ogg_opus", "pcm_f32le"))
        self._cancel_at = self._leave_at = 0.0
        fate = chance.random()
        if fate < 0.1:
            code, wrong = chance.choice(WRONG)
            request |= wrong
            expected = {code}
        elif fate < 0.2:
            self._cancel_at = now + chance.random() * 0.1
            expected.add("cancelled")
        elif fate < 0.25:
            self._leave_at = now + chance.random() * 0.1
        name = f"{self._number}.{len(self.asked)}"
        self._open = self.asked[name] = Asked(name, now, expected=frozenset(expected), streamed=events)
        self._send({**request, "id": name})

    def _take(self, event: protocol.AnyEvent, now: float) -> None:
        if event.id.startswith("cancel "):
            return
        call = self.asked.get(event.id)
        ending = isinstance(event, protocol.TERMINAL)
        if call is None or call.endings or call.left:
            self.stray.append(f"{type(event).__name__.lower()} for {event.id or 'no request'}")
            if call is not None and ending:
                call.endings += 1
        elif isinstance(event, protocol.Audio):
            call.hear(now, event.samples / event.sample_rate)
        elif ending:
            call.endings, call.ended = 1, now
            call.outcome = getattr(event, "code", "") or type(event).__name__.lower()
            if call is self._open:
                self._close(call, now)

    def _close(self, call: Asked, now: float) -> None:
        self._open = None
        self._cancel_at = self._leave_at = 0.0
        self._next = now + self._chance.uniform(*THINK_S)

    def _send(self, header: dict[str, Any]) -> None:
        frame = json.dumps(header).encode()
        self.socket.send_multipart([b"", frame] if self._delimited else [frame])


class Load:
    """The clients, from `start` to `stop`."""

    def __init__(self, endpoint: str, outages: Sequence[Outage], clients: int, seed: int) -> None:
        self._context: zmq.Context[Any] = zmq.Context()
        self._outages = outages
        self.people = [Person(n, self._context, endpoint, seed) for n in range(clients)]
        self._until = float("inf")
        self._give_up = float("inf")
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._main, name="soak-load", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, drain_s: float) -> list[Asked]:
        """Sends no more, waits for what is under way, and returns all that was asked."""
        now = monotonic()
        self._give_up = now + drain_s
        self._until = now
        self._thread.join(drain_s + 60)
        self._context.destroy(linger=0)
        if self.error is not None:
            raise self.error
        return [call for person in self.people for call in person.asked.values()]

    def _main(self) -> None:
        try:
            self._loop()
        except BaseException as error:
            self.error = error

    def _loop(self) -> None:
        poller = zmq.Poller()
        by_socket = {person.socket: person for person in self.people}
        for socket in by_socket:
            poller.register(socket, zmq.POLLIN)
        quiet_since = 0.0
        while True:
            now = monotonic()
            for person in self.people:
                former = person.socket
                if person.tick(now, list(self._outages), self._until):
                    poller.unregister(former)
                    del by_socket[former]
                    poller.register(person.socket, zmq.POLLIN)
                    by_socket[person.socket] = person
            for socket, _ in poller.poll(TICK_MS):
                by_socket[socket].receive(monotonic())
            if now >= self._until:
                idle = all(person.idle for person in self.people)
                quiet_since = (quiet_since or now) if idle else 0.0
                if now >= self._give_up or (quiet_since and now - quiet_since >= QUIET_S):
                    return
