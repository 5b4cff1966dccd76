"""Other programs' sound is made softer while edged speaks, where the sound server offers it.

Thread `edged-duck`, of its own because a sound server that hangs must not hold up speech: the player only
says what it wants. Neighbours: `player`; PulseAudio, or PipeWire's server for its clients, by `pulsectl`.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any

import msgspec

from edged.log import event as log_event
from edged.paths import state_directory
from edged.threads import name_thread

log = logging.getLogger("edged.audio")

STEPS, STEP_S = 8, 0.02  # of a change, which is heard as a fade
LOOK_S = 0.2  # how often, while edged speaks, streams that began since are looked for
HOLD_S = 0.4  # after the last word, so that two jobs in a row do not pump
RETRY_S = 2.0  # when the server does not answer
SAME = 0.005  # volumes that differ by less are the same one
FILE = "edged-ducked.json"


class Lowered(msgspec.Struct, frozen=True):
    """A stream that was made softer, to be found again. Volumes are the server's own, a factor by channel.

    index: its number within the server; name: of the program and of what it plays. restore: under which name
    the server remembers its volume, "" where it does not. fading: between `before` and `now`.
    """

    index: int
    name: str
    before: tuple[float, ...]
    now: tuple[float, ...]
    restore: str = ""
    fading: bool = False

    def is_at(self, volumes: Sequence[float]) -> bool:
        """Whether a volume is one that this part has set, and not one that people have turned to."""
        if not self.fading:
            return _same(volumes, self.now)
        pairs = zip(volumes, self.now, self.before, strict=False)
        return len(volumes) == len(self.now) and all(a - SAME <= v <= b + SAME for v, a, b in pairs)


class Ducker:
    """Does nothing, and costs nothing, with `duck_db` 0."""

    def __init__(self, duck_db: float, folder: Path | None) -> None:
        """duck_db: by how much, negative. folder: keeps what was lowered, so that a daemon that was killed
        makes it loud again when it comes back."""
        # The server's volumes are cubes: 60 dB are a factor of ten.
        self._factor = float(10.0 ** (duck_db / 60.0))
        self._file = None if folder is None else folder / FILE
        self._lowered: list[Lowered] = []
        self._wanted = self._stopping = False
        self._changed = threading.Event()
        self._told = ""
        self._thread = threading.Thread(target=self._run, name="edged-duck", daemon=True)
        self._on = duck_db < 0.0

    def start(self) -> None:
        self._lowered = _read(self._file)
        if self._on or self._lowered:
            self._thread.start()

    def want(self, on: bool) -> None:
        """Any thread, at any time: edged speaks, or does not."""
        if on != self._wanted and self._on:
            self._wanted = on
            self._changed.set()

    def close(self, within_s: float) -> None:
        """Makes all loud again, if the server answers in time."""
        self._wanted, self._stopping = False, True
        self._changed.set()
        if self._thread.is_alive():
            self._thread.join(within_s)

    # -- the thread -----------------------------------------------------------------------------

    def _run(self) -> None:
        name_thread("edged-duck")
        while not self._stopping or self._lowered:
            if not (self._wanted or self._lowered):
                self._changed.wait()
                self._changed.clear()
                continue
            try:
                self._serve()
                self._told = ""
            except Exception as exc:  # whatever a sound server does, speech goes on
                self._tell(f"{type(exc).__name__}: {exc}")
                if self._stopping:
                    return
                self._changed.wait(RETRY_S)
                self._changed.clear()

    def _serve(self) -> None:
        import pulsectl

        with pulsectl.Pulse("edged ducking", connect=False) as pulse:
            pulse.connect(autospawn=False)  # its `timeout` is how long it always takes
            self._remember(list(_matching(pulse, self._lowered)) if self._wanted else self._lowered)
            while self._wanted or self._lowered:
                if self._wanted:
                    self._lower(pulse)
                    self._changed.wait(LOOK_S)
                elif self._stopping or not self._changed.wait(HOLD_S):
                    self._restore(pulse)
                self._changed.clear()

    def _lower(self, pulse: Any) -> None:
        known = {one.index for one in self._lowered if not one.fading}
        halfway = {one.index: one for one in self._lowered if one.fading}
        fresh = [one for one in _others(pulse) if one.index not in known and any(one.volume.values)]
        if not fresh:
            return
        new = [halfway.get(one.index) or self._to_lower(one) for one in fresh]
        old = [one for one in self._lowered if not one.fading]
        self._remember([*old, *new])  # before the first of them is changed
        ramp(pulse, [(one, one.before, one.now) for one in new])
        self._remember([*old, *(msgspec.structs.replace(one, fading=False) for one in new)])

    def _to_lower(self, stream: Any) -> Lowered:
        volumes = tuple(stream.volume.values)
        return Lowered(
            stream.index,
            _name(stream),
            volumes,
            tuple(v * self._factor for v in volumes),
            stream.proplist.get("module-stream-restore.id", ""),
            fading=True,
        )

    def _restore(self, pulse: Any) -> None:
        """But for those that people have turned since."""
        ours = [msgspec.structs.replace(one, fading=True) for one in _matching(pulse, self._lowered)]
        alive = {one.index for one in ours}
        gone = [one for one in self._lowered if one.index not in alive]
        self._remember([*ours, *gone])
        ramp(pulse, [(one, one.now, one.before) for one in ours])
        _correct(pulse, gone)
        self._remember([])

    def _remember(self, lowered: list[Lowered]) -> None:
        self._lowered = lowered
        if self._file is None:
            return
        with suppress(OSError):
            if not lowered:
                self._file.unlink(missing_ok=True)
                return
            draft = self._file.with_suffix(".new")
            draft.write_bytes(msgspec.json.encode(lowered))
            draft.replace(self._file)

    def _tell(self, why: str) -> None:
        """Once, until it has worked again."""
        if why != self._told:
            self._told = why
            text = f"other programs are not made softer: {why}"
            log_event(log, logging.WARNING, text, code="no_ducking")


def keeping_place() -> Path | None:
    """Where what was lowered is remembered: with the service's state, else with the session, or nowhere."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    return state_directory() or (Path(runtime) if runtime else None)


