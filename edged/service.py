"""The composition root: what starts, in which order, and how it stops.

Main thread. `run` reads top-down: settings, sockets, audio, voices, threads, READY, wait, and the same
backwards. It is the only module that knows all the others; each of them gets what it needs from here.

    edged-server  sockets, admission    edged-text    text -> utterances
    edged-engine  voices, step loop     edged-reply   encoding of returned audio
    edged-player  resampling, ring  ->  PortAudio callback (copies from the ring, nothing else)
    edged-reload  takes over new settings and bundles; sleeps until it is asked to
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from time import monotonic, sleep

from edged import __version__, config, log, protocol
from edged.admission import Admission, Sinks
from edged.audio.hush import drivers_hushed
from edged.audio.player import Player
from edged.audio.reply import Replies
from edged.delivery import told
from edged.desk import Desk, rss_mb, since_process_start
from edged.endpoints import Endpoints
from edged.engine import pages
from edged.engine.buffers import Arena
from edged.engine.plan import bound_row, joined, table
from edged.engines import Engines
from edged.errors import EdgedError, InternalError
from edged.exporter import Exporter
from edged.footprint import few_arenas
from edged.job import Job, News
from edged.meter import Meter
from edged.paths import default_endpoint
from edged.patience import patiently
from edged.protocol import Started
from edged.relay import Relay
from edged.server import Server
from edged.settings import Log, Settings
from edged.signals import Signals
from edged.systemd import Notifier
from edged.takeover import Parts, Takeover
from edged.threads import Pulse
from edged.watchdog import make_watchdog

logger = logging.getLogger("edged")
THREAD_STOP_S = 2.0  # how long a thread may take to end after it was told to
DRAIN_POLL_S = 0.02
# Python's default of 5 ms is how long one thread may keep the others from running: too long for threads
# that hand a request on in a fraction of a millisecond.
SWITCH_S = 0.0001


def run(
    config_path: str | None, endpoint: str | None, bundles: tuple[str, ...], log_level: str | None
) -> int:
    """Runs the daemon until a signal; 0 after SIGTERM or SIGINT, 1 after a fault while serving, 75
    (EX_TEMPFAIL) when its memory stayed over the budget.

    Raises the `EdgedError` that kept it from starting.
    """

    def read() -> Settings:
        settings = config.load(config.find(config_path))
        return config.overridden(settings, endpoint, bundles, log_level)

    try:
        settings = read()
    except EdgedError as error:
        if log.is_journal(sys.stderr):  # whose catalog explains it; elsewhere the command line tells it
            log.setup(Log())
            for line in str(error).splitlines():
                log.event(logger, logging.ERROR, f"cannot start: {line}", code=error.code, phase="start")
        raise
    few_arenas()  # before there are threads
    relay = log.setup(settings.log, relayed=True)
    try:
        service = Service(settings, read)
        code = service.run()
        relay.flush()
        if not service.ended or (isinstance(relay, Relay) and not relay.idle):
            # A reload still loads, or nobody reads our lines: the interpreter's own exit would wait for it.
            os._exit(code)
        return code
    except EdgedError as error:
        log.event(logger, logging.ERROR, f"cannot start: {error}", code=error.code, phase="start")
        raise


class Service:
    """One running daemon."""

    def __init__(self, settings: Settings, read: Callable[[], Settings]) -> None:
        """read: the settings anew, for a reload."""
        self._settings = settings
        self._read = read
        self._notify = Notifier()
        self._signals = Signals()
        self._crash: BaseException | None = None

    @property
    def ended(self) -> bool:
        """After `run`: whether all threads have ended that could be in the middle of something."""
        return self._takeover.reloader.ended

    def run(self) -> int:
        """Starts, serves until a signal or a fault, stops; the exit code."""
        self._notify.status("starting")
        sys.setswitchinterval(SWITCH_S)
        self._signals.receive()
        with ExitStack() as running:
            self._start(running)
            self._wait()
            self._drain()
        if self._crash is not None:
            fault = type(self._crash).__name__
            log.event(
                logger, logging.CRITICAL, "stopped by a fault", code="crashed", phase="stop", fault=fault
            )
            return 1
        log.event(logger, logging.INFO, "stopped", phase="stop")
        return os.EX_TEMPFAIL if self._watchdog.leave and not self._signals.stops else 0

    # -- start, serve, stop ---------------------------------------------------------------------

    def _start(self, running: ExitStack) -> None:
        """Each part that starts leaves its stop on `running`, which undoes them in reverse order."""
        settings, listen = self._settings, self._settings.listen
        if settings.audio.enabled:
            running.enter_context(drivers_hushed())
        # The sockets first: a second daemon must fail before it loads anything.
        address = listen.endpoint or default_endpoint()
        bind = partial(Endpoints, listen, settings.limits, address)
        endpoints = patiently(bind, self._notify, self._signals)
        running.callback(endpoints.close)
        arena = Arena()
        arena.note(bound_row("limits.reply_mb", settings.limits.reply_mb << 20))
        engines = self._engines = Engines(arena)
        player = Player(
            settings.audio, engines.wake, arena=arena, speech=settings.speech, send_back=engines.send_back
        )
        player.start()
        running.callback(player.close, 0.0)
        self._admission = Admission(settings.limits, self._on_job_start, self._on_job_end, self._on_news)
        meter = Meter()
        watchdog = self._watchdog = make_watchdog(
            settings, self._notify, self._admission, lambda: engines.device_mb
        )
        desk = Desk(self._admission, player, engines, endpoints, meter, watchdog)
        takeover = self._takeover = Takeover(
            settings,
            self._read,
            Parts(
                engines,
                self._admission,
                player,
                meter,
                watchdog,
                self._notify,
                lambda question, within_s: self._server.ask(question, within_s),
                self._on_crash,
            ),
        )
        reloader = takeover.reloader
        self._server = Server(endpoints, self._admission, desk, settings.limits, self._on_crash, reloader.ask)
        self._server.start()  # from here clients are told that the daemon is starting
        running.callback(self._server.stop, THREAD_STOP_S)
        engines.add(takeover.load())
        arena.seal()
        *rows, total = table(joined(engines.plan()), settings.service.memory_mb)
        for row in rows:
            logger.debug("memory plan: %s", row)
        logger.info("memory plan: %s", " ".join(total.split()))
        limits = settings.limits
        replies = Replies(
            self._emit,
            engines.wake,
            limits.reply_buffer_s,
            limits.reply_mb << 20,
            meter.stream_underrun,
        )
        running.callback(replies.close)
        running.callback(engines.stop)
        exporter = Exporter(settings.stats, lambda: self._server.ask(lambda: desk.stats("")))
        exporter.start()
        running.callback(exporter.stop, THREAD_STOP_S)
        takeover.open(Sinks(speaker=player.sink, reply=replies.sink, control=player.control))
        reloader.start()
        running.callback(reloader.stop, THREAD_STOP_S)
        watchdog.watch(self._pulses, takeover.told)
        self._notify.ready(watchdog.told())
        log.event(
            logger,
            logging.INFO,
            "ready",
            phase="start",
            version=__version__,
            endpoint=endpoints.endpoint,
            tcp=endpoints.tcp or None,
            voices=",".join(engines.current.voices),
            ready_s=round(since_process_start(), 3),
            rss_mb=round(rss_mb(), 1),
            buffers_mb=round(engines.nbytes / 1e6, 1),
        )
        if settings.engine.huge_pages:
            pages.start()

    def _pulses(self) -> Mapping[str, Pulse]:
        """Of the threads whose progress counts; after a reload those of the former voices, too."""
        return {**self._engines.pulses(), "server": self._server.pulse}

    def _wait(self) -> None:
        """Sleeps until a signal, a fault, or the watchdog's wish to leave; the watchdog runs in between."""
        while not (self._signals.stops or self._crash or self._watchdog.leave):
            self._signals.wait(self._watchdog.wait_s(monotonic()))
            if self._signals.reload_wanted():
                self._takeover.reloader.ask()
            self._watchdog.tick(monotonic())
            self._server.look_after()

    def _drain(self) -> None:
        """Takes no new jobs, lets the live ones end and their clients take the results, up to the deadline;
        then gives them up."""
        self._admission.state = "draining"
        live = self._admission.tickets
        self._notify.stopping(f"draining: live jobs {len(live)}" if live else "stopping")
        if live:
            log.event(logger, logging.INFO, "draining", phase="stop", jobs=len(live))
        deadline = monotonic() + (0.0 if self._crash else self._takeover.settings.service.drain_s)
        while (live or self._server.unsent) and monotonic() < deadline and not self._crash:
            sleep(DRAIN_POLL_S)
        # Again and again: a job can be admitted while the socket thread still sees the former state.
        until = monotonic() + THREAD_STOP_S
        while live and monotonic() < until:
            for ticket in list(live.values()):
                self._give_up(ticket.job)
            sleep(DRAIN_POLL_S)

    def _give_up(self, job: Job) -> None:
        if self._crash is None:
            job.cancel()
        else:  # nobody wanted it to end
            job.fail(InternalError("the daemon had a fault and ends", "send it again when it is back"))

    # -- what the parts call --------------------------------------------------------------------

    def _on_crash(self, exc: BaseException) -> None:
        self._crash = exc
        self._signals.wake()

    def _emit(self, job: Job, event: protocol.Event, payload: bytes | None) -> None:
        self._server.post(job, event, payload)

    def _on_job_start(self, job: Job) -> None:
        refined = job.refined[0] if job.refined else ""
        self._server.post(job, Started(id=job.client_id, job=job.id, voice=job.voice, refined=refined))

    def _on_news(self, job: Job, news: News) -> None:
        self._server.post(job, told(job, news))

    def _on_job_end(self, job: Job) -> None:
        self._server.post(job, None)
        self._engines.wake()
