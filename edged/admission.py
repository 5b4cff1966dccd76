"""Admission: a typed request becomes a job, or the reason why not; and every live job is known here.

Server thread only, except `Job` callbacks, which other threads run through `outbox`. Nothing is queued
before it passed here, and the number of live jobs is bounded here. Neighbours: the server asks it; the
service gives it the text stage, the sinks and the voices.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from time import monotonic

import msgspec

from edged import protocol
from edged.audio.encode import check_format
from edged.errors import (
    BadValue,
    Busy,
    DuplicateId,
    EventsNeedDealer,
    OverBudget,
    RequestError,
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
from edged.job import Job, JobState, News, Params, Priority, Sink
from edged.open_jobs import OpenJobs, Submit
from edged.params import reading_options, resolve
from edged.settings import ClientDefaults, Limits, Reading, Speech, VoiceDefaults
from edged.speech.history import History, heard
from edged.speech.options import FIELDS, Wish, entry_of, priority_of, wish
from edged.speech.orders import Order, order_of
from edged.stats import Stats, first_audio_ms, rtf
from edged.text.explain import Account, Told
from edged.text.script import Script
from edged.tickets import Peer, Ticket, named
from edged.voices.api import VoiceCard


@dataclass(frozen=True, slots=True)
class Sinks:
    """Where the audio of a job can go; provided by the service.

    speaker(job, source_rate, wish): the loudspeaker; raises `NoAudioDevice` and `Busy`.
    reply(job, format, source_rate, target_rate, stream): back to the client.
    control(jobs, order): what people want of jobs on the loudspeaker; gives those that it changed something
    for.
    """

    speaker: Callable[[Job, int, Wish], Sink]
    reply: Callable[[Job, str, int, int, bool], Sink]
    control: Callable[[Iterable[Job], Order], list[Job]]


class Admission:
    """Owns the table of live jobs.

    state: starting until `open`, then ready, at last draining (set by the service). over_budget: why no job
    is taken for want of memory, "" while there is enough (set by the watchdog). reading: how texts are read
    where a request does not say. on_start, on_end, on_news: told of a job, on any thread.
    """

    def __init__(
        self,
        limits: Limits,
        on_start: Callable[[Job], None],
        on_end: Callable[[Job], None],
        on_news: Callable[[Job, News], None] | None = None,
    ) -> None:
        self.state = "starting"
        self.over_budget = ""
        self.voices: Mapping[str, VoiceCard] = {}
        self.default_voice = ""
        self.reading = Reading()
        self.stats = Stats()
        self.tickets: dict[str, Ticket] = {}
        self.open_jobs = OpenJobs()
        self.history = History(Speech())
        self._limits = limits
        self._on_start = on_start
        self._on_end = on_end
        self._on_news = on_news
        self._prefix = os.urandom(2).hex()
        self._count = 0

    def open(
        self,
        voices: Mapping[str, VoiceCard],
        default_voice: str,
        sinks: Sinks,
        submit: Submit,
        explain: Callable[[Script, Params, Account, Told], None],
        forecast: Forecast,
        defaults: Mapping[str, VoiceDefaults] | None = None,
        reading: Reading | None = None,
        signs: Callable[[], frozenset[str]] = frozenset,
        clients: Sequence[ClientDefaults] = (),
    ) -> None:
        """From here jobs are taken. submit: receives an admitted job, or more of its text. explain: gets a
        text that is to be explained. defaults: how a voice speaks where a request does not say. signs:
        what the lexicon has words for beside letters. clients: what a client's speech is like where a
        request does not say. Called again (server thread) for other voices, or
        settings of them."""
        self.reading = reading or Reading()
        self._defaults = defaults or {}
        self._signs = signs
        self._clients = clients
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
        self._check_started()
        if self.state == "draining":
            raise ShuttingDown("the daemon is stopping")

    def _check_started(self) -> None:
        if self.state == "starting":
            raise Starting("the daemon is still starting")

    # -- speech ---------------------------------------------------------------------------------

    def admit(self, request: protocol.Speech, peer: Peer) -> protocol.Accepted:
        """Queues the request as a job. Raises the `EdgedError` that refuses it."""
        self._check_started()
        self._check_reply(request, peer)
        card, params = self._chosen(request)
        if request.open and request.markup != "plain":
            raise BadValue("open: only a plain text can come in pieces")
        script = None if request.open else self._script(request, card, params)
        entry = entry_of(self._clients, request.client, peer.uid)
        priority = priority_of(request.priority, entry.priority)
        rate = 0
        if isinstance(request, protocol.Synthesize):
            rate = check_format(request.format, card.sample_rate, request.sample_rate)
        elif request.volume is None and entry.volume is not None:
            params = replace(params, volume=entry.volume)
        self._check_room(request, peer)
        wait_s = self._check_wait(card.name, priority)
        text = request.text if script is None else script.text
        job = self._make_job(request, peer, card, text, params, priority)
        if isinstance(request, protocol.Synthesize):
            job.sink = self._sinks.reply(job, request.format, card.sample_rate, rate, request.stream)
        else:
            wanted = wish(request.client or peer.identity, peer.uid, request, entry)
            job.sink = self._sinks.speaker(job, card.sample_rate, wanted)
        if script is None:
            piece = partial(self._piece, request, card, params)
            script = self.open_jobs.open(job, request.text, piece, self._submit)
        job.skipped = 0 if script is None else script.left_out
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
        self._submit(job, script, request.open, 0)
        return protocol.Accepted(
            id=request.id,
            job=job.id,
            position=position,
            skipped=job.skipped,
            wait_s=None if wait_s is None else round(wait_s, 2),
        )

    def explain(self, request: protocol.Explain, told: Callable[[protocol.Event], None]) -> None:
        """Has it found out how a text would be spoken. told: gets the answer, on the text thread.

        Raises the `EdgedError` that refuses it, which is the one that would refuse the speech.
        """
        self.check_open()
        speech = speech_of(request)
        card, params = self._chosen(speech)
        script = self._script(speech, card, params)
        if self.over_budget:
            raise OverBudget(self.over_budget)
        account = Account(card.name, card.languages)
        self._explain(script, params, account, lambda answer: told(event_of(answer, request.id)))

    def repeated(self, request: protocol.Repeat) -> protocol.Speak:
        """The request that says once more what was heard. Raises `UnknownJob`."""
        found = self.history.find(request.job) if request.job else next(iter(self.history.entries()), None)
        if found is None or not found.text:
            hint = "speech.history jobs are kept, and their texts with speech.history_texts: true"
            raise UnknownJob("no such job is in the history, or not its text", hint)
        return protocol.Speak(
            id=request.id,
            client=request.client,
            text=found.text,
            voice=found.voice if found.voice in self.voices else "",
            priority=request.priority or found.priority.name.lower(),  # type: ignore[arg-type]
            reply=request.reply,
        )

    def append(self, request: protocol.Append, peer: Peer) -> protocol.Appended:
        """More text of an open job. Raises what refuses it, and then it counts as never sent."""
        job = self._part_of(request, peer)
        held = self.open_jobs.append(job, request.text, request.flush, self._limits.text_chars)
        return protocol.Appended(id=request.id, job=job.id, held=held)

    def close(self, request: protocol.Close, peer: Peer) -> protocol.Appended:
        """The text of an open job is complete. Raises what refuses the rest, which is not spoken then."""
        job = self._part_of(request, peer)
        self.open_jobs.close(job)
        return protocol.Appended(id=request.id, job=job.id)

    def close_idle(self) -> list[Job]:
        """Closes open jobs whose clients have said nothing for `limits.open_idle_s`."""
        idle = self.open_jobs.expired(self._limits.open_idle_s)
        for job in idle:
            self._close_open(job)
        return idle

    def _close_open(self, job: Job) -> None:
        """Nobody is there to be told what of the rest cannot be spoken: it is counted."""
        with suppress(RequestError):
            self.open_jobs.close(job)

    def _chosen(self, request: protocol.Speech) -> tuple[VoiceCard, Params]:
        """Who speaks, and how."""
        card = self._voice(request.voice)
        if len(request.text) > self._limits.text_chars:
            raise TextTooLong(
                f"the text has {len(request.text)} characters, the limit is {self._limits.text_chars}"
            )
        return card, resolve(request, self._defaults.get(card.name, VoiceDefaults()), card, self.voices)

    def _script(self, request: protocol.Speech, card: VoiceCard, params: Params) -> Script:
        """What is spoken. Raises what refuses the text."""
        options = reading_options(request, self.reading)
        return look(request, card, self.voices, options, params.run_voices, self._signs())

    def _piece(self, request: protocol.Speech, card: VoiceCard, params: Params, text: str) -> Script:
        return self._script(msgspec.structs.replace(request, text=text), card, params)

    def _check_reply(self, request: protocol.Speech, peer: Peer) -> None:
        if request.reply == "events" and peer.socket_type == "REQ":
            raise EventsNeedDealer("a REQ socket takes exactly one reply")
        if request.open and request.reply == "final" and peer.socket_type == "REQ":
            raise BadValue("open: a REQ socket that waits for the end cannot send more text", "use reply=ack")
        if isinstance(request, protocol.Synthesize):
            if request.reply == "ack":
                raise BadValue("reply: 'ack' would lose the audio", "use reply=final or reply=events")
            if request.stream and request.reply != "events":
                raise BadValue("stream: needs reply=events", "or leave stream out for the whole audio")
            for name in FIELDS:
                if getattr(request, name) is not None:
                    raise BadValue(f"{name}: says when a job is heard on the loudspeaker", "leave it out")

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
        self,
        request: protocol.Speech,
        peer: Peer,
        card: VoiceCard,
        text: str,
        params: Params,
        priority: Priority,
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
            priority=priority,
            deadline=None if request.deadline_ms is None else now + request.deadline_ms / 1e3,
            on_start=self._on_start,
            on_end=self._on_end,
            on_news=self._on_news,
        )
        job.timeline.received = now
        return job

    # -- cancel ---------------------------------------------------------------------------------

    def cancel(self, request: protocol.Cancel, peer: Peer) -> list[str]:
        """Cancels what the request names; the job numbers that were cancelled by it."""
        self._check_started()
        hit = named(self.tickets.values(), request, peer)
        self._sinks.control(hit, Order("stop"))  # or one would be heard for a moment when another one ends
        return [job.id for job in hit if job.cancel()]

    def control(self, request: protocol.Control, peer: Peer) -> list[str]:
        """Does to jobs what the request says; the numbers of those that it changed something for.

        Raises `BadValue` where it says too little or too much.
        """
        self._check_started()
        order = order_of(request)
        jobs = named(self.tickets.values(), request, peer)
        return [job.id for job in self._sinks.control(jobs, order)]

    def _part_of(self, request: protocol.Part, peer: Peer) -> Job:
        if not (request.job or request.target):
            raise BadValue(f"{request.__struct_config__.tag} needs a job", "give job or target")
        wanted = protocol.Cancel(client=request.client, job=request.job, target=request.target)
        return named(self.tickets.values(), wanted, peer)[0]

    def peer_gone(self, identity: bytes) -> None:
        """A connection ended: cancels its jobs that asked for it. No more text comes for the others."""
        for ticket in list(self.tickets.values()):
            if ticket.peer.identity != identity:
                continue
            if ticket.on_disconnect == "cancel":
                ticket.job.cancel()
            elif ticket.job.open:
                self._close_open(ticket.job)

    # -- endings --------------------------------------------------------------------------------

    def ended(self, job: Job) -> protocol.Done | protocol.Cancelled | protocol.Failed:
        """Takes an ended job off the table and gives the event that tells its client."""
        ticket = self.tickets.pop(job.id)
        self.open_jobs.forget(job)
        self.stats.record(job, heard_at_once=job.kind == "speak" or ticket.stream)
        self._forecast.record(job)
        if job.kind == "speak":
            self.history.record(heard(job, ticket.app))
        if job.error is not None:
            return protocol.failed(job.error, id=job.client_id, job=job.id)
        if job.state is JobState.CANCELLED:
            return protocol.Cancelled(id=job.client_id, job=job.id, reason=job.reason or msgspec.UNSET)
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
