"""What people want of jobs that are there. Pure. Neighbours: `admission` makes orders, the player obeys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from edged.errors import BadValue

Asked = Literal["pause", "resume", "skip", "volume", "mute", "unmute", "speed"]
Do = Asked | Literal["stop"]


@dataclass(frozen=True, slots=True)
class Order:
    """everything: not of some jobs but of the loudspeaker and whatever is, and will be, played there. value:
    the volume or the speed. stop: they are about to be cancelled."""

    do: Do
    everything: bool = False
    value: float = 1.0


class Request(Protocol):
    """What a `control` request says; None is nothing."""

    @property
    def do(self) -> Asked: ...

    @property
    def scope(self) -> str: ...

    @property
    def volume(self) -> float | None: ...

    @property
    def speed(self) -> float | None: ...


def order_of(request: Request) -> Order:
    """Raises `BadValue` where the value that it needs is missing, or another one is there."""
    values = {"volume": request.volume, "speed": request.speed}
    for name, value in values.items():
        if (value is not None) != (request.do == name):
            has = f"needs {name}" if value is None else f"takes no {name}"
            raise BadValue(f"control with do={request.do} {has}")
    value = values.get(request.do)
    return Order(request.do, request.scope == "all", 1.0 if value is None else value)
