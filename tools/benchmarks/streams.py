"""Clients that stream speech and note when each piece arrives: what a listener at the socket would hear.

A thread and a connection a client. Neighbours: `chattts.py` says what is asked and makes figures of it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from edged.client import Client

Ask = tuple[str, int]  # text, seed


@dataclass(frozen=True)
class Take:
    """One streamed job: seconds on one clock. pieces: (arrival, seconds of audio in it)."""

    sent: float
    pieces: tuple[tuple[float, float], ...]
    ended: float

    @property
    def audio_s(self) -> float:
        return sum(length for _, length in self.pieces)

    @property
    def wall_s(self) -> float:
        return self.ended - self.sent

    @property
    def first_ms(self) -> float:
        return (self.pieces[0][0] - self.sent) * 1e3

    @property
    def slack_s(self) -> tuple[float, ...]:
        """For every piece but the first, how long before its turn it arrived, had the first been played at
        once: negative is a gap that the listener hears."""
        begin, heard = self.pieces[0]
        slack = []
        for arrived, length in self.pieces[1:]:
            slack.append(begin + heard - arrived)
            heard += length
        return tuple(slack)


def take(client: Client, text: str, seed: int) -> Take:
    """Streams one text to its end."""
    sent = time.perf_counter()
    pieces = []
    with client.stream(text, seed=seed) as stream:
        for chunk in stream:
            if chunk.samples:
                pieces.append((time.perf_counter(), chunk.samples / chunk.sample_rate))
    return Take(sent, tuple(pieces), time.perf_counter())


def first_audio_ms(client: Client, text: str, seed: int) -> float:
    """The first piece only; the rest is cancelled."""
    sent = time.perf_counter()
    with client.stream(text, seed=seed) as stream:
        next(stream)
        return (time.perf_counter() - sent) * 1e3


def together(
    endpoint: str, plans: Sequence[Sequence[Ask]], each: Callable[[], None] = lambda: None
) -> list[list[Take]]:
    """As many clients as plans, starting at once; each asks the jobs of its plan one after the other.

    each: called by a client's thread after every job. An error of a client is raised here.
    """
    takes: list[list[Take]] = [[] for _ in plans]
    errors: list[BaseException] = []
    start = threading.Barrier(len(plans))

    def work(plan: Sequence[Ask], mine: list[Take]) -> None:
        try:
            with Client(endpoint, timeout_s=60.0) as client:
                client.ping()
                start.wait(60)
                for text, seed in plan:
                    mine.append(take(client, text, seed))
                    each()
        except BaseException as error:
            errors.append(error)
            start.abort()

    threads = [
        threading.Thread(target=work, args=pair, daemon=True) for pair in zip(plans, takes, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return takes


def real_time_factor(takes: Sequence[Sequence[Take]]) -> float:
    """Seconds on the clock, from the first request to the last sample of all, per second of audio made."""
    flat = [one for row in takes for one in row]
    wall = max(one.ended for one in flat) - min(one.sent for one in flat)
    return wall / sum(one.audio_s for one in flat)
