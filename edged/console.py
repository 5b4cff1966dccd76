"""The console: carries out `control`, on the loudspeaker and on the jobs that are heard there.

Server thread only. Neighbours: `admission` knows which jobs a request means; the player, which this module
knows as a `Loudspeaker`, does it. Built by the service.
"""

from __future__ import annotations

from typing import Protocol

from edged import protocol
from edged.admission import Admission, Peer
from edged.errors import BadValue
from edged.job import Job


class Remote(Protocol):
    """What can be done to a job that is heard; each tells whether there was something to do."""

    def pause(self, job: Job) -> bool: ...

    def resume(self, job: Job, how: protocol.How = "exact") -> bool: ...

    def skip(self, job: Job) -> bool: ...

    def hold(self, held: bool) -> None: ...


class Loudspeaker(Protocol):
    """What can be done to all that is heard."""

    volume: float
    muted: bool

    @property
    def remote(self) -> Remote: ...

    def set_volume(self, volume: float) -> None: ...

    def mute(self, muted: bool) -> None: ...


class Console:
    def __init__(self, admission: Admission, speaker: Loudspeaker) -> None:
        self._admission = admission
        self._speaker = speaker

    def control(self, request: protocol.Control, peer: Peer) -> protocol.ControlReply:
        """Raises `BadValue` and `UnknownJob`."""
        jobs: list[str] = []
        if request.do == "volume":
            if request.value is None:
                raise BadValue("volume needs a value", "a linear gain, 0.0 to 4.0")
            self._speaker.set_volume(request.value)
        elif request.do in ("mute", "unmute"):
            self._speaker.mute(request.do == "mute")
        else:
            jobs = self._jobs(request, peer)
        return protocol.ControlReply(
            id=request.id, jobs=jobs, volume=self._speaker.volume, muted=self._speaker.muted
        )

    def _jobs(self, request: protocol.Control, peer: Peer) -> list[str]:
        remote, do = self._speaker.remote, request.do
        meant = [job for job in self._admission.meant(request, peer) if job.kind == "speak" or do == "stop"]
        if do == "stop":
            return [job.id for job in meant if job.cancel()]
        if do == "skip":
            return [job.id for job in meant if remote.skip(job)]
        if do == "resume":
            hit = [job.id for job in meant if remote.resume(job, request.how)]
            if request.scope == "all":
                remote.hold(False)
            return hit
        if request.scope == "all":
            remote.hold(True)
        # From behind, so that none is heard for a moment when the one before it falls silent.
        return [job.id for job in reversed(meant) if remote.pause(job)][::-1]
