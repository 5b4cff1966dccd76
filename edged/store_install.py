"""Puts a bundle into the store, from a folder or a tar archive: copied aside, checked in full, then moved.

No thread of its own; used by the command line. From an archive only plain files and folders are taken, below
the place they are unpacked to, and no more than the disk has room for. Neighbours: `store`, `bundle`.
"""

from __future__ import annotations

import os
import shutil
import tarfile
from pathlib import Path, PurePosixPath
from typing import IO

from edged.bundle import MANIFEST, Bundle
from edged.errors import BundleError, BundleFileTruncated, BundleMissing
from edged.store import Store
from edged.store_lock import FILE_MODE, FOLDER_MODE
from edged.store_names import folder_name

SPARE_BYTES = 16 << 20  # left free on the disk
_NOT_A_BUNDLE = "give a bundle's folder, or a tar archive of one (.tar, .tar.gz, .tar.xz)"


def install(store: Store, source: Path) -> Path:
    """The folder of the installed bundle. It is not in use yet, unless it was before."""
    with store.locked():
        work = store.hidden("incoming", "installing")
        try:
            work.mkdir()
            room = shutil.disk_usage(work).free - SPARE_BYTES
            if source.is_dir():
                _copy(source, work, room)
            else:
                _unpack(source, work, room)
            root = _root(work, source)
            Bundle.load(root)
            for folder, _, _ in os.walk(root):
                os.chmod(folder, FOLDER_MODE)
            return store.put(root, folder_name(root))
        finally:
            shutil.rmtree(work, ignore_errors=True)


def _root(work: Path, source: Path) -> Path:
    """The folder with the manifest: the archive's own, or the only one in it."""
    inside = [p for p in work.iterdir() if (p / MANIFEST).is_file()]
    if (work / MANIFEST).is_file():
        return work
    if len(inside) != 1:
        raise BundleMissing(f"{source}: no bundle there ({MANIFEST} is missing)", _NOT_A_BUNDLE)
    return inside[0]


def _copy(source: Path, work: Path, room: int) -> None:
    if not (source / MANIFEST).is_file():
        raise BundleMissing(f"{source}: no bundle there ({MANIFEST} is missing)", _NOT_A_BUNDLE)
    for folder, folders, files in os.walk(source):
        place = work / Path(folder).relative_to(source)
        for name in folders:
            (place / name).mkdir()
        for name in files:
            path = Path(folder) / name
            if path.is_symlink() or not path.is_file():
                raise BundleError(f"{path}: not a regular file", "a bundle has only plain files")
            with path.open("rb") as stream:
                room -= _write(place / name, stream, path.stat().st_size, room)


def _unpack(source: Path, work: Path, room: int) -> None:
    try:
        with tarfile.open(source) as archive:
            for member in archive:
                parts = PurePosixPath(member.name).parts
                if not (member.isfile() or member.isdir()) or ".." in parts or member.name.startswith("/"):
                    raise BundleError(f"{source}: {member.name!r} has no place in a bundle", _NOT_A_BUNDLE)
                place = work.joinpath(*parts)
                if member.isdir():
                    place.mkdir(parents=True, exist_ok=True)
                    continue
                place.parent.mkdir(parents=True, exist_ok=True)
                stream = archive.extractfile(member)
                assert stream is not None, "it is a file"
                room -= _write(place, stream, member.size, room)
    except FileNotFoundError:
        raise BundleMissing(f"{source}: there is no such file or folder", _NOT_A_BUNDLE) from None
    except EOFError:  # gzip and its like
        raise BundleFileTruncated(f"{source}: the archive ends too early") from None
    except tarfile.ReadError as error:
        cut = "unexpected end" in str(error)
        kind = BundleFileTruncated if cut else BundleError
        raise kind(f"{source}: {error}", None if cut else _NOT_A_BUNDLE) from None


def _write(place: Path, stream: IO[bytes], size: int, room: int) -> int:
    """Copies a file; its bytes. Raises before the disk is full: others need it, too."""
    if size > room:
        raise BundleError(
            f"{place.parent}: the bundle needs more room than the disk has",
            "free some, or: edged bundle prune",
        )
    with place.open("xb") as target:
        shutil.copyfileobj(stream, target, 1 << 20)
    place.chmod(FILE_MODE)
    return size
