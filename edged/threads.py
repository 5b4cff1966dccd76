"""Threads: their names, as the kernel and its tools show them, their priority, and whether they get on.

Leaf module.
"""

from __future__ import annotations

import ctypes
import os
import resource
import threading
from contextlib import suppress
from time import monotonic

RT_PRIORITY, NICE = 10, -10  # of the thread that feeds the loudspeaker


def name_thread(name: str) -> None:
    """Names the calling thread for `top -H`, `perf` and `/proc`; at most 15 bytes are kept.

    Python before 3.14 gives its name to the interpreter only.
    """
    libc = ctypes.CDLL(None)
    if hasattr(libc, "pthread_setname_np"):
        libc.pthread_setname_np(ctypes.c_void_p(threading.get_ident()), name.encode()[:15])


def hurry() -> str:
    """Puts the calling thread before others, as far as the limits of the process allow (`LimitRTPRIO=`,
    `LimitNICE=` of systemd); returns what it got, "" for nothing. What it starts is not put before others.
    """
    most, _ = resource.getrlimit(resource.RLIMIT_RTPRIO)
    if most:
        priority = RT_PRIORITY if most == resource.RLIM_INFINITY else min(most, RT_PRIORITY)
        with suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(priority))
            return f"real time {priority}"
    ceiling, _ = resource.getrlimit(resource.RLIMIT_NICE)  # 20 less the lowest nice value; 0: none
    thread = threading.get_native_id()
    nice = NICE if ceiling == resource.RLIM_INFINITY else max(NICE, 20 - ceiling)
    if nice < os.getpriority(os.PRIO_PROCESS, thread):
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, thread, nice)
            return f"nice {nice}"
    return ""


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
