"""Builds `alloc_probe.c` and reads its counts: which thread asked for large memory, how often.

Used by the tests and the benchmark, never by the daemon. A 64-bit Linux with glibc and gcc is needed.

    library = alloc_probe.build(folder)
    subprocess.run(command, env=os.environ | alloc_probe.environment(library, counts_file))
    alloc_probe.read(counts_file)["edged-engine"]
"""

from __future__ import annotations

import shutil
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

_SOURCE = Path(__file__).with_name("alloc_probe.c")
_ROW = struct.Struct("<II16s4Q")


class ProbeUnavailable(RuntimeError):
    """There is no compiler here, or it cannot build the library; the message says which."""


@dataclass(frozen=True)
class Counts:
    """Large requests of the threads of one name: `heap` by malloc and its kin, `maps` by mmap."""

    heap: int = 0
    heap_bytes: int = 0
    maps: int = 0
    map_bytes: int = 0

    def __sub__(self, other: Counts) -> Counts:
        return Counts(
            self.heap - other.heap,
            self.heap_bytes - other.heap_bytes,
            self.maps - other.maps,
            self.map_bytes - other.map_bytes,
        )

    def __add__(self, other: Counts) -> Counts:
        return self - (Counts() - other)


def build(folder: Path) -> Path:
    """Compiles the library into `folder` and returns its path."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        raise ProbeUnavailable("no C compiler")
    library = folder / "alloc_probe.so"
    command = [compiler, "-O2", "-shared", "-fPIC", "-o", str(library), str(_SOURCE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ProbeUnavailable(f"the C compiler failed: {done.stderr.strip()[:200]}")
    return library


def environment(library: Path, counts: Path, at_least: int = 65_536) -> dict[str, str]:
    """What to add to the environment of the program to be watched. `at_least` in bytes."""
    return {
        "LD_PRELOAD": str(library),
        "EDGED_PROBE_FILE": str(counts),
        "EDGED_PROBE_BYTES": str(at_least),
    }


def read(counts: Path, pid: int | None = None) -> dict[str, Counts]:
    """Counts by thread name, of one process or of all that used the file."""
    result: dict[str, Counts] = {}
    for owner, ready, name, *numbers in _ROW.iter_unpack(counts.read_bytes()):
        if owner and ready and pid in (None, owner):
            key = name.rstrip(b"\0").decode(errors="replace")
            result[key] = result.get(key, Counts()) + Counts(*numbers)
    return result
