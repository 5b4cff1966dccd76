"""What the process of a trial may still do: little memory, no precedence, and nothing that only root may.

A bundle carries networks and, for ChatTTS, native code. An administrator who tries one with sudo should not
run it as root: before it is opened, the process becomes the user nobody, keeps of root's capabilities only
that to read files (a store below /var/lib/private is closed to others), and leaves the network. Neighbour:
`trial` calls `confine` first of all; the threads of the networks are made after it and inherit everything.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
from contextlib import suppress
from pathlib import Path

# Beside the plan: Python and the libraries, thread stacks, and what loading takes for a moment.
BESIDE_MB = 512
GPU_NODES = ("nvidia*", "nvmap", "nvhost-*", "nvgpu/*/*", "dri/renderD*")
NOBODY = 65534  # by this number on every Linux; no look-up in a user database that a box may not have
_PR_SET_PDEATHSIG, _PR_SET_KEEPCAPS, _PR_SET_NO_NEW_PRIVS = 1, 8, 38
_CLONE_NEWNET = 0x40000000
_CAP_DAC_READ_SEARCH = 1 << 2
_CAPABILITY_VERSION_3 = 0x20080522


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Capabilities(ctypes.Structure):
    """Of capset(2): the lower 32 capabilities, then the upper ones."""

    _fields_ = (
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    )


def confine(memory_mb: int, gpu: bool = False) -> None:
    """For the calling process, which has made no threads of its own yet. memory_mb: of the daemon's budget.
    gpu: it may open the device nodes of one. What this system refuses is left out, except that a process
    which gave up root never gets it back."""
    with suppress(OSError):
        os.nice(10)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", "ascii")
    most = (memory_mb + BESIDE_MB) * 1_000_000
    if not gpu:  # the driver maps far more than it uses; what was used is compared with the budget at the end
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    libc = ctypes.CDLL(None, use_errno=True)
    if os.geteuid() == 0 and _may_read_everything():
        _leave_root(libc, device_groups() if gpu else [])
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    libc.prctl(
        _PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0
    )  # a change of user clears it, so it comes last


def _may_read_everything() -> bool:
    """Some containers' root lacks the capability: without it, nobody could not open the bundle."""
    with suppress(OSError, ValueError):
        for line in Path("/proc/self/status").read_text("ascii").splitlines():
            if line.startswith("CapPrm:"):
                return bool(int(line.split()[1], 16) & _CAP_DAC_READ_SEARCH)
    return False


def device_groups(folder: Path = Path("/dev")) -> list[int]:
    """The groups that a GPU's device nodes belong to, as video and render on a Jetson."""
    found = set()
    for pattern in GPU_NODES:
        for node in folder.glob(pattern):
            with suppress(OSError):
                found.add(node.stat().st_gid)
    return sorted(found - {0})


def _leave_root(libc: ctypes.CDLL, groups: list[int]) -> None:
    libc.unshare(_CLONE_NEWNET)  # refused in some containers, which have their own borders
    libc.prctl(_PR_SET_KEEPCAPS, 1, 0, 0, 0)
    try:
        os.setgroups(groups)
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    except OSError:  # no user 65534 in this namespace
        return
    header = _Header(_CAPABILITY_VERSION_3, 0)
    kept = (_Capabilities * 2)(_Capabilities(_CAP_DAC_READ_SEARCH, _CAP_DAC_READ_SEARCH, 0))
    if libc.capset(ctypes.byref(header), kept):
        raise OSError(ctypes.get_errno(), "capset")
