"""The composition root: what starts, in which order, and how it stops.

Main thread. `run` reads top-down: settings, sockets, audio, voices, threads, READY, wait, and the same
backwards. It is the only module that knows all the others; each of them gets what it needs from here.

    edged-server  sockets, admission    edged-text    text -> utterances
    edged-engine  voices, step loop     edged-reply   encoding of returned audio
    edged-player  resampling, ring  ->  PortAudio callback (copies from the ring, nothing else)
"""

from __future__ import annotations

import logging
import os
import select
import signal
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from time import monotonic, sleep

import msgspec

from edged import __version__, config, log, protocol
from edged.admission import Admission, Sinks
from edged.audio.player import Player
from edged.audio.reply import Replies
from edged.desk import Desk, rss_mb, since_process_start
from edged.endpoints import Endpoints
from edged.engine import pages
from edged.engine.buffers import Arena
from edged.engine.plan import bound_row, joined, table
from edged.errors import EdgedError
from edged.exporter import Exporter
from edged.forecast import Forecast
from edged.job import Job
from edged.meter import Meter
from edged.paths import default_endpoint
from edged.protocol import Started
from edged.relay import Relay
from edged.server import Server
from edged.settings import Settings
from edged.systemd import Notifier
from edged.text.stage import TextStage
from edged.voices.catalog import load_voices
from edged.worker import Worker

logger = logging.getLogger("edged")
THREAD_STOP_S = 2.0  # how long a thread may take to end after it was told to
DRAIN_POLL_S = 0.02
# Python's default of 5 ms is how long one thread may keep the others from running: too long for threads
# that hand a request on in a fraction of a millisecond.
SWITCH_S = 0.0001


def run(
    config_path: str | None, endpoint: str | None, bundles: tuple[str, ...], log_level: str | None
) -> int:
    """Runs the daemon until a signal; 0 after SIGTERM or SIGINT, 1 after a fault while serving.

    Raises the `EdgedError` that kept it from starting.
    """
    settings = read_settings(config_path, endpoint, bundles, log_level)
    relay = log.setup(settings.log, relayed=True)
    try:
        code = Service(settings).run()
        relay.flush()
        if isinstance(relay, Relay) and not relay.idle:
            os._exit(code)  # nobody reads our lines: the interpreter's own exit would wait for it
        return code
    except EdgedError as error:
        log.event(logger, logging.ERROR, f"cannot start: {error}", code=error.code)
        raise


def read_settings(
    config_path: str | None, endpoint: str | None, bundles: tuple[str, ...], log_level: str | None
) -> Settings:
    """The settings of the file, with what the command line overrides."""
    settings = config.load(config.find(config_path))
    replace = msgspec.structs.replace
    if endpoint:
        settings = replace(settings, listen=replace(settings.listen, endpoint=endpoint, events=""))
    if bundles:
        settings = replace(
            settings, voices=replace(settings.voices, bundles=list(bundles), default="", defaults={})
        )
    if log_level:
        settings = replace(
            settings,
            log=msgspec.convert({"level": log_level, "format": settings.log.format}, type(settings.log)),
        )
    return settings


