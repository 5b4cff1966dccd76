"""Faults on purpose, so that tests can see what the service does about them. Off unless configured.

Neighbours: `service` puts these in place of the real parts when the group `faults` of the configuration asks
for them. The leak grows with every reading of the memory, on the main thread (in a reload once on its own);
steps go wrong on the engine threads, and each loading of the voices counts its own.
"""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic, sleep
from typing import Any

from edged import log
from edged.errors import EngineError
from edged.footprint import Usage
from edged.job import Params, Utterance
from edged.settings import Faults
from edged.voices.api import Frontend, Piece, Stream, Synthesizer, Voice, VoiceCard

logger = logging.getLogger("edged.faults")


class Leak:
    """Takes memory with every reading, up to its share of the budget; `measure` it instead of the process."""

    def __init__(self, faults: Faults, budget_mb: float, measure: Callable[[float], Usage]) -> None:
        self._faults, self._measure = faults, measure
        self._most_mb = budget_mb * faults.leak_to_percent / 100
        self._last: float | None = None
        self._held: list[bytes] = []

    def measure(self, enough_below_mb: float = 0.0) -> Usage:
        now = monotonic()
        if self._faults.leak_mb and self._last is not None:
            room_mb = self._most_mb - self._measure(0.0).mb
            self._take(min(room_mb, (now - self._last) * self._faults.leak_mb))
        self._last = now
        return self._measure(enough_below_mb)

    def drop(self) -> None:
        """What only a cache holds can be spared; it does not come again."""
        if self._faults.leak_is_cache and self._held:
            self._held.clear()
            self._most_mb = 0.0

    def _take(self, mb: float) -> None:
        if mb > 0.0:
            self._held.append(b"\xff" * int(mb * 1e6))  # not zeros, which would cost nothing


class Steps:
    """Counts the steps of the voices of one loading, and does to them what is asked for."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self._count = 0

    def next(self) -> None:
        self._count += 1
        if self._count == self._faults.stall_at_step:
            self._tell("stalls")
            while True:
                sleep(1.0)
        if self._count == self._faults.crash_at_step:
            self._tell("crashes")
            os.kill(os.getpid(), signal.SIGSEGV)  # as a fault in native code would
        if 0 < self._faults.fail_from_step <= self._count:
            raise EngineError(f"step {self._count} fails on purpose")

    def _tell(self, what: str) -> None:
        log.event(logger, logging.WARNING, f"step {self._count} {what} on purpose", code="faults_on")
        for handler in logging.getLogger().handlers:
            handler.flush()  # another thread writes the line, which a crash would not wait for


class _Synthesizer:
    def __init__(self, real: Synthesizer, steps: Steps) -> None:
        self._real, self._steps = real, steps
        self.max_batch = real.max_batch

    def bucket(self, utterance: Utterance, params: Params) -> int:
        return self._real.bucket(utterance, params)

    def open(self, utterance: Utterance, params: Params) -> Stream:
        return self._real.open(utterance, params)

    def step(self, streams: Sequence[Any]) -> Sequence[Piece]:
        self._steps.next()
        return self._real.step(streams)

    def close(self, stream: Stream) -> None:
        self._real.close(stream)


@dataclass
class _Voice:
    card: VoiceCard
    frontend: Frontend
    synthesizer: Synthesizer
    warm_up: Callable[[], None]
    close: Callable[[], None]


def spoil(voices: Mapping[str, Voice], faults: Faults) -> dict[str, Voice]:
    """The voices with steps that go wrong. Voices that share a synthesizer go on sharing one."""
    if faults == Faults():
        return dict(voices)
    text = "faults are made on purpose: this configuration is for tests only"
    log.event(logger, logging.WARNING, text, code="faults_on")
    steps = Steps(faults)
    real = {id(voice.synthesizer): voice.synthesizer for voice in voices.values()}
    spoilt = {key: _Synthesizer(synthesizer, steps) for key, synthesizer in real.items()}
    return {
        name: _Voice(v.card, v.frontend, spoilt[id(v.synthesizer)], v.warm_up, v.close)
        for name, v in voices.items()
    }
