"""Reads and makes the files of bundles where somebody else may put links in their place meanwhile.

No thread of its own; used by the command line. An administrator's command works in a store that belongs to
the service's user, and takes bundles from folders of other users: what it opens must be the file that it
meant, not one that a link leads to. Neighbours: `store`, `store_install` and `bundle_write`.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import shutil
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NoReturn

from edged.errors import BundleError
from edged.log import event as log_event

log = logging.getLogger("edged.store")
FILE_MODE, FOLDER_MODE = 0o644, 0o755  # the service's user reads what root installed, whatever root's umask
DEEPEST = 8  # names in the path of a file in a bundle, which has two or three
MOST = 1000  # files and folders of a bundle, which has dozens
_CHUNK_BYTES = 1 << 20
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def open_regular(name: Path | str, shown: Path, folder: int | None = None, flags: int = os.O_RDONLY) -> int:
    """A regular file's descriptor; `name` is relative to `folder`. Raises `BundleError` for anything else,
    links included, and `OSError`. shown: how an error names it."""
    try:  # O_NONBLOCK: a pipe would wait for a writer
        found = os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, FILE_MODE, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):  # a link, a socket, a folder
            raise _irregular(shown) from None
        raise
    if stat.S_ISREG(os.fstat(found).st_mode):
        return found
    os.close(found)
    raise _irregular(shown)


def _irregular(path: Path) -> BundleError:
    return BundleError(f"{path}: not a regular file", "a bundle has only plain files and folders: remove it")


def tree(top: Path) -> Iterator[tuple[tuple[str, ...], IO[bytes] | None]]:
    """What is below a folder, as names from there: files, opened until the next one, and None for folders,
    each before what is in it. Raises `BundleError` for links and the like, and for more than `check` allows.
    """
    count = 0
    for folder, folders, files, handle in os.fwalk(top, onerror=_raise):
        above = Path(folder).relative_to(top).parts
        for name in (*folders, *files):
            parts, path = (*above, name), Path(folder, name)
            count += 1
            check(top, parts, count)
            if name in folders:
                if not stat.S_ISDIR(os.stat(name, dir_fd=handle, follow_symlinks=False).st_mode):
                    raise _irregular(path)
                yield parts, None
            else:
                with os.fdopen(open_regular(name, path, handle), "rb") as stream:
                    yield parts, stream


def check(source: Path, parts: tuple[str, ...], count: int) -> None:
    """parts: the names in a file's path; count: of the files and folders so far."""
    if len(parts) > DEEPEST:
        raise BundleError(f"{source}: its folders are more than {DEEPEST} deep", "it is no bundle")
    if count > MOST:
        raise BundleError(f"{source}: more than {MOST} files and folders", "it is no bundle")


def _raise(error: OSError) -> NoReturn:
    raise error


class NewFolder:
    """A folder that was made just now, held by its descriptor: what is put in it lands there, whatever
    stands at its path by then. Names in it are this process's own, since nobody else may write to it."""

    def __init__(self, handle: int, path: Path) -> None:
        self._handle = handle
        self._path = path

    def add_folder(self, parts: tuple[str, ...]) -> None:
        """With those above it; one that is there already is left. Raises `FileExistsError` for a file."""
        for end in range(1, len(parts) + 1):
            name = os.path.join(*parts[:end])
            try:
                os.mkdir(name, FOLDER_MODE, dir_fd=self._handle)
            except FileExistsError:
                if not stat.S_ISDIR(os.stat(name, dir_fd=self._handle, follow_symlinks=False).st_mode):
                    raise
            else:
                os.chmod(name, FOLDER_MODE, dir_fd=self._handle)

    def add_file(self, parts: tuple[str, ...], stream: IO[bytes], room: int) -> int:
        """Its bytes. Raises `FileExistsError`, or `BundleError` for more than `room` bytes: others need the
        disk, too."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        size = 0
        with os.fdopen(os.open(os.path.join(*parts), flags, FILE_MODE, dir_fd=self._handle), "wb") as target:
            os.fchmod(target.fileno(), FILE_MODE)
            while chunk := stream.read(_CHUNK_BYTES):
                size += len(chunk)
                if size > room:
                    raise BundleError(
                        f"{self._path.parent}: the bundle needs more room than the disk has",
                        "free some, or: edged bundle prune",
                    )
                target.write(chunk)
        return size


def copy_into(made: NewFolder, source: Path, room: int = sys.maxsize) -> None:
    """What is below `source`, too. Raises what `tree` and `add_file` do."""
    for parts, stream in tree(source):
        if stream is None:
            made.add_folder(parts)
        else:
            room -= made.add_file(parts, stream, room)


@contextlib.contextmanager
def new_folder(path: Path) -> Iterator[NewFolder]:
    path.mkdir(mode=0o700)
    handle = os.open(path, _FOLDER)
    try:
        found = os.fstat(handle)
        if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
            raise BundleError(f"{path}: somebody put another folder in its place", "find out who, and why")
        os.fchmod(handle, FOLDER_MODE)
        yield NewFolder(handle, path)
    finally:
        os.close(handle)


def remove(path: Path) -> None:
    """A file, a link or a whole folder. One that cannot be removed is logged: it is in nobody's way."""
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except (OSError, RecursionError) as error:
        reason = "too many folders in each other" if isinstance(error, RecursionError) else error
        text = f"{path} is a remainder that cannot be removed: {reason}; remove it with rm -r"
        log_event(log, logging.WARNING, text, code="store_remainder")