def _others(pulse: Any) -> list[Any]:
    """Streams of other processes, which this one may change."""
    own = str(os.getpid())
    return [one for one in pulse.sink_input_list() if one.proplist.get("application.process.id") != own]


def _name(stream: Any) -> str:
    return f"{stream.proplist.get('application.name', '')}/{stream.name}"


def _same(one: Sequence[float], other: Sequence[float]) -> bool:
    return len(one) == len(other) and all(abs(a - b) < SAME for a, b in zip(one, other, strict=True))


def _matching(pulse: Any, lowered: Sequence[Lowered]) -> Iterator[Lowered]:
    """Those that still play, at a volume of ours; after a restart of the server its numbers mean others."""
    there = {one.index: one for one in _others(pulse)}
    for one in lowered:
        found = there.get(one.index)
        if found is not None and _name(found) == one.name and one.is_at(tuple(found.volume.values)):
            yield one


def _correct(pulse: Any, gone: Sequence[Lowered]) -> None:
    """What the server remembers of streams that ended while they were soft, or the program's next one would
    begin softly."""
    import pulsectl

    names = {one.restore: one for one in gone if one.restore}
    if not names:
        return
    with suppress(pulsectl.PulseError):  # it remembers none
        for entry in pulse.stream_restore_list():
            one = names.get(entry.name)
            if one is not None and one.is_at(tuple(entry.volume.values)):
                entry.volume = pulsectl.PulseVolumeInfo(list(one.before))
                pulse.stream_restore_write(entry, mode="replace")


def ramp(pulse: Any, changes: Sequence[tuple[Lowered, tuple[float, ...], tuple[float, ...]]]) -> None:
    """All of them together; one that has ended, or that people turn meanwhile, is let be."""
    import pulsectl

    begin = monotonic()
    left = list(changes)
    for step in range(1, STEPS + 1):
        there = {one.index: tuple(one.volume.values) for one in pulse.sink_input_list()} if left else {}
        left = [change for change in left if change[0].is_at(there.get(change[0].index, ()))]
        for one, before, after in left:
            part = step / STEPS
            volumes = [a + (b - a) * part for a, b in zip(before, after, strict=True)]
            with suppress(pulsectl.PulseOperationFailed, pulsectl.PulseIndexError):
                pulse.sink_input_volume_set(one.index, pulsectl.PulseVolumeInfo(volumes))
        if left:
            threading.Event().wait(max(0.0, begin + step * STEP_S - monotonic()))


def _read(file: Path | None) -> list[Lowered]:
    """What a daemon that was killed had lowered."""
    if file is None:
        return []
    try:
        return msgspec.json.decode(file.read_bytes(), type=list[Lowered])
    except (OSError, msgspec.DecodeError):
        return []