class Service:
    """One running daemon."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._notify = Notifier()
        self._signals = self._hangups = 0
        self._crash: BaseException | None = None
        # A signal that another thread receives does not end a lock wait of this one, and its Python
        # handler runs only here: so the main thread waits on this pipe, which the C handler writes to.
        self._pipe, self._wake_fd = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._wake_worker: Callable[[], None] = lambda: None  # until there is a worker to wake

    def run(self) -> int:
        """Starts, serves until a signal or a fault, stops; the exit code."""
        self._notify.status("starting")
        sys.setswitchinterval(SWITCH_S)
        signal.set_wakeup_fd(self._wake_fd, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        signal.signal(signal.SIGHUP, self._on_hangup)
        with ExitStack() as running:
            self._start(running)
            self._wait()
            self._drain()
        if self._crash is not None:
            log.event(logger, logging.CRITICAL, "stopped by a fault", fault=type(self._crash).__name__)
            return 1
        log.event(logger, logging.INFO, "stopped")
        return 0

    # -- start, serve, stop ---------------------------------------------------------------------

    def _start(self, running: ExitStack) -> None:
        """Each part that starts leaves its stop on `running`, which undoes them in reverse order."""
        settings, listen = self._settings, self._settings.listen
        # The sockets first: a second daemon must fail before it loads anything.
        endpoints = Endpoints(listen, settings.limits, listen.endpoint or default_endpoint())
        running.callback(endpoints.close)
        arena = Arena()
        arena.note(bound_row("limits.reply_mb", settings.limits.reply_mb << 20))
        player = Player(settings.audio, lambda: self._wake_worker(), arena=arena)
        player.start()
        running.callback(player.close, 0.0)
        self._admission = Admission(settings.limits, self._on_job_start, self._on_job_end)
        meter = Meter()
        desk = Desk(self._admission, player, arena, endpoints, meter, settings.service.memory_mb)
        self._server = Server(endpoints, self._admission, desk, settings.limits, self._on_crash)
        self._server.start()  # from here clients are told that the daemon is starting
        running.callback(self._server.stop, THREAD_STOP_S)
        voices = load_voices(settings, arena, self._notify.status)
        arena.seal()
        for line in table(joined(arena.plan()), settings.service.memory_mb):
            logger.info("memory plan: %s", line)
        for voice in voices.values():
            running.callback(voice.close)
        limits = settings.limits
        replies = Replies(
            self._emit,
            lambda: self._wake_worker(),
            limits.reply_buffer_s,
            limits.reply_mb << 20,
            meter.stream_underrun,
        )
        running.callback(replies.close)
        gather_s = settings.engine.gather_ms / 1e3
        worker = self._worker = Worker(
            voices, settings.stream.chunk_ms / 1e3, self._on_crash, meter, gather_s
        )
        self._wake_worker = worker.wake
        worker.start()
        running.callback(worker.stop, THREAD_STOP_S)
        frontends = {name: v.frontend for name, v in voices.items()}
        text = TextStage(frontends, worker.submit, worker.wake, self._on_crash)
        text.start()
        running.callback(text.stop, THREAD_STOP_S)
        exporter = Exporter(settings.stats, lambda: self._server.ask(lambda: desk.stats("")))
        exporter.start()
        running.callback(exporter.stop, THREAD_STOP_S)
        self._admission.open(
            {name: v.card for name, v in voices.items()},
            settings.voices.default or next(iter(voices)),
            sinks=Sinks(speaker=player.sink, reply=replies.sink),
            submit=text.submit,
            defaults=settings.voices.defaults,
            forecast=Forecast(
                {name: v.synthesizer.max_batch for name, v in voices.items()},
                {name: str(id(v.synthesizer)) for name, v in voices.items()},
                settings.audio.buffer_s,
            ),
        )
        self._notify.ready(f"ready: {', '.join(voices)}")
        log.event(
            logger,
            logging.INFO,
            "ready",
            version=__version__,
            endpoint=endpoints.endpoint,
            tcp=endpoints.tcp or None,
            voices=",".join(voices),
            ready_s=round(since_process_start(), 3),
            rss_mb=round(rss_mb(), 1),
            buffers_mb=round(arena.nbytes / 1e6, 1),
        )
        if settings.engine.huge_pages:
            pages.start()

    def _wait(self) -> None:
        """Sleeps until a signal or a fault; feeds systemd's watchdog while the step loop is alive."""
        interval = self._notify.watchdog_interval_s
        while not (self._signals or self._crash):
            select.select([self._pipe], [], [], interval)
            with suppress(BlockingIOError):
                os.read(self._pipe, 4096)
            if self._hangups:
                self._hangups = 0
                log.event(logger, logging.WARNING, "SIGHUP ignored: restart the daemon for new settings")
            if interval and self._worker.alive(interval):
                self._notify.watchdog()

    def _drain(self) -> None:
        """Takes no new jobs and lets the live ones end, up to the deadline; then cancels them."""
        self._admission.state = "draining"
        self._notify.stopping()
        live = self._admission.tickets
        if live:
            log.event(logger, logging.INFO, "draining", jobs=len(live))
        deadline = monotonic() + (0.0 if self._crash else self._settings.service.drain_s)
        while live and monotonic() < deadline and not self._crash:
            sleep(DRAIN_POLL_S)
        # Again and again: a job can be admitted while the socket thread still sees the former state.
        until = monotonic() + THREAD_STOP_S
        while live and monotonic() < until:
            for ticket in list(live.values()):
                ticket.job.cancel()
            sleep(DRAIN_POLL_S)

    # -- what the parts call --------------------------------------------------------------------

    def _on_signal(self, number: int, frame: object) -> None:
        self._signals += 1
        if self._signals > 1:
            log.event(logger, logging.WARNING, "second signal: stopping at once")
            os._exit(128 + number)

    def _on_hangup(self, number: int, frame: object) -> None:
        self._hangups += 1

    def _on_crash(self, exc: BaseException) -> None:
        self._crash = exc
        with suppress(BlockingIOError):
            os.write(self._wake_fd, b"!")

    def _emit(self, job: Job, event: protocol.Event, payload: bytes | None) -> None:
        self._server.post(job, event, payload)

    def _on_job_start(self, job: Job) -> None:
        refined = job.refined[0] if job.refined else ""
        self._server.post(job, Started(id=job.client_id, job=job.id, voice=job.voice, refined=refined))

    def _on_job_end(self, job: Job) -> None:
        self._server.post(job, None)
        self._wake_worker()
