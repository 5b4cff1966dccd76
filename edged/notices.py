"""What a line of the log is known by in the journal, and how often one kind of line may come.

Every line from `warning` on has a code: that of an error of the tree, or one of its own. The journal's
message catalog (systemd/edged.catalog) explains each code; `message_id` is where it finds the entry.
Leaf; used by the log handlers under their lock. Neighbours: `log` calls it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache

OTHER = "other"  # lines that libraries write
MOST = 20  # lines of one kind within WITHIN_S: an outage shows in full, a storm does not fill the disk
WITHIN_S = 10.0

Kind = tuple[str, int, str]  # file, line, code: as many as the program has places that log


@cache
def message_id(code: str) -> str:
    """128 bits in hex, for ever the same for a code; nothing else has to be kept in step."""
    return hashlib.blake2b(b"edged/" + code.encode(), digest_size=16).hexdigest()


@dataclass(slots=True)
class _Window:
    since: float
    said: int = 0
    unsaid: int = 0


class Repeats:
    """Lets through at most `most` lines of a kind in `within_s` seconds, and counts the others.

    now: monotonic seconds.
    """

    def __init__(self, most: int = MOST, within_s: float = WITHIN_S) -> None:
        self._most, self._within_s = most, within_s
        self._windows: dict[Kind, _Window] = {}

    def ask(self, kind: Kind, now: float) -> bool:
        """Whether this line may be written. To be called after `ended`."""
        window = self._windows.setdefault(kind, _Window(now))
        if window.said >= self._most:
            window.unsaid += 1
            return False
        window.said += 1
        return True

    def ended(self, now: float) -> list[tuple[Kind, int]]:
        """Kinds whose time is over, with the number of lines that were left out, where there were any."""
        over = [kind for kind, window in self._windows.items() if now - window.since >= self._within_s]
        windows = [(kind, self._windows.pop(kind)) for kind in over]
        return [(kind, window.unsaid) for kind, window in windows if window.unsaid]


class Seldom:
    """At most `per_s` lines a second of one kind; the next one that is allowed tells how many were not."""

    def __init__(self, per_s: int) -> None:
        self._per_s = per_s
        self._second = 0
        self._said = self._unsaid = 0

    def ask(self, now: float) -> tuple[bool, int]:
        """now: monotonic seconds. Whether the line may be written, and how many were left out before it."""
        if int(now) != self._second:
            self._second, self._said = int(now), 0
        if self._said >= self._per_s:
            self._unsaid += 1
            return False, 0
        self._said += 1
        unsaid, self._unsaid = self._unsaid, 0
        return True, unsaid
