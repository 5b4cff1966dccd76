"""The voices that are loaded, with the threads that speak them, and how they are exchanged for others.

A `Generation` is what one loading brought: its voices, their buffers, its text thread and its engine thread.
Usually there is one. After a reload the new one takes every new job, and the old one lives on until its last
job has ended, then gives its memory back. So no two threads ever touch the same network, and no job notices.
`Engines` is what the other parts see of them: they wake, watch and count all generations alike.

Made by the loading thread (main at start, `edged-reload` later), which also retires the old ones; `submit` is
the server thread's. Neighbours: `takeover` makes and exchanges them, `desk` counts, `watchdog` takes
their pulses.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from time import sleep

from edged import log
from edged.engine.buffers import Arena
from edged.engine.plan import PlanRow, total_mb
from edged.errors import EdgedError, InternalError
from edged.footprint import trim
from edged.forecast import Forecast
from edged.job import Job, Params
from edged.meter import Meter
from edged.settings import Settings
from edged.text.explain import Account, Told
from edged.text.explainer import fill
from edged.text.languages import readings_of
from edged.text.lexicon.match import Lexicon
from edged.text.prepare import Preparer
from edged.text.script import Script
from edged.text.stage import Question, TextStage
from edged.threads import Pulse
from edged.voices.api import Voice
from edged.voices.choice import Choice
from edged.worker import Worker

logger = logging.getLogger("edged")
STOP_S = 2.0  # how long a thread may take to end after it was told to
LOOK_S = 0.05  # how often a retired generation is asked whether its jobs have ended


class Generation:
    """Voices, their arena and their threads, started."""

    def __init__(
        self,
        settings: Settings,
        choice: Choice,
        voices: Mapping[str, Voice],
        arena: Arena,
        meter: Meter,
        on_crash: Callable[[BaseException], None],
        lexicon: Lexicon | None = None,
    ) -> None:
        self.choice = choice
        self.voices = voices
        self.arena = arena
        self._jobs: list[Job] = []
        gather_s = settings.engine.gather_ms / 1e3
        self.worker = Worker(voices, settings.stream.chunk_ms / 1e3, on_crash, meter, gather_s)
        frontends = {name: voice.frontend for name, voice in voices.items()}
        preparer = Preparer(frontends, readings_of(frontends.values(), lexicon))
        self.text = TextStage(preparer, self.worker.submit, self.worker.wake, on_crash)
        self.worker.start()
        self.text.start()

    def submit(self, job: Job, script: Script) -> None:
        """Server thread: an admitted job. The number of live ones is bounded by admission."""
        self._jobs = [one for one in self._jobs if not one.ended]
        self._jobs.append(job)
        self.text.submit(job, script)

    def has(self, job: Job) -> bool:
        return job in self._jobs

    def use(self, lexicon: Lexicon) -> None:
        """Any thread: for what is read from here on."""
        self.text.preparer.readings.lexicon = lexicon

    def signs(self) -> frozenset[str]:
        """Any thread: those that the lexicon has words for."""
        return self.text.preparer.readings.lexicon.signs

    def explain(self, script: Script, params: Params, account: Account, told: Told) -> None:
        """Server thread: how a text would be spoken, told later. Raises `Busy`."""
        self.text.explain(Question(account, fill(account, self.text.preparer, script, params), told))

    @property
    def idle(self) -> bool:
        """Whether every job has ended, and every question is answered; only after the last `submit`."""
        return all(job.ended for job in self._jobs) and not self.text.asked

    @property
    def device_mb(self) -> float:
        """Memory of the GPU."""
        return total_mb(row for row in self.arena.plan() if row.kind == "device")

    def forecast(self, loudspeaker_s: float) -> Forecast:
        return Forecast(
            {name: voice.synthesizer.max_batch for name, voice in self.voices.items()},
            {name: str(id(voice.synthesizer)) for name, voice in self.voices.items()},
            loudspeaker_s,
        )

    def stop(self) -> None:
        """Ends the threads and frees the networks; jobs that are still live are not spoken any more."""
        self.text.stop(STOP_S)
        if self.worker.stop(STOP_S):  # a network that still computes must not be taken away
            for voice in self.voices.values():
                self._close(voice)

    def _close(self, voice: Voice) -> None:
        """What cannot be freed is told and left: the daemon can go on, and a restart frees it."""
        try:
            voice.close()
        except Exception as exc:
            error = exc if isinstance(exc, EdgedError) else InternalError(repr(exc))
            text = f"{voice.card.name}: not all of its memory could be freed: {error}"
            log.event(logger, logging.ERROR, text, code=error.code)


class Engines:
    """All generations. base: the buffers that are of no voice (the loudspeaker's ring)."""

    def __init__(self, base: Arena) -> None:
        self._base = base
        self._all: tuple[Generation, ...] = ()  # replaced, never changed: other threads walk it
        self._spent_s = 0.0  # processor seconds of generations that are gone

    @property
    def current(self) -> Generation:
        return self._all[-1]

    def add(self, generation: Generation) -> None:
        """The generation that takes the jobs from here."""
        self._all = (*self._all, generation)

    def wake(self) -> None:
        """Any thread: something that the schedulers look at has changed."""
        for generation in self._all:
            generation.worker.wake()

    def send_back(self, job: Job, utterance: int, take: int) -> None:
        """Any thread: a job is to be spoken anew from that utterance on (see `Worker.send_back`)."""
        for generation in self._all:
            if generation.has(job):
                generation.worker.send_back(job, utterance, take)

    def pulses(self) -> dict[str, Pulse]:
        """Any thread: the signs of life of every thread here, by its name."""
        found: dict[str, Pulse] = {}
        *former, current = self._all
        for number, one in enumerate(former, 1):
            found |= {f"former engine {number}": one.worker.pulse, f"former text {number}": one.text.pulse}
        return found | {"engine": current.worker.pulse, "text": current.text.pulse}

    def retire(self, enough: Callable[[], bool]) -> bool:
        """Frees every generation but the current one when its jobs have ended, which it waits for until
        `enough`; whether all of them are gone."""
        while len(self._all) > 1:
            idle = [old for old in self._all[:-1] if old.idle]
            for old in idle:
                self._drop(old)
            if idle:
                del idle, old
                trim()  # their networks are hundreds of megabytes
            elif enough():
                return False
            else:
                sleep(LOOK_S)
        return True

    def stop(self) -> None:
        for generation in self._all:
            generation.stop()

    def _drop(self, old: Generation) -> None:
        old.stop()
        self._spent_s += old.arena.engine_cpu_s
        self._all = tuple(one for one in self._all if one is not old)

    @property
    def device_mb(self) -> float:
        """Memory of the GPU, of all generations."""
        return sum(one.device_mb for one in self._all)

    # -- what the desk tells (desk.Memory) ------------------------------------------------------

    @property
    def remark(self) -> str:
        """What is not as it was configured, "" while all is, or nothing is loaded yet."""
        return self._all[-1].choice.remark if self._all else ""

    @property
    def nbytes(self) -> int:
        return self._base.nbytes + sum(one.arena.nbytes for one in self._all)

    @property
    def engine_cpu_s(self) -> float:
        return self._spent_s + sum(one.arena.engine_cpu_s for one in self._all)

    def plan(self) -> list[PlanRow]:
        rows = self._base.plan()
        for one in self._all:
            rows += one.arena.plan()
        return sorted(rows, key=lambda row: (-row.megabytes, row.name))
