"""Reload: takes over a changed configuration and changed bundles while jobs go on.

Thread `edged-reload`, which sleeps until it is asked to, by SIGHUP or the operation `reload`. All or nothing:
an error anywhere leaves everything as it was, and is told to who asked and to the log. What is asked while a
reload is under way is answered by the next one, which sees what was written in between.

`LIVE` names the settings that can change; all others are named as needing a restart, and keep their value.
Neighbours: `takeover` does it (`act`), `server` and `service` (SIGHUP) ask for it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator

import msgspec

from edged import log, protocol
from edged.errors import EdgedError, InternalError, ShuttingDown
from edged.settings import Settings
from edged.threads import name_thread

logger = logging.getLogger("edged.reload")
Answer = Callable[[protocol.Event], None]

# Groups or settings. Those of LOADING are of the voices: they are loaded anew for it.
LOADING = ("engine", "stream", "voices.bundles", "voices.directory")
LIVE = (
    *LOADING,
    "limits.text_chars",
    "limits.jobs",
    "limits.jobs_per_client",
    "limits.wait_s",
    "limits.open_idle_s",
    "voices",
    "reading",
    "audio.volume",
    "speech",
    "log.level",
    "service.drain_s",
    "service.warmup",
)


def differences(old: Settings, new: Settings) -> Iterator[tuple[str, str]]:
    """(group, name) of every setting that is not the same."""
    for group in old.__struct_fields__:
        before, after = getattr(old, group), getattr(new, group)
        for name in before.__struct_fields__:
            if getattr(before, name) != getattr(after, name):
                yield group, name


def _among(group: str, name: str, places: tuple[str, ...]) -> bool:
    return group in places or f"{group}.{name}" in places


def merge(old: Settings, new: Settings) -> tuple[Settings, list[str], list[str]]:
    """What can be used now: the new settings, with the old values where only a restart changes them; the
    names of those that change, and of those that need the restart."""
    changed, waiting = [], []
    for group, name in differences(old, new):
        if _among(group, name, LIVE):
            changed.append(f"{group}.{name}")
            continue
        waiting.append(f"{group}.{name}")
        kept = msgspec.structs.replace(getattr(new, group), **{name: getattr(getattr(old, group), name)})
        new = msgspec.structs.replace(new, **{group: kept})
    return new, changed, waiting


def loads(changed: list[str]) -> bool:
    """Whether one of these settings is of the voices."""
    parts = [key.partition(".") for key in changed]
    return any(_among(group, name, LOADING) for group, _, name in parts)


class Reloader:
    """act: reloads and tells what came of it, or raises. after: called when all were answered; it may take
    as long as the jobs of the former voices."""

    def __init__(
        self,
        act: Callable[[], protocol.ReloadReply],
        after: Callable[[], None],
        on_crash: Callable[[BaseException], None],
    ) -> None:
        self._act = act
        self._after = after
        self._on_crash = on_crash
        self._changed = threading.Condition()
        self._waiting: list[Answer] = []
        self._taken: list[Answer] = []  # whose reload is under way
        self.stopping = False
        self.ended = True  # after `stop`: False when it was still loading
        self._thread = threading.Thread(target=self._main, name="edged-reload", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def ask(self, answer: Answer = lambda _: None) -> None:
        """Any thread: reload, and tell `answer`, on the thread of this module."""
        with self._changed:
            self._waiting.append(answer)
            self._changed.notify()

    def busy(self) -> bool:
        """Whether it has to stop what takes long: the daemon ends, or another reload was asked for."""
        return self.stopping or bool(self._waiting)

    def stop(self, timeout_s: float) -> None:
        with self._changed:
            self.stopping = True
            self._changed.notify()
        self._thread.join(timeout_s)
        self.ended = not self._thread.is_alive()
        with self._changed:
            answers = self._taken + self._waiting
            self._taken, self._waiting = [], []
        for answer in answers:
            answer(protocol.failed(ShuttingDown("the daemon is stopping")))

    def _main(self) -> None:
        name_thread("edged-reload")
        try:
            self._serve()
        except BaseException as exc:
            text = "the reload thread died"
            log.event(logger, logging.CRITICAL, text, exc_info=True, code="reload_died")
            self._on_crash(exc)

    def _serve(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(self.busy)
                if self.stopping:
                    return
                self._taken, self._waiting = self._waiting, []
            event = self._reload()
            with self._changed:
                answers, self._taken = self._taken, []
            for answer in answers:
                answer(event)
            self._after()

    def _reload(self) -> protocol.Event:
        try:
            reply = self._act()
        except EdgedError as error:
            for line in str(error).splitlines():  # a problem of the configuration each
                text = f"reload refused, everything stays as it was: {line}"
                log.event(logger, logging.ERROR, text, code=error.code, phase="reload")
            return protocol.failed(error)
        except Exception as exc:
            text = "the reload failed"
            log.event(logger, logging.ERROR, text, exc_info=True, code=InternalError.code, phase="reload")
            return protocol.failed(InternalError(f"the reload failed: {type(exc).__name__}"))
        log.event(
            logger,
            logging.INFO,
            "reloaded",
            phase="reload",
            changed=",".join(reply.changed) or None,
            voices=",".join(reply.loaded) or None,
            lexicon=reply.lexicon or None,
        )
        if reply.restart:
            names = ",".join(reply.restart)
            text = "these settings change with a restart only"
            log.event(logger, logging.WARNING, text, code="restart_needed", phase="reload", settings=names)
        return reply
