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
from edged.store_files import FOLDER_MODE, open_regular

LOCK = ".store.lock"
LOCK_S = 10.0  # how long one command waits for another to end
LOCK_POLL_S = 0.05


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[None]:
    """The store in that directory, which is made, for this process alone. Raises `StoreBusy` when another
    one keeps it."""
    with naming(directory):
        if not directory.is_dir():
            _make(directory)
        handle = open_regular(directory / LOCK, directory / LOCK, flags=os.O_RDWR | os.O_CREAT)
    try:
        until = monotonic() + LOCK_S
        while not _take(handle):
            if monotonic() > until:
                raise StoreBusy(f"another command is changing {directory}")
            sleep(LOCK_POLL_S)
        yield
    finally:
        os.close(handle)  # which also lets go of the lock


def _make(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if os.fstat(handle).st_uid == os.geteuid():
            os.fchmod(handle, FOLDER_MODE)  # not by its name, which another user may have given to a link
    finally:
        os.close(handle)


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
