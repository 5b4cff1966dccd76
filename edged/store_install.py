"""Puts a bundle into the store, from a folder or a tar archive: copied aside, checked in full, then moved.

No thread of its own; used by the command line. Only plain files and folders are taken, as many as a bundle
may have, and no more than the disk has room for; an archive gets little memory to be read with. Neighbours:
`store`, `store_files`, `bundle`.
"""

from __future__ import annotations

import contextlib
import lzma
import os
import resource
import shutil
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from edged.bundle import MANIFEST, Bundle
from edged.errors import BundleError, BundleFileTruncated, BundleMissing
from edged.store import Store
from edged.store_files import NewFolder, check, copy_into, new_folder, remove
from edged.store_names import folder_name

SPARE_BYTES = 16 << 20  # left free on the disk
MEMORY_BYTES = 160 << 20  # for reading an archive: xz needs 65 MB at its best compression
LONGEST_NAME = 255  # bytes of a file's name, on all usual file systems
_NOT_A_BUNDLE = "give a bundle's folder, or a tar archive of one (.tar, .tar.gz, .tar.xz)"
_DAMAGED = (zlib.error, lzma.LZMAError, tarfile.TarError, ValueError, OverflowError, RecursionError)


def install(store: Store, source: Path) -> Path:
    """The folder of the installed bundle. It is not in use yet, unless it was before."""
    with store.locked():
        work = store.hidden("incoming", "installing")
        try:
            with new_folder(work) as made:
                room = shutil.disk_usage(work).free - SPARE_BYTES
                if source.is_dir():
                    _copy(source.resolve(), made, room)
                else:
                    _unpack(source, made, room)
            root = _root(work, source)
            Bundle.load(root)
            return store.put(root, folder_name(root))
        finally:
            remove(work)


def _root(work: Path, source: Path) -> Path:
    """The folder with the manifest: the archive's own, or the only one in it."""
    inside = [p for p in work.iterdir() if (p / MANIFEST).is_file()]
    if (work / MANIFEST).is_file():
        return work
    if len(inside) != 1:
        raise BundleMissing(f"{source}: no bundle there ({MANIFEST} is missing)", _NOT_A_BUNDLE)
    return inside[0]


def _copy(source: Path, made: NewFolder, room: int) -> None:
    if not (source / MANIFEST).is_file():
        raise BundleMissing(f"{source}: no bundle there ({MANIFEST} is missing)", _NOT_A_BUNDLE)
    copy_into(made, source, room)


def _unpack(source: Path, made: NewFolder, room: int) -> None:
    try:
        with _little_memory(), tarfile.open(source) as archive:
            for count, member in enumerate(archive, 1):
                parts = PurePosixPath(member.name).parts
                check(source, parts, count)
                if not _has_place(member, parts):
                    raise BundleError(f"{source}: {member.name!r} has no place in a bundle", _NOT_A_BUNDLE)
                try:
                    room -= _take(archive, member, parts, made, room)
                except (FileExistsError, NotADirectoryError):
                    raise BundleError(f"{source}: {member.name!r} is in the archive twice", "") from None
    except FileNotFoundError:
        raise BundleMissing(f"{source}: there is no such file or folder", _NOT_A_BUNDLE) from None
    except EOFError:  # gzip and its like
        raise BundleFileTruncated(f"{source}: the archive ends too early") from None
    except MemoryError:
        most = MEMORY_BYTES >> 20
        raise BundleError(f"{source}: reading it takes more than {most} MB", _NOT_A_BUNDLE) from None
    except _DAMAGED as error:
        cut = "unexpected end" in str(error)
        kind = BundleFileTruncated if cut else BundleError
        raise kind(f"{source}: {error}", None if cut else _NOT_A_BUNDLE) from None
    except OSError as error:
        if error.errno is not None:
            raise
        raise BundleError(f"{source}: {error}", _NOT_A_BUNDLE) from None  # as of a wrong checksum in gzip


def _has_place(member: tarfile.TarInfo, parts: tuple[str, ...]) -> bool:
    """A file with a name, or a folder, below the place it is unpacked to."""
    if ".." in parts or "\0" in member.name or member.name.startswith("/") or member.size < 0:
        return False
    if any(len(os.fsencode(part)) > LONGEST_NAME for part in parts):
        return False
    return member.isdir() or (member.isfile() and bool(parts))


def _take(
    archive: tarfile.TarFile, member: tarfile.TarInfo, parts: tuple[str, ...], made: NewFolder, room: int
) -> int:
    """The bytes that it takes of the disk."""
    if member.isdir():
        made.add_folder(parts)
        return 0
    made.add_folder(parts[:-1])
    stream = archive.extractfile(member)
    assert stream is not None, "it is a file"
    return made.add_file(parts, stream, room)


@contextlib.contextmanager
def _little_memory() -> Iterator[None]:
    """An archive can ask for any amount: a header of gigabytes, a dictionary to unpack it with."""
    before, most = resource.getrlimit(resource.RLIMIT_DATA)
    allowed = _data_bytes() + MEMORY_BYTES
    bounds = [bound for bound in (before, most) if bound != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_DATA, (min([allowed, *bounds]), most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (before, most))


def _data_bytes() -> int:
    """What the limit counts, as this process has it now."""
    for line in Path("/proc/self/status").read_text("ascii").splitlines():
        if line.startswith("VmData:"):
            return int(line.split()[1]) << 10
    return 0
