"""The file that libsndfile writes compressed audio into, in memory. Used by `encode`, one thread each."""

from __future__ import annotations

from typing import Any


class Tap:
    """A file object that can be emptied while it is written: what was taken cannot be changed any more.

    libsndfile goes back at the end to fill in the sizes; when that place was taken already, the bytes
    are dropped, which leaves the header of a stream.
    """

    def __init__(self) -> None:
        self.data = bytearray()
        self._base = 0  # file position of data[0]
        self._at = 0

    def write(self, data: Any) -> int:
        new = bytes(data)
        lost = max(0, self._base - self._at)
        start = max(0, self._at - self._base)
        self.data[start : start + len(new[lost:])] = new[lost:]
        self._at += len(new)
        return len(new)

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = offset + (0, self._at, self._base + len(self.data))[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, size: int = -1) -> bytes:
        return b""

    def flush(self) -> None:
        """Nothing is held back."""

    def take(self) -> bytearray:
        taken, self.data = self.data, bytearray()
        self._base += len(taken)
        return taken
