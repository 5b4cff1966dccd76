"""What jobs bring forth, on its way to their clients and to the subscribers: audio, events, their ends.

Socket thread only. `server` takes the events from its outbox and gives them here; `Outgoing` sends, or keeps
what a client has yet to read. Neighbours: `admission` knows the jobs' tickets and closes them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from time import monotonic

import msgspec
import zmq

from edged import protocol
from edged.admission import Admission
from edged.errors import UnspeakableText
from edged.job import Job, JobState, MarkReached, News, Paused, SentenceReached
from edged.log import event as log_event
from edged.outgoing import Outgoing
from edged.stats import first_audio_ms, rtf, waited_ms
from edged.tickets import Peer, Ticket

log = logging.getLogger("edged.server")


def told(job: Job, news: News) -> protocol.Event:
    """Any thread: the event that tells a job's client what happened on the way to its listener."""
    mine, time_s = job.client_id, round(news.time_s, 4)
    if isinstance(news, MarkReached):
        return protocol.Mark(id=mine, job=job.id, name=news.name, time_s=time_s)
    if isinstance(news, SentenceReached):
        return protocol.Position(id=mine, job=job.id, utterance=news.utterance, time_s=time_s)
    if isinstance(news, Paused):
        return protocol.Paused(id=mine, job=job.id, time_s=time_s, reason=news.reason)
    return protocol.Resumed(id=mine, job=job.id, time_s=time_s)


class Delivery:
    """pub: the socket of the subscribers."""

    def __init__(self, admission: Admission, outgoing: Outgoing, pub: zmq.Socket[bytes]) -> None:
        self._admission = admission
        self._outgoing = outgoing
        self._pub = pub

    def deliver(self, job: Job, event: protocol.Event | None, payload: bytes | None) -> None:
        ticket = self._admission.tickets.get(job.id)
        if ticket is None:
            return
        if event is None:
            self._end(ticket)
        elif isinstance(event, protocol.Audio):
            self._audio(ticket, event, payload or b"")
        else:
            self.publish(event)
            if ticket.reply == "events":
                self.send(ticket.peer, event)

    def _audio(self, ticket: Ticket, event: protocol.Audio, payload: bytes) -> None:
        if ticket.job.state in (JobState.CANCELLED, JobState.FAILED):
            return  # its ending is next in the outbox, and nothing of it is to be heard any more
        if ticket.reply == "final":
            ticket.audio = payload
            return
        sent = getattr(ticket.job.sink, "sent", None)
        if event.seq == 0:
            ticket.job.timeline.first_audio = monotonic()
        self.send(
            ticket.peer,
            event,
            payload,
            taken=None if sent is None else lambda: sent(event.samples),
            job=ticket.job.id,
        )

    def _end(self, ticket: Ticket) -> None:
        job = ticket.job
        if ticket.audio is not None:
            job.timeline.first_audio = monotonic()
        event = self._admission.ended(job)
        self.publish(event)
        if not isinstance(event, protocol.Done):
            self._outgoing.discard(ticket.peer.identity, job.id)
        level = logging.WARNING if job.error is not None else logging.INFO
        log_event(
            log,
            level,
            f"job {job.state.value}",
            job=job.id,
            code=job.error.code if job.error else None,
            reason=job.reason or None,
            voice=job.voice,
            phase=job.phase,
            total_s=round(job.timeline.ended - job.timeline.received, 3),
            text_ms=round(job.timeline.text_s * 1e3, 1),
            wait_ms=round(waited_ms(job), 1),
            synthesis_s=round(job.timeline.synthesis_s, 4),
            audio_s=round(job.timeline.audio_s, 3),
            rtf=round(rtf(job), 4),
            first_audio_ms=round(first_audio_ms(job), 1),
        )
        if ticket.reply == "events":
            self.send(ticket.peer, event)
        elif ticket.reply == "final":
            audio = ticket.audio if isinstance(event, protocol.Done) else None
            sent = getattr(job.sink, "sent", None)
            self.send(
                ticket.peer,
                event,
                audio,
                taken=None if sent is None else lambda: sent(0),
                job="" if audio is None else job.id,
            )

    def publish(self, event: protocol.Event) -> None:
        """Lifecycle events go to every subscriber; one that reads too slowly misses some, as PUB does.

        What is said is for the job's own client only.
        """
        if isinstance(event, protocol.Started) and event.refined:
            event = msgspec.structs.replace(event, refined="")
        elif isinstance(event, protocol.Done) and (event.refined or event.marks or event.warnings):
            event = msgspec.structs.replace(event, refined="", marks=[], warnings=[])
        elif isinstance(event, protocol.Failed) and event.code == UnspeakableText.code:
            event = msgspec.structs.replace(event, hint="")
        elif isinstance(event, protocol.Mark):
            event = msgspec.structs.replace(event, name="")
        topic = str(event.__struct_config__.tag).encode()
        self._pub.send_multipart([topic, protocol.encode(event)], zmq.NOBLOCK)

    def send(
        self,
        peer: Peer,
        event: protocol.Event,
        payload: bytes | None = None,
        taken: Callable[[], None] | None = None,
        job: str = "",
    ) -> None:
        """taken: called when the socket has taken the message, or it is dropped. job: whose audio it is."""
        frames = [peer.identity, protocol.encode(event)]
        if peer.delimited:
            frames.insert(1, b"")
        if payload is not None:
            frames.append(payload)
        self._outgoing.send(frames, taken, job)
