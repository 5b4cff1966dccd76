"""What a job wishes of the loudspeaker: its own words, else those of its client's entry, else its class's.

Pure functions, any thread. Neighbours: `admission` makes a wish of each request, `rules` and `queue` go by
it; the names and ranges are those of `edged.controls`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from edged.controls import AfterInterrupt, Queue, Replace
from edged.job import Priority
from edged.settings import ClientDefaults

# What a class does where nobody says otherwise. That progress may interrupt counts once it is promoted.
INTERRUPT = frozenset({Priority.IMPORTANT, Priority.MESSAGE, Priority.PROGRESS})
DROP_IF_BUSY = frozenset({Priority.NOTIFICATION})
LOST_WHEN_INTERRUPTED = frozenset({Priority.NOTIFICATION, Priority.PROGRESS})
FIELDS = ("interrupt", "queue", "replace", "drop_if_busy", "expires_ms", "after_interrupt")


class Asked(Protocol):
    """What a request, or a client's entry, says; None is nothing."""

    @property
    def priority(self) -> str | None: ...

    @property
    def interrupt(self) -> bool | None: ...

    @property
    def queue(self) -> Queue | None: ...

    @property
    def replace(self) -> Replace | None: ...

    @property
    def drop_if_busy(self) -> bool | None: ...

    @property
    def expires_ms(self) -> int | None: ...

    @property
    def after_interrupt(self) -> AfterInterrupt | None: ...


@dataclass(frozen=True, slots=True)
class Wish:
    """client: the application's name, or its connection where it has none; with uid (-1: unknown) it says
    whose job this is. interrupt: may it interrupt lower classes. queue: behind or before those of its class
    that wait. replace: "own" drops its client's older jobs of its class. drop_if_busy: dropped rather than
    made to wait. expires_s: how long it may wait, None for ever. after_interrupt: what becomes of it then."""

    client: str | bytes
    uid: int
    priority: Priority
    interrupt: bool
    queue: Queue
    replace: Replace
    drop_if_busy: bool
    expires_s: float | None
    after_interrupt: AfterInterrupt

    @property
    def owner(self) -> tuple[str | bytes, int]:
        return self.client, self.uid


def entry_of(clients: Iterable[ClientDefaults], name: str, uid: int) -> ClientDefaults:
    """The first entry for this client; one that says nothing where there is none. name: "" for a client that
    gives none."""
    fits = (e for e in clients if e.client in ("*", name) and e.uid in (None, uid))
    return next(fits, ClientDefaults())


def priority_of(request: str | None, entry: str | None) -> Priority:
    """The class of a job. None or "": not said."""
    return Priority[(request or entry or "text").upper()]


def wish(client: str | bytes, uid: int, request: Asked, entry: Asked) -> Wish:
    """Field by field the request's, else the entry's, else the class's own."""

    def said(name: str, otherwise: Any) -> Any:
        values = (getattr(source, name) for source in (request, entry))
        return next((value for value in values if value is not None), otherwise)

    priority = priority_of(request.priority, entry.priority)
    expires_ms = said("expires_ms", None)
    return Wish(
        client=client,
        uid=uid,
        priority=priority,
        interrupt=said("interrupt", priority in INTERRUPT),
        queue=said("queue", "last"),
        # Of two reports on the same matter the older is worth nothing.
        replace="own" if priority is Priority.PROGRESS else said("replace", "none"),
        drop_if_busy=said("drop_if_busy", priority in DROP_IF_BUSY),
        expires_s=None if expires_ms is None else expires_ms / 1e3,
        after_interrupt=said("after_interrupt", "drop" if priority in LOST_WHEN_INTERRUPTED else "resume"),
    )


def promoted(progress: Wish) -> Wish:
    """The last progress of a series, which is to be heard: a message."""
    return replace(progress, priority=Priority.MESSAGE, replace="none", after_interrupt="resume")
