"""The information desk: answers `status`, `voices` and `stats` from what the other parts show.

Server thread only; it reads plain attributes of the others and changes nothing.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from time import monotonic, process_time
from typing import Protocol

import psutil

from edged import __version__, protocol
from edged.admission import Admission
from edged.engine.plan import PlanRow, joined
from edged.errors import EdgedError
from edged.job import JobState
from edged.meter import Meter


class Speaker(Protocol):
    """What the desk tells about the loudspeaker."""

    @property
    def device(self) -> str: ...

    @property
    def error(self) -> EdgedError | None: ...

    @property
    def underruns(self) -> int: ...

    @property
    def volume(self) -> float: ...

    @property
    def muted(self) -> bool: ...

    @property
    def held(self) -> bool: ...


class Memory(Protocol):
    """What the desk tells about what is loaded, and the preallocated buffers."""

    @property
    def remark(self) -> str: ...

    @property
    def nbytes(self) -> int: ...

    @property
    def engine_cpu_s(self) -> float: ...

    def plan(self) -> list[PlanRow]: ...


class Budget(Protocol):
    """What the desk tells about the memory of the process."""

    budget_mb: float
    used_mb: float

    @property
    def state(self) -> str: ...


class Addresses(Protocol):
    """Where the daemon listens."""

    endpoint: str
    events: str
    tcp: str
    tcp_events: str


class Desk:
    """Built by the service from the parts it tells about."""

    def __init__(
        self,
        admission: Admission,
        speaker: Speaker,
        memory: Memory,
        addresses: Addresses,
        meter: Meter,
        budget: Budget,
    ) -> None:
        self._admission = admission
        self._speaker = speaker
        self._memory = memory
        self._addresses = addresses
        self._meter = meter
        self._budget = budget

    def status(self, id: str, memory: bool = False) -> protocol.StatusReply:
        now = monotonic()
        error = self._speaker.error
        return protocol.StatusReply(
            id=id,
            state=self._admission.state,
            version=__version__,
            pid=os.getpid(),
            uptime_s=round(now - self._admission.stats.started, 3),
            rss_mb=round(rss_mb(), 1),
            jobs=[
                protocol.JobInfo(
                    job=t.job.id,
                    client=t.app,
                    kind=t.job.kind,
                    state=t.job.state.value,
                    voice=t.job.voice,
                    priority=t.job.priority.name.lower(),
                    age_s=round(now - t.job.timeline.received, 3),
                    phase=t.job.phase,
                )
                for t in self._admission.tickets.values()
            ],
            audio_device=self._speaker.device,
            audio_error="" if error is None else str(error),
            endpoint=self._addresses.endpoint,
            events=self._addresses.events,
            tcp=self._addresses.tcp,
            tcp_events=self._addresses.tcp_events,
            buffers_mb=round(self._memory.nbytes / 1e6, 1),
            memory=self._plan() if memory else [],
            budget_mb=self._budget.budget_mb,
            used_mb=round(self._budget.used_mb, 1),
            memory_state=self._budget.state,
            remark=self._memory.remark,
            volume=self._speaker.volume,
            muted=self._speaker.muted,
            held=self._speaker.held,
        )

    def controlled(self, id: str, jobs: list[str]) -> protocol.ControlReply:
        """jobs: those that something was changed for."""
        speaker = self._speaker
        return protocol.ControlReply(
            id=id, jobs=jobs, volume=speaker.volume, muted=speaker.muted, held=speaker.held
        )

    def history(self, id: str, last: int) -> protocol.HistoryReply:
        return protocol.HistoryReply(
            id=id,
            jobs=[
                protocol.HeardInfo(
                    job=one.job,
                    client=one.client,
                    client_id=one.client_id,
                    priority=one.priority.name.lower(),
                    voice=one.voice,
                    ended_at=round(one.ended_at, 3),
                    ended=one.ended,
                    heard_s=round(one.heard_s, 3),
                    reason=one.reason,
                    text=one.text,
                )
                for one in self._admission.history.entries()[:last]
            ],
        )

    def _plan(self) -> list[protocol.MemoryInfo]:
        return [
            protocol.MemoryInfo(
                name=row.name,
                shape=list(row.shape),
                dtype=row.dtype,
                mb=round(row.megabytes, 4),
                kind=row.kind,
                rows=row.rows,
            )
            for row in joined(self._memory.plan())
        ]

    def voices(self, id: str) -> protocol.VoicesReply:
        default = self._admission.default_voice
        return protocol.VoicesReply(
            id=id,
            voices=[
                protocol.VoiceInfo(
                    name=c.name,
                    family=c.family,
                    languages=list(c.languages),
                    sample_rate=c.sample_rate,
                    description=c.description,
                    licence=c.licence,
                    bundle=c.bundle,
                    default=c.name == default,
                    controls=list(c.controls),
                    markups=list(c.markups),
                )
                for c in self._admission.voices.values()
            ],
        )

    def stats(self, id: str) -> protocol.StatsReply:
        stats, meter = self._admission.stats, self._meter
        now = monotonic()
        steps_per_s, rows_per_step = meter.recent(now)
        states = [t.job.state for t in self._admission.tickets.values()]
        return protocol.StatsReply(
            id=id,
            uptime_s=round(now - stats.started, 3),
            accepted=stats.accepted,
            done=stats.done,
            cancelled=stats.cancelled,
            failed=dict(stats.failed),
            rejected=dict(stats.rejected),
            lost_replies=stats.lost_replies,
            queued=states.count(JobState.QUEUED),
            running=states.count(JobState.RUNNING),
            audio_s=round(stats.audio_s, 3),
            synthesis_s=round(stats.synthesis_s, 4),
            underruns=self._speaker.underruns,
            rss_mb=round(rss_mb(), 1),
            first_audio_ms=stats.first_audio_ms.percentiles(),
            rtf=stats.rtf.percentiles(),
            text_ms=stats.text_ms.percentiles(),
            to_engine_ms=stats.to_engine_ms.percentiles(),
            from_engine_ms=stats.from_engine_ms.percentiles(),
            overhead_ms=stats.overhead_ms.percentiles(),
            stream_underruns=meter.stream_underruns,
            steps=meter.steps,
            row_steps=meter.row_steps,
            steps_per_s=round(steps_per_s, 2),
            rows_per_step=round(rows_per_step, 3),
            step_ms=meter.step_ms.percentiles(),
            slot_wait_ms=meter.slot_wait_ms.percentiles(),
            cpu_s=round(process_time(), 6),
            engine_cpu_s=round(self._memory.engine_cpu_s, 6),
        )


def rss_mb() -> float:
    """Resident memory of this process in MB."""
    return float(psutil.Process().memory_info().rss) / 1e6


def since_process_start() -> float:
    """Seconds since the kernel started this process, to a clock tick of 10 ms.

    Not by psutil's `create_time`: that adds the time of boot, which the kernel tells in whole seconds.
    """
    started = int(Path("/proc/self/stat").read_text("utf-8").rpartition(")")[2].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - started / os.sysconf("SC_CLK_TCK")
