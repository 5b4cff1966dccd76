"""Names for threads, as the kernel and its tools show them, and whether they get on. Leaf module."""

from __future__ import annotations

import ctypes
import threading
from time import monotonic


def name_thread(name: str) -> None:
    """Names the calling thread for `top -H`, `perf` and `/proc`; at most 15 bytes are kept.

    Python before 3.14 gives its name to the interpreter only.
    """
    libc = ctypes.CDLL(None)
    if hasattr(libc, "pthread_setname_np"):
        libc.pthread_setname_np(ctypes.c_void_p(threading.get_ident()), name.encode()[:15])


class Pulse:
    """Since when a thread has been in one round of its loop. Written by that thread, read by any."""

    def __init__(self) -> None:
        self._since = 0.0  # 0 while it waits for something to do

    def beat(self) -> None:
        """A new round begins."""
        self._since = monotonic()

    def rest(self) -> None:
        """The thread is about to wait."""
        self._since = 0.0

    def busy_s(self, now: float) -> float:
        """now: monotonic seconds. How long the round in progress has taken; 0 when there is none."""
        since = self._since
        return max(0.0, now - since) if since else 0.0
