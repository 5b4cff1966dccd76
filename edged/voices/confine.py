"""What the process of a trial may still do: little memory, no precedence, and nothing that only root may.

A bundle carries networks and, for ChatTTS, native code. An administrator who tries one with sudo should not
run it as root: before it is opened, the process becomes the user nobody, keeps of root's capabilities only
that to read files (a store below /var/lib/private is closed to others), leaves the network, and cannot send
signals to other processes. All that it begins ends with it.

It is no prison. Sockets that are files are within reach, such as those of D-Bus, for what they offer to the
user nobody; every file can be read; and the limit of memory is that of one process. Without root, or where
the system refuses a PID namespace, what leaves the process group can outlive the trial.
Neighbour: `trial_process` calls `confine` first of all, in its only thread.
"""

from __future__ import annotations

import ctypes
import os
import resource
import select
import signal
from contextlib import suppress
from math import ceil
from pathlib import Path

# Beside the plan: Python and the libraries, thread stacks, and what loading takes for a moment.
BESIDE_MB = 512
GPU_NODES = ("nvidia*", "nvmap", "nvhost-*", "nvgpu/*/*", "dri/renderD*")
NOBODY = 65534  # by this number on every Linux; no look-up in a user database that a box may not have
SIGNALLED = 128  # as in a shell: an exit code above it tells the signal that ended the trial
_PR_SET_PDEATHSIG, _PR_SET_KEEPCAPS, _PR_SET_NO_NEW_PRIVS = 1, 8, 38
_CLONE_NEWPID, _CLONE_NEWNET = 0x20000000, 0x40000000
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


def confine(memory_mb: int, parent: int, seconds: float, gpu: bool = False) -> None:
    """For the calling process, which has one thread. memory_mb: of the daemon's budget; parent: the process
    that it ends with; seconds: after which it ends anyway; gpu: it may open the device nodes of one.

    What this system refuses is left out, except that a process which gave up root never gets it back. As root
    it returns in a child of the calling process, which only waits for it and ends with its exit code."""
    libc = ctypes.CDLL(None, use_errno=True)
    _end_with(libc, parent)
    signal.alarm(ceil(seconds))
    with suppress(OSError):
        os.nice(10)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", "ascii")
    most = (memory_mb + BESIDE_MB) * 1_000_000
    if not gpu:  # the driver maps far more than it uses; what was used is compared with the budget at the end
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    if os.geteuid() == 0 and _may_read_everything():
        libc.unshare(_CLONE_NEWNET)  # refused in some containers, which have their own borders
        if libc.unshare(_CLONE_NEWPID) == 0:
            parent = _enter(libc)
        _leave_root(libc, device_groups() if gpu else [])
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    _end_with(libc, parent)  # a change of user cleared it


def _end_with(libc: ctypes.CDLL, parent: int) -> None:
    libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:  # it was gone already
        os._exit(1)


def _enter(libc: ctypes.CDLL) -> int:
    """Returns in a process of the new PID namespace, with the number of its parent there.

    The parent is the first process of the namespace: when it ends, the kernel kills all others in it. It ends
    when the trial does, or with the process that waits outside; neither can be reached from inside.
    """
    watched, held = os.pipe()  # `held` stays open as long as the process outside is there
    first = os.fork()
    if first:
        os.close(watched)
        os._exit(_code(os.waitpid(first, 0)[1]))
    os.close(held)
    libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if select.select([watched], [], [], 0)[0]:  # its end: gone before the line above
        os._exit(1)
    os.close(watched)
    inside = os.getpid()
    trial = os.fork()
    if not trial:
        return inside
    while True:
        ended, status = os.wait()  # also for processes whose parent has ended
        if ended == trial:
            os._exit(_code(status))


def _code(status: int) -> int:
    """Of a wait status; a signal becomes `SIGNALLED` and its number: the first process of a namespace cannot
    end by a signal that it sends itself."""
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else SIGNALLED - code


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
