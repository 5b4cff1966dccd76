"""What the daemon speaks with, from its start over every reload: loads voices, and takes over new ones.

Main thread until the daemon is ready, then `edged-reload`. The exchange itself is done by the socket thread
between two rounds, so that no request sees half of it. Neighbours: `service` composes it, `engines` has what
was loaded, `reload` the thread and the rules which settings can change.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from time import monotonic

from edged import faults, lexicons, log, protocol
from edged.admission import Admission, Sinks
from edged.attempts import Attempts
from edged.audio import chime
from edged.audio.chime import Chime
from edged.audio.player import Player
from edged.engine import pages
from edged.engine.buffers import Arena
from edged.engines import Engines, Generation
from edged.errors import (
    BundleError,
    BundleTrialFailed,
    Busy,
    ConfigError,
    DeviceMemoryShort,
    EdgedError,
    EngineError,
    MissingExtra,
    PlanTooLarge,
    RestartNeeded,
)
from edged.meter import Meter
from edged.paths import state_directory
from edged.reload import Reloader, loads, merge
from edged.settings import Settings
from edged.systemd import Notifier
from edged.text.lexicon.match import Lexicon
from edged.voices.catalog import check_choices, load_voices
from edged.voices.choice import Choice, because, configured, expected, fallback, lacking, others
from edged.watchdog import Watchdog

logger = logging.getLogger("edged")
EXCHANGE_S = 30.0  # the socket thread does it between two rounds; longer than that, and it has ended
UNLOADABLE = (BundleError, EngineError, ConfigError, MissingExtra)  # of bundles: others may speak instead
DEATHS = 2  # of the process in a row while it loads the same bundles, before it tries others
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
        self._attempts = Attempts(state_directory())
        self._lexicon = Lexicon()

    def told(self) -> str:
        """What systemd is told while all is well."""
        engines = self._parts.engines
        remark = f" ({engines.remark})" if engines.remark else ""
        return f"ready: {', '.join(engines.current.voices)}{remark}"

    # -- the start ------------------------------------------------------------------------------

    def load(self) -> Generation:
        """The configured bundles, or what can speak instead of those that cannot be used: better another
        voice than a silent box. The next start or reload tries the configured ones again."""
        self._lexicon = lexicons.at_start(self.settings.reading.lexicons)
        self._parts.player.use(self.settings.speech, chime.at_start(self.settings.speech.chime))
        wanted = configured(self.settings)
        what = " ".join(source.digest for source in wanted.sources)
        with self._attempts.loading(what) as deaths:
            if deaths >= DEATHS and (instead := tuple(others(self.settings, wanted))):
                text = f"the process has died {deaths} times while it loaded the bundles"
                return self._load_instead(instead, BundleTrialFailed(text))
            try:
                return self._load(self.settings, wanted, self._starting)
            except UNLOADABLE as error:
                return self._load_instead(others(self.settings, wanted), error)

    def _load_instead(self, instead: Iterable[Choice], reason: EdgedError) -> Generation:
        """The first that can be loaded. Raises the reason when there is none."""
        for each in instead:
            choice = because(each, reason)
            if choice is None:
                continue
            try:
                generation = self._load(self.settings, choice, self._starting)
            except EdgedError as error:
                text = f"this failed, too: {choice.told}: {error}"
                log.event(logger, logging.ERROR, text, code=error.code, phase="start")
                continue
            _tell(choice, reason, "start")
            return generation
        raise reason

    def _starting(self, text: str) -> None:
        self._parts.manager.status(f"starting: {text}")

    def open(self, sinks: Sinks | None = None) -> None:
        """Every job from here on is for the current voices, with the settings as they are now. sinks: the
        same as before when there are none."""
        if sinks is not None:
            self._sinks = sinks
            self._parts.admission.history.use(self.settings.speech)
            lexicons.tell_strangers(self._lexicon, self._parts.engines.current.voices)
        generation = self._parts.engines.current
        voices = generation.voices
        default = self.settings.voices.default
        self._parts.admission.open(
            {name: v.card for name, v in voices.items()},
            default if default in voices else next(iter(voices)),  # it may be absent
            sinks=self._sinks,
            submit=generation.submit,
            explain=generation.explain,
            defaults=self.settings.voices.defaults,
            reading=self.settings.reading,
            signs=generation.signs,
            clients=self.settings.speech.clients,
            forecast=generation.forecast(self.settings.audio.buffer_s),
        )

    def _load(self, settings: Settings, wanted: Choice, status: Callable[[str], object]) -> Generation:
        """Voices in an arena of their own, beside what is there, and started."""
        arena, parts = Arena(), self._parts
        beside = parts.engines.plan()
        voices = load_voices(settings, wanted.sources, arena, status, beside, wanted.absent)
        arena.seal()
        voices = faults.spoil(voices, settings.faults)
        meter, on_crash = parts.meter, parts.on_crash
        generation = Generation(settings, wanted, voices, arena, meter, on_crash, self._lexicon)
        try:
            parts.watchdog.check_room(generation.device_mb)  # the process is more than its plan, which fitted
        except PlanTooLarge:
            generation.stop()
            raise
        return generation

    # -- a reload, on its own thread --------------------------------------------------------------

    def _reload(self) -> protocol.ReloadReply:
        """Reads everything anew and takes it over; an error before the exchange changes nothing."""
        self._parts.manager.reloading()
        try:
            return self._take_over()
        finally:
            if self._parts.admission.state == "ready":
                self._parts.manager.ready(self._parts.watchdog.told())

    def _take_over(self) -> protocol.ReloadReply:
        settings, changed, waiting = merge(self.settings, self._read())
        lexicon = lexicons.anew(settings.reading.lexicons)
        sound = chime.anew(settings.speech.chime)
        engines = self._parts.engines
        wanted, fresh = self._wanted(settings, loads(changed))
        try:
            self._parts.ask(lambda: self._exchange(settings, fresh, lexicon, sound), EXCHANGE_S)
        except EdgedError:
            if fresh is not None and engines.current is not fresh:
                fresh.stop()
            raise
        if fresh is not None and settings.engine.huge_pages:
            pages.start()
        lexicons.tell_strangers(lexicon, engines.current.voices)
        if "log.level" in changed:
            log.set_level(settings.log.level)
        return protocol.ReloadReply(
            changed=changed,
            restart=waiting,
            loaded=list(fresh.voices) if fresh else [],
            bundles={source.name: str(source.path.resolve()) for source in wanted.sources},
            lexicon=len(lexicon.entries),
        )

    def _wanted(self, settings: Settings, anew: bool) -> tuple[Choice, Generation | None]:
        """What to speak with from here, and its generation when that is another one than now.

        Where `engine.fallback` speaks, it goes on while the configured bundles still cannot be used, so that
        all other settings can be changed meanwhile. anew: a setting of the voices has changed.
        """
        wanted = configured(settings)
        standing_in = bool(self._parts.engines.current.choice.absent)
        reason: EdgedError | None = lacking(settings, wanted) if standing_in else None
        if reason is None:
            try:
                return wanted, self._loaded(settings, wanted, anew)
            except UNLOADABLE as error:
                if not standing_in:
                    raise
                reason = error
        spare = fallback(settings, wanted)
        spare = None if spare is None else because(spare, reason)
        if spare is None:
            raise reason
        fresh = self._loaded(settings, spare, anew)
        _tell(spare, reason, "reload")
        return spare, fresh

    def _loaded(self, settings: Settings, wanted: Choice, anew: bool) -> Generation | None:
        """None where they speak already."""
        current = self._parts.engines.current
        if anew or wanted.sources != current.choice.sources:
            return self._load_beside(settings, wanted)
        cards = {name: v.card for name, v in current.voices.items()}
        check_choices(settings, cards, wanted.absent)
        return None

    def _exchange(
        self, settings: Settings, fresh: Generation | None, lexicon: Lexicon, sound: Chime | None
    ) -> None:
        """Socket thread."""
        before, self.settings = self.settings, settings
        self._lexicon = lexicon
        if settings.audio.volume != before.audio.volume:  # or what people turned it to stays
            self._parts.player.set_volume(settings.audio.volume)
        self._parts.player.use(settings.speech, sound)
        self._parts.admission.history.use(settings.speech)
        self._parts.admission.limit(settings.limits)
        if fresh is not None:
            self._parts.engines.add(fresh)
        self._parts.engines.current.use(lexicon)
        told = ("voices", "reading", "speech")
        if fresh is not None or any(getattr(before, group) != getattr(settings, group) for group in told):
            self.open()

    def _load_beside(self, settings: Settings, wanted: Choice) -> Generation:
        """New voices while the old ones speak. Two generations at most: each has all its memory."""
        until = monotonic() + FORMER_S
        if not self._parts.engines.retire(lambda: monotonic() > until or self.reloader.stopping):
            raise Busy("jobs of the voices before the last reload are not done yet", "try again later")
        tell = self._parts.manager.status
        try:
            return self._load(settings, wanted, lambda text: tell(f"reload: {text}"))
        except (PlanTooLarge, DeviceMemoryShort) as error:
            raise RestartNeeded(f"the new voices do not fit beside the old ones: {error.message}") from None

    def _retire(self) -> None:
        self._parts.engines.retire(self.reloader.busy)


def _tell(instead: Choice, reason: EdgedError, phase: str) -> None:
    level = logging.WARNING if expected(instead, reason) else logging.ERROR
    log.event(logger, level, f"{instead.told}: {reason}", code=reason.code, phase=phase)
