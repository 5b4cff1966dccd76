"""The socket thread: the only owner of the ROUTER and PUB sockets.

Thread `edged-server`. Requests come in as frames, are decoded by `protocol` and answered by the `Desk`;
events of jobs come from other threads through `post`, which wakes the loop with an eventfd. Sends never
block (`outgoing`). Knows nothing of voices, engines or sound; the service composes it with them.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import suppress
from dataclasses import replace
from time import monotonic
from typing import Any, TypeVar

import msgspec
import zmq

from edged import __version__, protocol
from edged.admission import Admission
from edged.delivery import Delivery
from edged.desk import Desk
from edged.endpoints import Endpoints
from edged.errors import BadFrames, ClientTooSlow, EdgedError, FrameTooLarge, InternalError, ShuttingDown
from edged.job import Job
from edged.log import event as log_event
from edged.monitor import Connections
from edged.notices import Seldom
from edged.outgoing import Outgoing
from edged.settings import Limits
from edged.threads import Pulse, name_thread
from edged.tickets import Peer

T = TypeVar("T")
log = logging.getLogger("edged.server")
READ_S = 0.005  # how long requests are read before events are sent again
RETRY_MS = 10  # how often a backlog is tried again
LAST_WORDS_S = 1.0  # how long the last answers may take to leave at the stop
ANSWER_S = 2.0  # how long another thread waits for this one; longer than that it has ended
REFUSALS_LOGGED = 10  # lines a second: a flood of bad requests must not fill the disk


class Server:
    """Runs the protocol on bound sockets until `stop`."""

    def __init__(
        self,
        endpoints: Endpoints,
        admission: Admission,
        desk: Desk,
        limits: Limits,
        on_crash: Callable[[BaseException], None],
        reload: Callable[[Callable[[protocol.Event], None]], None],
    ) -> None:
        """reload: begins one, and tells the answer later, on a thread of its own."""
        self._reload = reload
        self._on_crash = on_crash
        self._endpoints = endpoints
        self._admission = admission
        self._desk = desk
        self._limits = limits
        self._wake_fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._questions: deque[Callable[[], None]] = deque()
        self._outbox: deque[tuple[Job, protocol.Event | None, bytes | None]] = deque()
        self._outgoing = Outgoing(
            endpoints.router, limits.client_stall_s, self._forget, self._stalled, admission.stats.add_lost
        )
        self._delivery = Delivery(admission, self._outgoing, endpoints.pub)
        self._connections = Connections(endpoints.router, endpoints.pub)
        self._refusals = Seldom(REFUSALS_LOGGED)
        self._stopping = False
        self._unreachable = ""  # why no new client can find the sockets
        self.pulse = Pulse()  # a round: what is due to be sent, and 5 ms of requests
        self._thread = threading.Thread(target=self._main, name="edged-server", daemon=True)

    def start(self) -> None:
        self._thread.start()

    @property
    def unsent(self) -> bool:
        """Any thread: some client has yet to take what it was sent. (What libzmq has taken is not known.)"""
        return bool(self._outbox) or self._outgoing.waiting

    def post(self, job: Job, event: protocol.Event | None, payload: bytes | None = None) -> None:
        """Any thread: an event of a job, in order; None means that the job has ended."""
        self._outbox.append((job, event, payload))
        os.eventfd_write(self._wake_fd, 1)

    def ask(self, question: Callable[[], T], within_s: float = ANSWER_S) -> T:
        """Another thread: the answer that this thread gives between two rounds. Raises `ShuttingDown`."""
        answer: Future[T] = Future()

        def work() -> None:
            try:
                answer.set_result(question())
            except Exception as exc:
                answer.set_exception(exc)

        self._questions.append(work)
        os.eventfd_write(self._wake_fd, 1)
        try:
            return answer.result(within_s)
        except FutureTimeout:
            raise ShuttingDown("the socket thread does not answer") from None

    def tell(self, peer: Peer, event: protocol.Event) -> None:
        """Another thread: an answer that took longer."""
        self._questions.append(lambda: self._delivery.send(peer, event))
        os.eventfd_write(self._wake_fd, 1)

    def look_after(self) -> None:
        """Main thread, about once a second: removed files of the sockets are made again, and open jobs that
        nobody writes to any more are closed."""
        wanted = [self._restore] if self._endpoints.lost() else []
        wanted += [self._close_idle] if self._admission.open_jobs.waiting else []
        if wanted:
            self._questions.extend(wanted)
            os.eventfd_write(self._wake_fd, 1)

    def stop(self, timeout_s: float) -> None:
        """Sends what is due and ends the thread; the sockets are closed by their owner, the service."""
        self._stopping = True
        os.eventfd_write(self._wake_fd, 1)
        self._thread.join(timeout_s)

    # -- the loop -------------------------------------------------------------------------------

    def _main(self) -> None:
        name_thread("edged-server")
        try:
            self._serve()
        except BaseException as exc:
            log_event(log, logging.CRITICAL, "the socket thread died", exc_info=True, code="socket_died")
            self._on_crash(exc)
        finally:
            self._connections.close()

    def _serve(self) -> None:
        poller = zmq.Poller()
        poller.register(self._endpoints.router, zmq.POLLIN)
        for monitor in self._connections.monitors:
            poller.register(monitor, zmq.POLLIN)
        poller.register(self._wake_fd, zmq.POLLIN)
        while not self._stopping:
            self.pulse.rest()
            poller.poll(RETRY_MS if self._outgoing.waiting else None)
            self.pulse.beat()
            self._turn()
        # What was posted before the stop is still sent, to clients that read.
        until = monotonic() + LAST_WORDS_S
        while True:
            self._turn()
            if not (self._outbox or self._outgoing.waiting) or monotonic() > until:
                return
            poller.poll(RETRY_MS)

    def _turn(self) -> None:
        """One round: the outgoing, which others wait for, the departed, the incoming."""
        with suppress(BlockingIOError):
            os.eventfd_read(self._wake_fd)
        while self._outbox:
            self._delivery.deliver(*self._outbox.popleft())
        while self._questions:
            self._questions.popleft()()
        self._outgoing.flush()
        for identity in self._connections.departed():
            self._forget(identity)
        self._watch_connections()
        until = monotonic() + READ_S
        while monotonic() < until:
            try:
                frames = self._endpoints.router.recv_multipart(zmq.NOBLOCK, copy=False)
            except zmq.Again:
                break
            self._receive(frames)

    def _watch_connections(self) -> None:
        """Starts afresh before libzmq runs out of file descriptors, which would abort the process."""
        if self._connections.refused:
            times = self._connections.refused
            addresses = ",".join(self._endpoints.refused()) or None
            text = "client refused: unknown key"
            log_event(log, logging.WARNING, text, code="unknown_key", times=times, address=addresses)
            self._connections.refused = 0
        count = len(self._connections)
        if count >= self._endpoints.most_connections:
            text = "too many connections: all of them are closed"
            log_event(log, logging.ERROR, text, code="too_many_connections", connections=count)
            for identity in self._connections.all():
                self._forget(identity)
            self._connections.clear()
            self._endpoints.reset()

    def _restore(self) -> None:
        if not self._endpoints.lost():
            return
        level, text = logging.WARNING, "the socket's files were removed, and are made again"
        try:
            self._endpoints.restore()
            self._unreachable = ""
        except (EdgedError, OSError) as exc:
            level, text = logging.ERROR, f"the socket's files were removed, and cannot be made again: {exc}"
            if text == self._unreachable:  # it is tried every second, and told once
                return
            self._unreachable = text
        log_event(log, level, text, code="socket_lost", endpoint=self._endpoints.endpoint)

    def _close_idle(self) -> None:
        for job in self._admission.close_idle():
            log_event(log, logging.INFO, "open job closed: no more text came", job=job.id)

    # -- requests -------------------------------------------------------------------------------

    def _receive(self, frames: list[Any]) -> None:
        identity = frames[0].bytes
        peer = self._connections.seen(identity, frames[-1])
        body = frames[1:]
        if len(body) > 1 and len(body[0]) == 0:
            peer = replace(peer, delimited=True)
            body = body[1:]
        header = body[0].buffer if body else b""
        try:
            if len(body) != 1:
                raise BadFrames(f"expected one header frame, got {len(body)} frames")
            if len(header) > self._limits.frame_kb * 1024:
                raise FrameTooLarge(
                    f"the header frame has {len(header)} bytes, the limit is {self._limits.frame_kb} KiB"
                )
            request = protocol.decode_request(header)
            self._answer(request, peer)
        except EdgedError as error:
            self._refuse(peer, header, error)
        except Exception as exc:
            text = "request could not be handled"
            log_event(log, logging.ERROR, text, code=InternalError.code, fault=type(exc).__name__)
            log.debug("traceback", exc_info=True)
            self._refuse(peer, header, InternalError("the request could not be handled"))

    def _refuse(self, peer: Peer, header: bytes | memoryview, error: EdgedError) -> None:
        self._admission.stats.rejected[error.code] += 1
        allowed, unsaid = self._refusals.ask(monotonic())
        if allowed:
            log_event(
                log, logging.INFO, "request refused", code=error.code, uid=peer.uid, unsaid=unsaid or None
            )
        small = len(header) <= self._limits.frame_kb * 1024
        self._delivery.send(peer, protocol.failed(error, id=protocol.request_id(header) if small else ""))

    def _answer(self, request: protocol.AnyRequest, peer: Peer) -> None:
        if isinstance(request, protocol.Repeat):
            request = self._admission.repeated(request)
        if isinstance(request, protocol.Speech):
            accepted = self._admission.admit(request, peer)
            log_event(
                log,
                logging.INFO,
                "job accepted",
                job=accepted.job,
                kind=request.__struct_config__.tag,
                priority=self._admission.tickets[accepted.job].job.priority.name.lower(),
                characters=len(request.text),
                position=accepted.position,
            )
            self._delivery.publish(accepted)
            if request.reply != "final":
                self._delivery.send(peer, accepted)
            return
        reply: protocol.Event
        if isinstance(request, protocol.Control):
            reply = self._desk.controlled(request.id, self._admission.control(request, peer))
        elif isinstance(request, protocol.Cancel):
            reply = protocol.CancelReply(id=request.id, jobs=self._admission.cancel(request, peer))
        elif isinstance(request, protocol.Append):
            reply = self._admission.append(request, peer)
        elif isinstance(request, protocol.Close):
            reply = self._admission.close(request, peer)
        elif isinstance(request, protocol.History):
            reply = self._desk.history(request.id, request.last)
        elif isinstance(request, protocol.Status):
            reply = self._desk.status(request.id, request.memory)
        elif isinstance(request, protocol.Voices):
            reply = self._desk.voices(request.id)
        elif isinstance(request, protocol.Stats):
            reply = self._desk.stats(request.id)
        elif isinstance(request, protocol.Explain):
            self._admission.explain(request, lambda event: self.tell(peer, event))
            log_event(log, logging.INFO, "explanation asked for", uid=peer.uid, characters=len(request.text))
            return
        elif isinstance(request, protocol.Reload):
            self._admission.check_open()
            log_event(log, logging.INFO, "reload asked for", uid=peer.uid)
            self._reload(lambda event: self.tell(peer, msgspec.structs.replace(event, id=request.id)))
            return
        else:
            reply = protocol.Pong(id=request.id, version=__version__)
        self._delivery.send(peer, reply)

    # -- connections ----------------------------------------------------------------------------

    def _stalled(self, identity: bytes, why: str) -> None:
        """A client does not read: its jobs fail, which frees what they hold."""
        for ticket in list(self._admission.tickets.values()):
            if ticket.peer.identity == identity and ticket.reply != "ack":
                ticket.job.fail(ClientTooSlow(why))

    def _forget(self, identity: bytes) -> None:
        """A connection is gone: applies its jobs' policy and drops what waits for it."""
        self._outgoing.drop(identity)
        self._connections.forget(identity)
        self._admission.peer_gone(identity)
