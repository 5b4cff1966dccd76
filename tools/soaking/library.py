"""Clients of tools/soak that are programs as people write them: the client library, a thread each.

They see what raw sockets do not show: that a caller gets a result or an error, and never waits for ever.
Neighbour: `rig`, for the times when no daemon was there.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Sequence
from time import monotonic

from edged.client import Client
from edged.errors import EdgedError, JobCancelled, TransportError
from soaking.clients import REFUSALS, THINK_S
from soaking.rig import Outage, within

SILENCE_S = 20.0
BESIDE_S = 1.0  # a connection that just broke, or is about to, is that of the outage


class Programs:
    """outcomes: done, or the code of the error. unexpected: errors while the daemon was there."""

    def __init__(
        self, endpoint: str, outages: Sequence[Outage], standstills: Sequence[Outage], count: int, seed: int
    ) -> None:
        self.outcomes: Counter[str] = Counter()
        self.unexpected: list[str] = []
        self.longest_s = 0.0  # until an error of the connection was told
        self._endpoint, self._outages, self._standstills = endpoint, outages, standstills
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._threads = [
            threading.Thread(target=self._main, args=(random.Random(f"{seed} library {n}"),), daemon=True)
            for n in range(count)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self, within_s: float) -> int:
        """How many are still waiting for an answer."""
        self._stop.set()
        until = monotonic() + within_s
        for thread in self._threads:
            thread.join(max(0.0, until - monotonic()))
        return sum(thread.is_alive() for thread in self._threads)

    def _main(self, chance: random.Random) -> None:
        while not self._stop.is_set():
            with Client(self._endpoint, timeout_s=SILENCE_S) as client:
                for _ in range(chance.randint(1, 20)):
                    self._one(client, chance)
                    if self._stop.wait(chance.uniform(*THINK_S)):
                        return

    def _one(self, client: Client, chance: random.Random) -> None:
        begin = monotonic()
        text = f"Batch {chance.randrange(1000)} has been released."
        code, transport = "done", False
        try:
            if chance.random() < 0.5:
                client.synthesize(text, format="wav")
            else:
                with client.stream(text) as pieces:
                    for _ in pieces:
                        if chance.random() < 0.05:
                            break
        except JobCancelled:
            code = "cancelled"
        except EdgedError as error:
            code, transport = error.code, isinstance(error, TransportError)
        end = monotonic()
        with self._lock:
            self.outcomes[code] += 1
            if transport:
                self.longest_s = max(self.longest_s, end - begin)
            away = within(self._outages, begin, end, BESIDE_S) or within(self._standstills, begin, end)
            if code != "done" and code not in REFUSALS and not (transport and away):
                self.unexpected.append(code)
