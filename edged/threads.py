"""Names for threads, as the kernel and its tools show them. Leaf module."""

from __future__ import annotations

import ctypes
import threading


def name_thread(name: str) -> None:
    """Names the calling thread for `top -H`, `perf` and `/proc`; at most 15 bytes are kept.

    Python before 3.14 gives its name to the interpreter only.
    """
    libc = ctypes.CDLL(None)
    if hasattr(libc, "pthread_setname_np"):
        libc.pthread_setname_np(ctypes.c_void_p(threading.get_ident()), name.encode()[:15])
