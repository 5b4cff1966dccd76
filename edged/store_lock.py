"""One command at a time changes a bundle store: its lock, and errors that name the place.

No thread of its own; used by the command line. The kernel lets go of the lock when its process ends, however
it does. Neighbour: `store`.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep

from edged.errors import BundleError, StoreBusy

FILE_MODE, FOLDER_MODE = 0o644, 0o755  # the service's user reads what root installed, whatever root's umask
LOCK = ".store.lock"
LOCK_S = 10.0  # how long one command waits for another to end
LOCK_POLL_S = 0.05


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[None]:
    """The store in that directory, which is made, for this process alone. Raises `StoreBusy` when another
    one keeps it."""
    with naming(directory):
        if not directory.is_dir():
            directory.mkdir(parents=True)
            directory.chmod(FOLDER_MODE)
        handle = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
    try:
        until = monotonic() + LOCK_S
        while not _take(handle):
            if monotonic() > until:
                raise StoreBusy(f"another command is changing {directory}")
            sleep(LOCK_POLL_S)
        yield
    finally:
        os.close(handle)  # which also lets go of the lock


def _take(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextlib.contextmanager
def naming(directory: Path) -> Iterator[None]:
    """What the file system refuses becomes an error that names the place."""
    try:
        yield
    except OSError as error:
        raise BundleError(
            f"{error.filename or directory}: {error.strerror}",
            "check the free space of the disk, and run the command as the owner of that directory (sudo)",
        ) from error
