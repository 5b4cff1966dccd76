"""Deaths of the process while it loaded its voices, remembered for the next start.

A bundle that cannot be used is an error, which the same process answers with the version before. One that
takes the process down, or hangs until systemd ends it, leaves only a file in the state directory: it is
written before the loading and removed after it. Main thread, at start. Neighbour: `takeover` asks.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

FILE = "loading.json"


class _Attempt(msgspec.Struct, frozen=True):
    """what: that was being loaded. deaths: in a row, before this one."""

    what: str
    deaths: int


class Attempts:
    """directory: where the file is; None: nothing is remembered, as nobody starts the process again."""

    def __init__(self, directory: Path | None) -> None:
        self._path = None if directory is None else directory / FILE

    @contextmanager
    def loading(self, what: str) -> Iterator[int]:
        """How many times in a row the process has died while it loaded the same. A file system that does not
        let us remember keeps nobody from loading."""
        deaths = self._begin(what)
        try:
            yield deaths
        finally:
            if self._path is not None:
                with suppress(OSError):
                    self._path.unlink()

    def _begin(self, what: str) -> int:
        if self._path is None:
            return 0
        deaths = 0
        with suppress(OSError, msgspec.DecodeError):  # a ValidationError is one
            before = msgspec.json.decode(self._path.read_bytes(), type=_Attempt)
            deaths = before.deaths + 1 if before.what == what else 0
        with suppress(OSError):
            beside = self._path.with_name(f".{FILE}.{os.getpid()}")
            beside.write_bytes(msgspec.json.encode(_Attempt(what, deaths)))
            beside.replace(self._path)
        return deaths
