"""What of a job lies where: its utterances, its times and its marks, by positions in the ring.

No thread of its own: each belongs to one sink, and is guarded by the player's lock. Neighbour: `segment`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from edged.job import MarkReached, News, SentenceReached


@dataclass(frozen=True, slots=True)
class Spot:
    """From `position` on there is audio of that utterance, whose time in the job's audio is `time_s`."""

    position: int
    utterance: int
    time_s: float


class Places:
    """In the order of positions; what lies behind the last spot goes on from there.

    While the audio is in no ring, positions are those from its beginning (`move`).
    """

    def __init__(self) -> None:
        self._spots: list[Spot] = []
        self._news: list[tuple[int, News]] = []  # not told yet
        self._latest = -1  # the utterance of the last spot ever added

    def add(self, spot: Spot) -> None:
        if spot.utterance != self._latest:
            self._latest = spot.utterance
            self._news.append((spot.position, SentenceReached(spot.utterance, spot.time_s)))
        self._spots.append(spot)

    def mark(self, position: int, name: str, time_s: float) -> None:
        self._news.append((position, MarkReached(name, time_s)))

    def at(self, position: int) -> Spot | None:
        """The last spot at or before the position, else the first one of all."""
        found = [spot for spot in self._spots if spot.position <= position]
        return found[-1] if found else next(iter(self._spots), None)

    def time_s(self, position: int, rate: int) -> float:
        """What of the job's audio is heard at the position, in seconds; rate: of the ring."""
        spot = self.at(position)
        return 0.0 if spot is None else spot.time_s + max(0, position - spot.position) / rate

    def behind(self, utterance: int) -> int | None:
        """Where a later utterance begins; None where there is none yet."""
        return next((spot.position for spot in self._spots if spot.utterance > utterance), None)

    def due(self, position: int) -> list[News]:
        """What is to be told once that position is heard."""
        due = [news for at, news in self._news if at <= position]
        self._news = self._news[len(due) :]
        return due

    def next_news(self) -> int | None:
        """The position that `due` is to be asked for next."""
        return self._news[0][0] if self._news else None

    def forget_before(self, position: int) -> None:
        """What lies before it will not be asked for again."""
        passed = sum(1 for spot in self._spots if spot.position <= position)
        del self._spots[: max(0, passed - 1)]

    def forget_from(self, position: int) -> None:
        """Nothing lies there any more."""
        self._spots = [spot for spot in self._spots if spot.position < position]
        self._news = [news for news in self._news if news[0] < position]
        self._latest = self._spots[-1].utterance if self._spots else -1

    def forget_between(self, start: int, end: int) -> None:
        """That part is not heard."""
        self._news = [news for news in self._news if not start <= news[0] < end]

    def move(self, by: int, scale: float = 1.0) -> None:
        """All of it lies elsewhere, or in a ring of another rate."""
        self._spots = [replace(s, position=round((s.position + by) * scale)) for s in self._spots]
        self._news = [(round((at + by) * scale), news) for at, news in self._news]
