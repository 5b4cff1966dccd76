"""The speech queue: who is heard, who was paused, who waits. It says what is to be done; its owner does it.

Not thread-safe, and without a clock: the owner calls it under its lock, with `time.monotonic()` as `now`,
carries out the actions in their order, and calls `look` when `next_look` says so. Neighbours: `actions`,
`rules` (who interrupts whom), `options` (the wishes).

A job waits until it begins, is current until it ends or is paused, and a paused one goes on when it is its
turn. Several are current at once: one that is written to its end is still heard while the next one is written
behind it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic

from edged.errors import Busy
from edged.job import Priority
from edged.settings import Speech
from edged.speech.actions import Action, Actions, Begin, Drop, How, K, Pause, Resume
from edged.speech.options import Wish, promoted
from edged.speech.rules import interrupts, replaces


@dataclass(slots=True, eq=False)
class _Entry(Generic[K]):
    """rank: order within its class. blocked: a progress that could not be heard when it came."""

    key: K
    wish: Wish
    rank: int
    came: float
    ready: bool = False
    held: bool = False
    blocked: bool = False
    written: bool = False  # of a current one
    how: How | None = None  # of a paused one

    @property
    def turn(self) -> tuple[int, bool, int]:
        """What was begun is finished before others of its class begin."""
        return self.wish.priority, self.how is None, self.rank


class SpeechQueue(Generic[K]):
    """Owns the order of jobs; a key stands for a job. settings: may be set anew at any time.

    Every method but the properties, `next_look` and `upcoming` returns the actions that follow, in order. A
    key that is not in the queue (any more) is passed over.
    """

    def __init__(self, settings: Speech) -> None:
        self.settings = settings
        self._current: list[_Entry[K]] = []  # in the order they are heard; all but the last are written
        self._idle: dict[K, _Entry[K]] = {}  # paused or waiting
        self._count = 0

    # -- what is there --------------------------------------------------------------------------

    @property
    def current(self) -> tuple[K, ...]:
        """Those that were begun, in the order in which they are heard; the last may still be written."""
        return tuple(e.key for e in self._current)

    @property
    def paused(self) -> tuple[K, ...]:
        """Those that were begun and wait to go on, in the order of their turn."""
        return tuple(e.key for e in self._in_turn() if e.how is not None)

    @property
    def waiting(self) -> tuple[K, ...]:
        """Those that were not begun, in the order of their turn."""
        return tuple(e.key for e in self._in_turn() if e.how is None)

    def upcoming(self) -> list[K]:
        """The order in which audio will be needed; of those that are written to their end none is."""
        writing = [e for e in self._current if not e.written]
        idle = self._in_turn()
        free = [e for e in idle if not e.held]
        # Who waits before one that will interrupt is heard before it, too.
        before = [n for n, e in enumerate(free, 1) if any(interrupts(e.wish, w.wish) for w in writing)]
        cut = max(before, default=0)
        order = [*free[:cut], *writing, *free[cut:], *(e for e in idle if e.held)]
        return [e.key for e in order]

    # -- what happens ---------------------------------------------------------------------------

    def add(self, key: K, wish: Wish, now: float) -> Actions[K]:
        """A job came. `Drop` of its own key: it is not taken. Raises `Busy`, and then nothing has changed."""
        if self._entry(key) is not None:
            raise ValueError(f"{key!r} is in the queue already")
        jobs = [*self._current, *self._idle.values()]
        old = [e for e in jobs if replaces(wish, e.wish)]
        others = [e for e in jobs if e not in old]
        if wish.drop_if_busy and others:
            return (Drop(key, "busy"),)
        mine = sum(1 for e in others if e.key in self._idle and e.wish.owner == wish.owner)
        if mine >= self.settings.waiting_per_client:
            limit = self.settings.waiting_per_client
            raise Busy(
                f"{mine} jobs of this client wait for the loudspeaker, the limit is {limit}",
                "wait for one of them to end, or raise speech.waiting_per_client",
            )
        for entry in old:
            self._remove(entry.key)
        self._count += 1
        rank = -self._count if wish.queue == "next" else self._count
        self._idle[key] = _Entry(key, wish, rank, now, blocked=bool(self._current))
        return (*(Drop(e.key, "replaced") for e in old), *self._next())

    def ready(self, key: K) -> Actions[K]:
        """Its first audio is there: from here it can begin."""
        if entry := self._idle.get(key):
            entry.ready = True
        return self._next()

    def written(self, key: K) -> Actions[K]:
        """Its last sample is on its way to the device: the next one may be written behind it."""
        for entry in self._current:
            entry.written = entry.written or entry.key == key
        return self._next()

    def ended(self, key: K) -> Actions[K]:
        """It was heard to its end, failed, or was cancelled by somebody."""
        return self.stop((key,))

    def stop(self, keys: Iterable[K]) -> Actions[K]:
        """People want these to end, who then cancel them: they are forgotten together, without a `Drop`, so
        that none of them begins when another ends."""
        for key in keys:
            self._remove(key)
        return self._next()

    def hold(self, keys: Iterable[K]) -> Actions[K]:
        """People want these paused: heard ones are, waiting ones keep their place. Others pass them."""
        actions: list[Action[K]] = []
        for entry in filter(None, map(self._entry, keys)):
            entry.held = True
            if entry in self._current:
                self._pause(entry, "exact")
                actions.append(Pause(entry.key, "exact", asked=True))
        return (*actions, *self._next())

    def release(self, keys: Iterable[K]) -> Actions[K]:
        """Ends `hold`: a paused one goes on, exactly where it was, when it is its turn."""
        for entry in filter(None, map(self._entry, keys)):
            entry.held = False
        return self._next()

    # -- time -----------------------------------------------------------------------------------

    def next_look(self, now: float) -> float | None:
        """Seconds from now until `look` has something to do, None while time changes nothing."""
        moments = [due for e in self._idle.values() for due in (self._expiry(e), self._promotion(e))]
        due = min((moment for moment in moments if moment is not None), default=None)
        return None if due is None else max(0.0, due - now)

    def look(self, now: float) -> Actions[K]:
        """Drops what expired, promotes the last progress of a series."""
        late = [e for e in self._idle.values() if _reached(self._expiry(e), now)]
        for entry in late:
            self._remove(entry.key)
        for entry in [e for e in self._idle.values() if _reached(self._promotion(e), now)]:
            self._count += 1
            entry.wish, entry.rank = promoted(entry.wish), self._count
        return (*(Drop(e.key, "expired") for e in late), *self._next())

    def _expiry(self, entry: _Entry[K]) -> float | None:
        if entry.how is not None or entry.wish.expires_s is None:
            return None
        return entry.came + entry.wish.expires_s

    def _promotion(self, entry: _Entry[K]) -> float | None:
        """A progress that has to wait is dropped when a newer one comes; when none does, it was the last."""
        if entry.wish.priority is not Priority.PROGRESS or entry.how is not None or not entry.blocked:
            return None
        return entry.came + self.settings.progress_s

    # -- the order ------------------------------------------------------------------------------

    def _next(self) -> Actions[K]:
        """Begins what is to be heard next, if it may now, and interrupts what is heard for it."""
        free = [e for e in self._in_turn() if not e.held and (e.ready or e.how is not None)]
        cut = len(self._current)
        while cut and any(interrupts(e.wish, self._current[cut - 1].wish) for e in free):
            cut -= 1
        if not free or (cut and not self._current[cut - 1].written):
            return ()
        actions: list[Action[K]] = [self._interrupt(entry) for entry in self._current[cut:]]
        first = free[0]  # not always the one that interrupted: who waited before it is heard before it
        del self._idle[first.key]
        actions.append(Begin(first.key) if first.how is None else Resume(first.key, first.how))
        self._count += 1
        first.rank, first.how, first.written = self._count, None, False
        self._current.append(first)
        for entry in [e for e in self._idle.values() if e.how is None]:
            entry.blocked = True
            if entry.wish.drop_if_busy and not entry.held:
                del self._idle[entry.key]
                actions.append(Drop(entry.key, "busy"))
        return tuple(actions)

    def _interrupt(self, entry: _Entry[K]) -> Action[K]:
        how = entry.wish.after_interrupt
        if how == "drop":
            self._remove(entry.key)
            return Drop(entry.key, "interrupted")
        self._pause(entry, how)
        return Pause(entry.key, how)

    def _pause(self, entry: _Entry[K], how: How) -> None:
        self._current.remove(entry)
        self._idle[entry.key] = entry
        entry.how = how

    def _in_turn(self) -> list[_Entry[K]]:
        return sorted(self._idle.values(), key=lambda entry: entry.turn)

    def _entry(self, key: K) -> _Entry[K] | None:
        return self._idle.get(key) or next((e for e in self._current if e.key == key), None)

    def _remove(self, key: K) -> None:
        self._idle.pop(key, None)
        self._current = [e for e in self._current if e.key != key]


def _reached(due: float | None, now: float) -> bool:
    return due is not None and now >= due
