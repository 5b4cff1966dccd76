"""What the daemon speaks with, from its start over every reload: loads voices, and takes over new ones.

Main thread until the daemon is ready, then `edged-reload`. The exchange itself is done by the socket thread
between two rounds, so that no request sees half of it. Neighbours: `service` composes it, `engines` has what
was loaded, `reload` the thread and the rules which settings can change.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

from edged import faults, log, protocol
from edged.admission import Admission, Sinks
from edged.audio.player import Player
from edged.engine import pages
from edged.engine.buffers import Arena
from edged.engines import Engines, Generation
from edged.errors import BundleError, Busy, EdgedError, EngineError, PlanTooLarge, RestartNeeded
from edged.meter import Meter
from edged.reload import Reloader, loads, merge
from edged.settings import Settings
from edged.systemd import Notifier
from edged.voices.catalog import Source, check_choices, former, load_voices, sources
from edged.watchdog import Watchdog

logger = logging.getLogger("edged")
EXCHANGE_S = 30.0  # the socket thread does it between two rounds; longer than that, and it has ended
FORMER_S = 10.0  # how long a reload waits for the jobs of the one before it


@dataclass(frozen=True, slots=True)
class Parts:
    """Of the daemon. ask: has the socket thread do something, and waits for so many seconds."""

    engines: Engines
    admission: Admission
    player: Player
    meter: Meter
    watchdog: Watchdog
    manager: Notifier
    ask: Callable[[Callable[[], None], float], None]
    on_crash: Callable[[BaseException], None]


class Takeover:
    """read: the settings anew, for a reload."""

    def __init__(self, settings: Settings, read: Callable[[], Settings], parts: Parts) -> None:
        self.settings = settings
        self.reloader = Reloader(self._reload, self._retire, parts.on_crash)
        self._read = read
        self._parts = parts
        self._remark = ""  # what is not as it was configured, told with the readiness

    def told(self) -> str:
        """What systemd is told while all is well."""
        return f"ready: {', '.join(self._parts.engines.current.voices)}{self._remark}"

    # -- the start ------------------------------------------------------------------------------

    def load(self) -> Generation:
        """The configured bundles, or the versions before of those that cannot be used: better an old voice
        than a silent box. The next start or reload tries the new ones again."""
        tell = self._parts.manager.status
        wanted = sources(self.settings)

        def status(text: str) -> None:
            tell(f"starting: {text}")

        try:
            return self._load(self.settings, wanted, status)
        except (BundleError, EngineError) as error:
            before = former(wanted)
            if before == wanted:
                raise
            text = f"a bundle cannot be used, the version before speaks instead: {error}"
            log.event(logger, logging.ERROR, text, code=error.code, phase="start")
        generation = self._load(self.settings, before, status)
        left = [source for source in wanted if source not in before]
        self._remark = f" ({', '.join(source.path.name for source in left)} cannot be used)"
        return generation

    def open(self, sinks: Sinks | None = None) -> None:
        """Every job from here on is for the current voices, with the settings as they are now. sinks: the
        same as before when there are none."""
        if sinks is not None:
            self._sinks = sinks
        generation = self._parts.engines.current
        voices = generation.voices
        self._parts.admission.open(
            {name: v.card for name, v in voices.items()},
            self.settings.voices.default or next(iter(voices)),
            sinks=self._sinks,
            submit=generation.submit,
            defaults=self.settings.voices.defaults,
            forecast=generation.forecast(self.settings.audio.buffer_s),
        )

    def _load(
        self, settings: Settings, wanted: tuple[Source, ...], status: Callable[[str], object]
    ) -> Generation:
        """Voices in an arena of their own, beside what is there."""
        arena, parts = Arena(), self._parts
        voices = load_voices(settings, wanted, arena, status, parts.engines.plan())
        arena.seal()
        voices = faults.spoil(voices, settings.faults)
        return Generation(settings, wanted, voices, arena, parts.meter, parts.on_crash)

    # -- a reload, on its own thread --------------------------------------------------------------

    def _reload(self) -> protocol.ReloadReply:
        """Reads everything anew and takes it over; an error before the exchange changes nothing."""
        self._parts.manager.reloading()
        try:
            return self._take_over()
        finally:
            if self._parts.admission.state == "ready":
                self._parts.manager.ready(self.told())

    def _take_over(self) -> protocol.ReloadReply:
        settings, changed, waiting = merge(self.settings, self._read())
        engines = self._parts.engines
        wanted = sources(settings)
        fresh = None
        if loads(changed) or wanted != engines.current.sources:
            fresh = self._load_beside(settings, wanted)
        else:
            check_choices(settings, {name: v.card for name, v in engines.current.voices.items()})
        try:
            self._parts.ask(lambda: self._exchange(settings, fresh), EXCHANGE_S)
        except EdgedError:
            if fresh is not None and engines.current is not fresh:
                fresh.stop()
            raise
        if fresh is not None and settings.engine.huge_pages:
            pages.start()
        if "log.level" in changed:
            log.set_level(settings.log.level)
        return protocol.ReloadReply(
            changed=changed,
            restart=waiting,
            loaded=list(fresh.voices) if fresh else [],
            bundles={source.name: str(source.path.resolve()) for source in wanted},
        )

    def _exchange(self, settings: Settings, fresh: Generation | None) -> None:
        """Socket thread."""
        before, self.settings = self.settings, settings
        self._parts.player.volume = settings.audio.volume
        self._parts.admission.limit(settings.limits)
        if fresh is not None:
            self._parts.engines.add(fresh)
            self._remark = ""
        if fresh is not None or before.voices != settings.voices:
            self.open()

    def _load_beside(self, settings: Settings, wanted: tuple[Source, ...]) -> Generation:
        """New voices while the old ones speak. Two generations at most: each has all its memory."""
        until = monotonic() + FORMER_S
        if not self._parts.engines.retire(lambda: monotonic() > until or self.reloader.stopping):
            raise Busy("jobs of the voices before the last reload are not done yet", "try again later")
        tell = self._parts.manager.status
        try:
            fresh = self._load(settings, wanted, lambda text: tell(f"reload: {text}"))
            try:
                self._parts.watchdog.check_room()  # the plan fitted; the process is more than its plan
            except PlanTooLarge:
                fresh.stop()
                raise
        except PlanTooLarge as error:
            raise RestartNeeded(f"the new voices do not fit beside the old ones: {error.message}") from None
        return fresh

    def _retire(self) -> None:
        self._parts.engines.retire(self.reloader.busy)
