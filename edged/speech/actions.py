"""What the speech queue tells its owner to do. Data only; neighbours: `queue` and its owner."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, Literal, TypeAlias, TypeVar

K = TypeVar("K", bound=Hashable)
How = Literal["resume", "restart", "exact"]
Reason = Literal["interrupted", "replaced", "busy", "expired"]


@dataclass(frozen=True, slots=True)
class Begin(Generic[K]):
    """Write its audio, behind what is being heard."""

    key: K


@dataclass(frozen=True, slots=True)
class Resume(Generic[K]):
    """Go on with a paused job: at the sentence that was cut, from its start, or at the very sample."""

    key: K
    how: How


@dataclass(frozen=True, slots=True)
class Pause(Generic[K]):
    """Fade it out; how it is going to go on. Asked for by people, or for another job."""

    key: K
    how: How = "resume"
    asked: bool = False


@dataclass(frozen=True, slots=True)
class Drop(Generic[K]):
    """Fade it out if it is heard, and end it. The queue has forgotten it."""

    key: K
    reason: Reason


Action: TypeAlias = Begin[K] | Resume[K] | Pause[K] | Drop[K]
Actions: TypeAlias = tuple[Action[K], ...]
