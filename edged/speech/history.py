"""What was heard lately, for people who missed it. Texts only where the configuration allows it.

Not thread-safe. Neighbours: `admission`, its one owner, on the server thread; `settings`.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from time import time

from edged.job import Job, Priority
from edged.settings import Speech


@dataclass(frozen=True, slots=True)
class Heard:
    """One job that was heard, wholly or in part.

    job: the daemon's number. client: the application's name; client_id: its own id of the request.
    ended_at: seconds since the epoch. ended: done, cancelled or failed; reason: why it was cancelled, or the
    code of its error.
    heard_s: seconds of it that were heard.
    """

    job: str
    client: str
    client_id: str
    priority: Priority
    voice: str
    ended_at: float
    ended: str
    heard_s: float
    reason: str = ""
    text: str = field(default="", repr=False)


def heard(job: Job, client: str) -> Heard:
    """What is kept of a job that ended now. client: the application's name."""
    line = job.timeline
    ended = job.state.value
    return Heard(
        job=job.id,
        client=client,
        client_id=job.client_id,
        priority=job.priority,
        voice=job.voice,
        ended_at=time(),
        ended=ended,
        heard_s=line.audio_s if ended == "done" else line.heard_s,
        reason=job.error.code if job.error is not None else job.reason,
        text=job.text,
    )


class History:
    """The last jobs that were heard, as many as `history` of the settings says."""

    def __init__(self, settings: Speech) -> None:
        self._heard: deque[Heard] = deque()
        self.use(settings)

    def use(self, settings: Speech) -> None:
        """Other settings count at once: what they do not allow is forgotten."""
        self._texts = settings.history_texts
        self._heard = deque(map(self._allowed, self._heard), maxlen=settings.history)

    def record(self, heard: Heard) -> None:
        """A job ended. One of which nothing was heard is not kept."""
        if heard.heard_s > 0:
            self._heard.append(self._allowed(heard))

    def entries(self) -> tuple[Heard, ...]:
        """The last one first."""
        return tuple(reversed(self._heard))

    def find(self, job: str) -> Heard | None:
        """By the daemon's number; None when it is not, or no longer, known."""
        return next((heard for heard in self._heard if heard.job == job), None)

    def _allowed(self, heard: Heard) -> Heard:
        return heard if self._texts else replace(heard, text="")
