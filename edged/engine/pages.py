"""Puts the memory of the loaded networks onto huge pages, once.

Thread `edged-pages`, from READY until it is done. It takes some tenths of a second, in which the daemon
serves already, with the pages it has. A decoder step reads every weight once, in order; with pages of
4 KiB the processor waits for an address translation every 64 cache lines and its prefetchers stop at each
border. Measured on a virtual machine: 12 against 15 GB/s of one core, and a step of 8.7 ms instead of 10.1.
The library that holds the weights allocates them itself, so its memory is found in the process's own map.
Linux only asks for it: where the kernel cannot or may not, nothing changes. Neighbour: the service starts it.
"""

from __future__ import annotations

import ctypes
import logging
import re
import threading
from collections.abc import Iterator
from pathlib import Path

from edged.threads import name_thread

log = logging.getLogger("edged.engine")
HUGE = 2 << 20  # bytes of a huge page on x86-64 and, with base pages of 4 KiB, on arm64
_FILLED = 0.9  # resident part of a mapping: what was never touched must not become memory
_MADV_HUGEPAGE, _MADV_COLLAPSE = 14, 25  # the second, of Linux 6.1, does it at once
_SMAPS = Path("/proc/self/smaps")
_MAPPING = re.compile(r"([0-9a-f]+)-([0-9a-f]+) rw-p [0-9a-f]+ [0-9a-f:]+ 0 +(\[heap\])?$")


def start() -> threading.Thread:
    """Collapses on a thread of its own."""

    def main() -> None:
        name_thread("edged-pages")
        collapse()

    thread = threading.Thread(target=main, name="edged-pages", daemon=True)
    thread.start()
    return thread


def collapse() -> int:
    """Asks for huge pages under every large anonymous mapping; the bytes that were granted or promised."""
    try:
        regions = list(_regions(_SMAPS.read_text("utf-8")))
        advise = ctypes.CDLL(None, use_errno=True).madvise
    except (OSError, AttributeError):  # a hardened unit hides /proc; another libc
        return 0
    advise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    granted = 0
    for start, size in regions:
        if any(advise(start, size, how) == 0 for how in (_MADV_COLLAPSE, _MADV_HUGEPAGE)):
            granted += size
    log.debug("huge pages for %.1f MB", granted / 1e6)
    return granted


def _regions(smaps: str) -> Iterator[tuple[int, int]]:
    """(address, bytes) of the whole huge pages in private anonymous mappings that are in use."""
    start = end = 0
    for line in smaps.splitlines():
        found = _MAPPING.match(line)
        if found is not None:
            start, end = int(found[1], 16), int(found[2], 16)
        elif line.startswith("Rss:"):
            resident = int(line.split()[1]) << 10
            first, behind = -(-start // HUGE) * HUGE, end // HUGE * HUGE
            if behind > first and resident >= _FILLED * (end - start):
                yield first, behind - first
            start = end = 0  # lines of a mapping that did not match come next
