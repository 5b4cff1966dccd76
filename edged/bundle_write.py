"""Writes bundles: beside their place, to the disk, then renamed, so that a bundle is whole or absent.

Used by the compiler, in the CLI's process. Neighbour: `bundle.py` reads what this writes.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
from collections.abc import Collection, Iterator
from pathlib import Path

import msgspec

from edged.bundle import MANIFEST, Manifest, sha256
from edged.errors import BundleError
from edged.store_files import tree

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


def describe(root: Path, file: str) -> tuple[str, int]:
    """(sha256, bytes) of a file of the bundle being built."""
    path = root / file
    return sha256(path), path.stat().st_size


def write_manifest(root: Path, manifest: Manifest) -> None:
    """Pretty, stable JSON: people diff manifests."""
    raw = msgspec.json.encode(manifest)
    (root / MANIFEST).write_bytes(msgspec.json.format(raw, indent=2) + b"\n")


@contextlib.contextmanager
def building(out: Path) -> Iterator[Path]:
    """A folder to build in; it becomes `out` when the block ends well, and vanishes when it does not.

    A bundle that is there already is exchanged in one step, and a running daemon keeps the files it has
    open. What a killed build left behind is removed by the next build of the same bundle.
    """
    out = out.resolve()  # a link stays one: what it points to is replaced
    if not out.name:
        raise BundleError(f"{out} cannot be a bundle", "choose a directory of its own")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        _sweep(out)
        work = out.with_name(f".{out.name}.{os.getpid()}.building")
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
    except OSError as error:
        raise BundleError(
            f"{error.filename or out}: {error.strerror}", "choose a directory you may write"
        ) from error
    try:
        yield work
        sync_tree(work)
        _install(work, out)
        sync(out.parent)
    except OSError as error:
        raise BundleError(
            f"{error.filename or out}: {error.strerror}", "check the free space of the disk"
        ) from error
    finally:
        shutil.rmtree(work, ignore_errors=True)


@contextlib.contextmanager
def rewriting(path: Path, without: Collection[str]) -> Iterator[Path]:
    """Like `building` over a bundle that is there: its files are in the folder already, except for those of
    `without`, which the block must write. They are copies, not hard links: ONNX Runtime takes no weights
    from a file with two names, so a process killed here would spoil the bundle that is there, too."""
    with building(path) as root:
        copy_tree(path.resolve(), root, without)  # of the links only the one that was named
        yield root


def copy_tree(path: Path, root: Path, without: Collection[str] = ()) -> None:
    """The files below `path` in the folder `root`, too. Raises `BundleError` where one is a link."""
    for parts, stream in tree(path):
        place = root.joinpath(*parts)
        if stream is None:
            place.mkdir(exist_ok=True)
        elif "/".join(parts) not in without:
            with place.open("wb") as target:
                shutil.copyfileobj(stream, target, 1 << 20)


def sync_tree(root: Path) -> None:
    """Brings a folder and all that is in it to the disk."""
    for folder, _, files in os.walk(root):
        for file in files:
            sync(Path(folder) / file)
        sync(Path(folder))


def sync(path: Path) -> None:
    """Brings a file, or the names in a folder, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _install(work: Path, out: Path) -> None:
    """Moves `work` to `out`; afterwards `work` is the old bundle, or nothing."""
    if not out.exists():
        work.rename(out)
        return
    if (out / MANIFEST).is_file() or not any(out.iterdir()):
        if exchange(work, out):
            return
        old = out.with_name(f".{out.name}.{os.getpid()}.old")  # a file system without exchange
        out.rename(old)
        work.rename(out)
        shutil.rmtree(old, ignore_errors=True)
        return
    raise BundleError(f"{out}: exists and is not a bundle", "choose another name or remove it")


def exchange(first: Path, second: Path) -> bool:
    """Swaps two folders in one step (renameat2, Linux >= 3.15); False where that is impossible."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError):
        return False
    return bool(rename(_AT_FDCWD, os.fsencode(first), _AT_FDCWD, os.fsencode(second), _RENAME_EXCHANGE) == 0)


def _sweep(out: Path) -> None:
    """Removes what killed builds of this bundle left; a build that is still alive keeps its folder.

    A build killed between the two renames of `_install` left the only bundle aside: it is put back.
    """
    for path in out.parent.glob(f".{out.name}.*"):
        owner, _, kind = path.name.removeprefix(f".{out.name}.").partition(".")
        if kind in ("building", "old") and owner.isdigit() and not Path(f"/proc/{owner}").exists():
            if kind == "old" and not out.exists():
                path.rename(out)
            else:
                shutil.rmtree(path, ignore_errors=True)
