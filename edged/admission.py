"""Admission: a typed request becomes a job, or the reason why not; and every live job is known here.

Server thread only, except `Job` callbacks, which other threads run through `outbox`. Nothing is queued
before it passed here, and the number of live jobs is bounded here. Neighbours: the server asks it; the
service gives it the text stage, the sinks and the voices.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import monotonic

from edged import protocol
from edged.audio.encode import check_format
from edged.errors import (
    BadValue,
    Busy,
    DuplicateId,
    EventsNeedDealer,
    OverBudget,
    ShuttingDown,
    Starting,
    TextTooLong,
    UnknownJob,
    UnknownVoice,
    did_you_mean,
)
from edged.explanations import event_of, speech_of
from edged.first_look import look
from edged.forecast import Forecast
from edged.job import Job, JobState, Params, Priority, Sink
from edged.params import reading_options, resolve
from edged.settings import Limits, Reading, VoiceDefaults
from edged.stats import Stats, first_audio_ms, rtf
from edged.text.explain import Account, Told
from edged.text.script import Script
from edged.voices.api import VoiceCard


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


@dataclass(frozen=True, slots=True)
class Sinks:
    """Where the audio of a job can go; provided by the service.

    speaker(job, source_rate): the loudspeaker; raises `NoAudioDevice`.
    reply(job, format, source_rate, target_rate, stream): back to the client.
    """

    speaker: Callable[[Job, int], Sink]
    reply: Callable[[Job, str, int, int, bool], Sink]


class Admission:
    """Owns the table of live jobs.

    state: starting until `open`, then ready, at last draining (set by the service). over_budget: why no job
    is taken for want of memory, "" while there is enough (set by the watchdog). reading: how texts are read
    where a request does not say. on_start, on_end, on_mark: told of a job, on any thread.
    """

    def __init__(
        self,
        limits: Limits,
        on_start: Callable[[Job], None],
        on_end: Callable[[Job], None],
        on_mark: Callable[[Job, str, float], None] | None = None,
    ) -> None:
        self.state = "starting"
        self.over_budget = ""
        self.voices: Mapping[str, VoiceCard] = {}
        self.default_voice = ""
        self.reading = Reading()
        self.stats = Stats()
        self.tickets: dict[str, Ticket] = {}
        self._limits = limits
        self._on_start = on_start
        self._on_end = on_end
        self._on_mark = on_mark
        self._prefix = os.urandom(2).hex()
        self._count = 0

    def open(
        self,
        voices: Mapping[str, VoiceCard],
        default_voice: str,
        sinks: Sinks,
        submit: Callable[[Job, Script], None],
        explain: Callable[[Script, Params, Account, Told], None],
        forecast: Forecast,
        defaults: Mapping[str, VoiceDefaults] | None = None,
        reading: Reading | None = None,
        signs: Callable[[], frozenset[str]] = frozenset,
    ) -> None:
        """From here jobs are taken. submit: receives an admitted job (the text stage). explain: receives a
        text that is to be explained. defaults: how a voice speaks where a request does not say. signs:
        what the lexicon has words for beside letters. Called again (server thread) for other voices, or
        settings of them."""
        self.reading = reading or Reading()
        self._defaults = defaults or {}
        self._signs = signs
        self.voices = voices
        self.default_voice = default_voice
        self._sinks = sinks
        self._submit = submit
        self._explain = explain
        self._forecast = forecast
        if self.state == "starting":
            self.state = "ready"

    def limit(self, limits: Limits) -> None:
        """Server thread: other limits, for the requests that come from here on."""
        self._limits = limits

    def check_open(self) -> None:
        """Raises `Starting` or `ShuttingDown` unless jobs are taken."""
        if self.state == "starting":
            raise Starting("the daemon is still starting")
        if self.state == "draining":
            raise ShuttingDown("the daemon is stopping")

    # -- speech ---------------------------------------------------------------------------------

    def admit(self, request: protocol.Speech, peer: Peer) -> protocol.Accepted:
        """Queues the request as a job. Raises the `EdgedError` that refuses it."""
        if self.state == "starting":
            raise Starting("the daemon is still starting")
        self._check_reply(request, peer)
        card, params, script = self._look(request)
        rate = 0
        if isinstance(request, protocol.Synthesize):
            rate = check_format(request.format, card.sample_rate, request.sample_rate)
        self._check_room(request, peer)
        wait_s = self._check_wait(card.name, Priority[request.priority.upper()])
        job = self._make_job(request, peer, card, script.text, params)
        job.skipped = script.left_out
        if isinstance(request, protocol.Synthesize):
            job.sink = self._sinks.reply(job, request.format, card.sample_rate, rate, request.stream)
        else:
            job.sink = self._sinks.speaker(job, card.sample_rate)
        position = sum(1 for t in self.tickets.values() if t.job.priority <= job.priority and not t.job.ended)
        fallback = "finish" if job.kind == "speak" else "cancel"
        self.tickets[job.id] = Ticket(
            job=job,
            peer=peer,
            app=request.client,
            reply=request.reply,
            on_disconnect=request.on_disconnect or fallback,
            format=getattr(request, "format", ""),
            stream=getattr(request, "stream", False),
            sample_rate=rate,
        )
        self.stats.accepted += 1
        self._submit(job, script)
        return protocol.Accepted(
            id=request.id,
            job=job.id,
            position=position,
            skipped=script.left_out,
            wait_s=None if wait_s is None else round(wait_s, 2),
        )

    def explain(self, request: protocol.Explain, told: Callable[[protocol.Event], None]) -> None:
        """Has it found out how a text would be spoken. told: gets the answer, on the text thread.

        Raises the `EdgedError` that refuses it, which is the one that would refuse the speech.
        """
        self.check_open()
        card, params, script = self._look(speech_of(request))
        if self.over_budget:
            raise OverBudget(self.over_budget)
        account = Account(card.name, card.languages)
        self._explain(script, params, account, lambda answer: told(event_of(answer, request.id)))

    def _look(self, request: protocol.Speech) -> tuple[VoiceCard, Params, Script]:
        """Who speaks, how, and what."""
        card = self._voice(request.voice)
        if len(request.text) > self._limits.text_chars:
            raise TextTooLong(
                f"the text has {len(request.text)} characters, the limit is {self._limits.text_chars}"
            )
        params = resolve(request, self._defaults.get(card.name, VoiceDefaults()), card, self.voices)
        options = reading_options(request, self.reading)
        known = self._signs()
        return card, params, look(request, card, self.voices, options, params.run_voices, known)

    def _check_reply(self, request: protocol.Speech, peer: Peer) -> None:
        if request.reply == "events" and peer.socket_type == "REQ":
            raise EventsNeedDealer("a REQ socket takes exactly one reply")
        if isinstance(request, protocol.Synthesize):
            if request.reply == "ack":
                raise BadValue("reply: 'ack' would lose the audio", "use reply=final or reply=events")
            if request.stream and request.reply != "events":
                raise BadValue("stream: needs reply=events", "or leave stream out for the whole audio")

    def _voice(self, name: str) -> VoiceCard:
        card = self.voices.get(name or self.default_voice)
        if card is None:
            known = ", ".join(self.voices)
            guess = did_you_mean(name, self.voices)
            raise UnknownVoice(f"unknown voice {name!r}", f"{guess} voices: {known}".strip())
        return card

    def _check_room(self, request: protocol.Speech, peer: Peer) -> None:
        if self.state == "draining":
            raise ShuttingDown("the daemon is stopping and takes no new jobs")
        if self.over_budget:
            raise OverBudget(self.over_budget)
        mine = [t for t in self.tickets.values() if t.peer.identity == peer.identity]
        if request.id and any(t.job.client_id == request.id for t in mine):
            raise DuplicateId(f"a job with id {request.id!r} is still live on this connection")
        if len(self.tickets) >= self._limits.jobs:
            raise Busy(f"{len(self.tickets)} jobs are live, the limit is {self._limits.jobs}")
        if len(mine) >= self._limits.jobs_per_client:
            raise Busy(
                f"this connection has {len(mine)} live jobs, the limit is {self._limits.jobs_per_client}"
            )

    def _check_wait(self, voice: str, priority: Priority) -> float | None:
        """The predicted wait for a slot, None when nobody can tell. Raises `Busy` when it is too long."""
        limit = self._limits.wait_s
        wait_s = self._forecast.wait_s(voice, priority, (t.job for t in self.tickets.values()))
        if wait_s is not None and 0.0 < limit < wait_s:
            raise Busy(
                f"a job would wait {wait_s:.0f} s for those before it, the limit is {limit:g} s",
                f"try again in {wait_s - limit:.0f} s, use a higher priority, or raise limits.wait_s",
            )
        return wait_s

    def _make_job(
        self, request: protocol.Speech, peer: Peer, card: VoiceCard, text: str, params: Params
    ) -> Job:
        self._count += 1
        now = monotonic()
        job = Job(
            id=f"{self._prefix}-{self._count}",
            client=peer.identity,
            client_id=request.id,
            kind="synthesize" if isinstance(request, protocol.Synthesize) else "speak",
            text=text,
            voice=card.name,
            params=params,
            priority=Priority[request.priority.upper()],
            deadline=None if request.deadline_ms is None else now + request.deadline_ms / 1e3,
            on_start=self._on_start,
            on_end=self._on_end,
            on_mark=self._on_mark,
        )
        job.timeline.received = now
        return job

    # -- cancel ---------------------------------------------------------------------------------

    def cancel(self, request: protocol.Cancel, peer: Peer) -> list[str]:
        """Cancels what the request names; the job numbers that were cancelled by it."""
        if request.scope == "job" and not (request.job or request.target):
            raise BadValue("cancel needs a job", "give job, target, or scope=mine or all")
        hit = [t for t in self.tickets.values() if not t.job.ended and self._means(request, peer, t)]
        if request.scope == "job" and not hit:
            raise UnknownJob(f"no live job {request.job or request.target!r}")
        return [t.job.id for t in hit if t.job.cancel()]

    def _means(self, request: protocol.Cancel, peer: Peer, ticket: Ticket) -> bool:
        same_connection = ticket.peer.identity == peer.identity
        same_app = bool(request.client) and (ticket.app, ticket.peer.uid) == (request.client, peer.uid)
        if request.scope == "all":
            return True
        if request.scope == "mine":
            return same_connection or same_app
        if request.job:
            return ticket.job.id == request.job
        return ticket.job.client_id == request.target and (same_connection or same_app)

    def peer_gone(self, identity: bytes) -> None:
        """A connection ended: cancels its jobs that asked for it."""
        for ticket in list(self.tickets.values()):
            if ticket.peer.identity == identity and ticket.on_disconnect == "cancel":
                ticket.job.cancel()

    # -- endings --------------------------------------------------------------------------------

    def ended(self, job: Job) -> protocol.Done | protocol.Cancelled | protocol.Failed:
        """Takes an ended job off the table and gives the event that tells its client."""
        ticket = self.tickets.pop(job.id)
        self.stats.record(job, heard_at_once=job.kind == "speak" or ticket.stream)
        self._forecast.record(job)
        if job.error is not None:
            return protocol.failed(job.error, id=job.client_id, job=job.id)
        if job.state is JobState.CANCELLED:
            return protocol.Cancelled(id=job.client_id, job=job.id)
        return protocol.Done(
            id=job.client_id,
            job=job.id,
            audio_s=round(job.timeline.audio_s, 4),
            synthesis_s=round(job.timeline.synthesis_s, 5),
            rtf=round(rtf(job), 5),
            first_audio_ms=round(first_audio_ms(job), 3),
            format=ticket.format,
            sample_rate=ticket.sample_rate,
            warnings=job.warnings,
            refined="\n".join(job.refined),
            marks=[protocol.MarkTime(name=name, time_s=round(time_s, 4)) for name, time_s in job.marks],
            skipped=job.skipped,
        )
