"""How long jobs wait for a loudspeaker that is away, and when it is looked for.

Thread `edged-player`, while jobs wait only. Neighbours: `player` asks it, `device` does the looking.
"""

from __future__ import annotations

import os
from pathlib import Path

from edged.settings import Audio

FIRST_S, LONGEST_S = 0.25, 0.5  # between two looks: one takes 25 ms of a core, where ALSA is slow 0.2 s
PROGRESS_S = 0.5  # audio that must have been played, or the next loss is of the same outage
CARDS = Path("/dev/snd")


class Outage:
    """waits: jobs wait at all (`audio.on_loss`). active: some do."""

    def __init__(self, settings: Audio) -> None:
        self.waits = settings.on_loss == "wait"
        self.active = False
        self._wait_s = settings.wait_for_device_s
        self._until = 0.0
        self._played_s: float | None = None  # when it began
        self._next = 0.0
        self._pause_s = FIRST_S
        self._signs: tuple[object, ...] = ()

    def begin(self, now: float, played_s: float) -> None:
        """played_s: audio played since the start. A device that only seems to be back gains no time."""
        if self.active:
            return
        self.active = True
        if self._played_s is None or played_s - self._played_s > PROGRESS_S:
            self._until, self._played_s = now + self._wait_s, played_s
        self._next, self._pause_s, self._signs = now, FIRST_S, signs()

    def end(self) -> None:
        """The device is back, or nobody waits any more."""
        self.active = False

    def over(self, now: float) -> bool:
        """It took too long: who waits has to give up, and the next ones begin anew."""
        if now < self._until:
            return False
        self.active, self._played_s = False, None
        return True

    def due(self, now: float) -> bool:
        """Whether to look now: at growing intervals, and at once when a card or a sound server has come."""
        seen = signs()
        if seen != self._signs:
            self._signs, self._next, self._pause_s = seen, now, FIRST_S
        if now < self._next:
            return False
        self._next, self._pause_s = now + self._pause_s, min(2 * self._pause_s, LONGEST_S)
        return True


def signs() -> tuple[object, ...]:
    """What changes when a card is plugged in or a sound server starts; costs a few system calls."""
    return tuple(_stat(path) for path in (CARDS, *_sockets()))


def _sockets() -> list[Path]:
    runtime = Path(os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}")
    server = os.environ.get("PULSE_SERVER", "")
    named = [Path(server.removeprefix("unix:"))] if server.startswith(("unix:", "/")) else []
    return [*named, runtime / "pulse" / "native", runtime / "pipewire-0"]


def _stat(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns
