"""The bundle store: several versions of a bundle side by side, and a link that says which one is used.

    BUNDLES/NAME-VERSION-HASH/   an installed bundle; HASH: the first digits of its manifest's SHA-256
    BUNDLES/NAME                 link to the one in use, which the daemon finds by name
    BUNDLES/.NAME.previous       link to the one before, for `roll back`
    BUNDLES/.NAME.next           the coming `.NAME.previous`, while a switch is under way
    BUNDLES/.store.lock          held by the command that changes something

No thread of its own; used by the command line, the daemon only reads. A switch is one rename of a link: a
process killed at any instant leaves the old or the new bundle in use, and whoever comes next clears up.
A folder NAME that was built in place becomes a version of the store when another one takes its place.
Neighbours: `store_install` puts bundles in, `store_lock` keeps others out, `bundle_write` has the steps that
reach the disk.
"""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path

from edged import store_lock
from edged.bundle_write import exchange, sync, sync_tree
from edged.errors import BundleError, BundleMissing
from edged.manifest import MANIFEST
from edged.store_files import copy_into, new_folder, remove
from edged.store_lock import naming
from edged.store_names import Version, chosen, folder_name, parts

_LEFTOVERS = ("installing", "link", "trash")  # endings of hidden names that only a killed command leaves


class Store:
    """The store in one of the bundle directories."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._locked = False

    # -- reading --------------------------------------------------------------------------------

    def current(self, name: str) -> str:
        """The folder that a name stands for; empty when there is none, or one that was built in place."""
        return self._target(name)

    def previous(self, name: str) -> str:
        """The folder that was in use before; empty when there is none."""
        coming = self._target(f".{name}.next")
        if coming and coming != self.current(name):  # the switch was done, its last step was not
            return coming
        before = self._target(f".{name}.previous")
        return "" if before == self.current(name) else before

    def versions(self, name: str = "") -> list[Version]:
        """What is installed, the newest of a name first."""
        found = []
        for path in self._folders():
            named = parts(path.name)
            if named is None or (name and named[0] != name):
                continue
            roles = {self.previous(named[0]): "previous", self.current(named[0]): "current"}
            found.append(Version(path, *named, roles.get(path.name, "")))
        return sorted(found, key=lambda v: (v.name, -v.path.stat().st_mtime, v.path.name))

    def choose(self, wanted: str) -> Version:
        """The version that is meant. Raises `BundleMissing` when there is none, or several could be."""
        return chosen(self.versions(), wanted)

    def before(self, name: str, directories: Iterable[Path]) -> Path | None:
        """To go back to: the version before, else a bundle of that name in a later directory, or None."""
        if previous := self.previous(name):
            return self.directory / previous
        if not os.path.lexists(self.directory / name):
            return None
        places = [directory.resolve() for directory in directories]
        here = self.directory.resolve()
        later = places[places.index(here) + 1 :] if here in places else []
        return next((place / name for place in later if (place / name / MANIFEST).is_file()), None)

    # -- changing -------------------------------------------------------------------------------

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """One command at a time, for as many steps as are inside of it; it starts with what a killed one
        left half done."""
        if self._locked:
            yield
            return
        with store_lock.locked(self.directory):
            self._locked = True
            try:
                with naming(self.directory):
                    self._recover()
                    yield
            finally:
                self._locked = False

    def switch(self, name: str, folder: str) -> str:
        """Makes a version the one in use; the folder that was in use until now, empty without one."""
        with self.locked():
            if not (self.directory / folder / MANIFEST).is_file():
                raise BundleMissing(f"{self.directory / folder}: no bundle there")
            before = self._adopt(name)
            if before == folder:
                return before
            if before:
                self._point(f".{name}.next", before)
            self._point(name, folder)  # here it happens
            if before:
                self._settle(name)
            return before

    def withdraw(self, name: str) -> str:
        """Leaves the name to a later directory; the folder that was in use until now."""
        with self.locked():
            before = self._adopt(name)
            if before:
                self._point(f".{name}.previous", before)
                (self.directory / name).unlink()  # here it happens
                sync(self.directory)
            return before

    def undo(self, name: str, current: str, previous: str) -> None:
        """Takes a switch back that turned out badly; both as they were before it, empty for none."""
        with self.locked():
            for link, folder in ((name, current), (f".{name}.previous", previous)):
                if folder:
                    self._point(link, folder)
                else:
                    (self.directory / link).unlink(missing_ok=True)
                    sync(self.directory)

    def prune(self, keep: int = 0, name: str = "") -> list[str]:
        """Removes versions that are neither in use nor the ones before, but for the newest `keep`."""
        with self.locked():
            gone = []
            left: dict[str, int] = {}
            for version in self.versions(name):
                if not version.role:
                    left[version.name] = left.get(version.name, 0) + 1
                    if left[version.name] > keep:
                        self._remove(version.path)
                        gone.append(version.path.name)
            return gone

    # -- steps, with the lock held --------------------------------------------------------------

    def put(self, work: Path, folder: str) -> Path:
        """Moves a finished folder to its place; one that is there already is exchanged for it."""
        sync_tree(work)
        path = self.directory / folder
        if path.exists():
            if not exchange(work, path):
                self._remove(path)
                work.rename(path)
        else:
            work.rename(path)
        sync(self.directory)
        return path

    def hidden(self, name: str, kind: str) -> Path:
        """A place for what is not finished; the next command clears it away."""
        return self.directory / f".{name}.{os.getpid()}.{kind}"

    def _target(self, link: str) -> str:
        """Where a link of the store leads; empty when there is no such link, or it leads elsewhere."""
        try:
            target = os.readlink(self.directory / link)
        except OSError:
            return ""
        return target if "/" not in target and (self.directory / target / MANIFEST).is_file() else ""

    def _point(self, link: str, folder: str) -> None:
        temporary = self.hidden(link.removeprefix("."), "link")
        temporary.symlink_to(folder)
        temporary.replace(self.directory / link)
        sync(self.directory)

    def _settle(self, name: str) -> None:
        """Ends a switch: what was in use before it is now the previous one."""
        coming = self.directory / f".{name}.next"
        if self._target(coming.name) in ("", self.current(name)):
            coming.unlink()  # the switch did not come about
        else:
            coming.replace(self.directory / f".{name}.previous")
        sync(self.directory)

    def _adopt(self, name: str) -> str:
        """The folder in use, made a version of the store if it was built in place, or copied by hand."""
        path = self.directory / name
        if path.is_symlink() or not path.exists():
            return self.current(name)
        if not (path / MANIFEST).is_file():
            raise BundleError(
                f"{path} is no bundle, and in the place of the link to the version in use",
                f"look at it, then remove it: rm -r {shlex.quote(str(path))}",
            )
        folder = folder_name(path)
        if not (self.directory / folder).exists():
            work = self.hidden(name, "installing")
            with new_folder(work) as made:
                copy_into(made, path)
            self.put(work, folder)
        temporary = self.hidden(name, "link")
        temporary.symlink_to(folder)
        if exchange(temporary, path):
            remove(temporary)  # it is the old folder now; the new one has copies of its files
        else:
            aside = self.hidden(name, "old")
            path.rename(aside)
            temporary.rename(path)
            self._remove(aside)
        sync(self.directory)
        return folder

    def _remove(self, path: Path) -> None:
        """Out of sight in one step, then file by file."""
        trash = self.hidden(path.name.removeprefix("."), "trash")
        path.rename(trash)
        sync(self.directory)
        remove(trash)

    def _recover(self) -> None:
        for path in list(self.directory.iterdir()):
            if not path.name.startswith("."):
                continue
            stem, _, kind = path.name.removeprefix(".").rpartition(".")
            owner = stem.rpartition(".")[2]
            if kind in _LEFTOVERS and owner.isdigit():
                remove(path)
            elif kind == "old" and owner.isdigit() and not Path(f"/proc/{owner}").exists():
                place = self.directory / stem.rpartition(".")[0]
                if not os.path.lexists(place):  # killed between the two renames
                    path.rename(place)
                else:
                    remove(path)
            elif kind == "next" and path.is_symlink():
                self._settle(stem)

    def _folders(self) -> list[Path]:
        try:
            entries = sorted(self.directory.iterdir())
        except OSError:
            return []
        return [p for p in entries if p.is_dir() and not p.is_symlink() and not p.name.startswith(".")]
