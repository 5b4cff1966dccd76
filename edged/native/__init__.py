"""The decoder in C: its source, and which builds of it there are.

`decoder.c` is one call for what a decoder step of ChatTTS does, made for small integers as weights; the
headers beside it are its parts. The compiler of bundles builds it once for each `Level` of the machine's
architecture, and the bundle carries the results; the daemon takes the first that its processor can run. No
thread of its own. Neighbours: `edged/compiler/native.py` builds, `edged/engine/decoder.py` loads and calls.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).parent / "decoder.c"
VERSION = 1  # of the structures that both sides share; decoder.c has the same number


@dataclass(frozen=True, slots=True)
class Level:
    """One build. needs: as /proc/cpuinfo names them; flags: of the C compiler."""

    name: str
    machine: str
    needs: frozenset[str]
    flags: tuple[str, ...]


_AVX512 = ("f", "bw", "dq", "vl")
LEVELS = (
    Level(
        "x86_64-avx512",
        "x86_64",
        frozenset(("avx2", "fma", "avx512_vnni", *(f"avx512{part}" for part in _AVX512))),
        ("-mavx2", "-mfma", "-mavx512vnni", *(f"-mavx512{part}" for part in _AVX512)),
    ),
    Level("x86_64-avx2", "x86_64", frozenset(("avx2", "fma")), ("-mavx2", "-mfma")),
    Level("aarch64-dotprod", "aarch64", frozenset(("asimddp",)), ("-march=armv8.2-a+dotprod",)),
)
_FLAGS = re.compile(r"^(?:flags|Features)\s*:(.*)$", re.MULTILINE)


def levels(machine: str = "") -> tuple[Level, ...]:
    """The builds for an architecture (default: this machine's), the fastest first."""
    return tuple(level for level in LEVELS if level.machine == (machine or platform.machine()))


def runnable(level: Level, cpuinfo: str) -> bool:
    """Whether a processor, by the text of its /proc/cpuinfo, can run a build."""
    found = _FLAGS.search(cpuinfo)
    return found is not None and level.needs <= set(found[1].split())


def best(names: Collection[str]) -> str:
    """The fastest of these builds that this machine can run, "" when there is none."""
    try:
        cpuinfo = Path("/proc/cpuinfo").read_text("utf-8")
    except OSError:
        return ""
    return next((level.name for level in levels() if level.name in names and runnable(level, cpuinfo)), "")
