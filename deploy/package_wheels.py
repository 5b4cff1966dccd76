"""The wheels of an offline package: everything edged needs on the target, and nothing else.

pip downloads for another processor and Python, but decides what is needed (`python_version < "3.11"`) by the
Python it runs on. So its choice is checked here against the target: what is missing is fetched, what is not
needed there is dropped. Neighbours: `make-offline-package` calls `collect`; `package_files.py` packs.
"""

from __future__ import annotations

import subprocess
import sys
import zipfile
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_wheel_filename

OLDEST_GLIBC = 17  # of manylinux2014, the oldest that today's wheels are made for
ROUNDS = 10  # of fetching what another wheel turned out to need; two were seen


class PackageError(Exception):
    """The package cannot be made; `hint` says what to do."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True)
class Target:
    """The machine that a package is for."""

    arch: str
    python: str
    glibc: str

    @property
    def platforms(self) -> list[str]:
        major, _, minor = self.glibc.partition(".")
        if major != "2" or not minor.isdecimal() or int(minor) < OLDEST_GLIBC:
            raise PackageError(f"glibc {self.glibc} is not one of 2.{OLDEST_GLIBC}, 2.28, 2.35, ...")
        versions = range(int(minor), OLDEST_GLIBC - 1, -1)
        return [*(f"manylinux_2_{n}_{self.arch}" for n in versions), f"manylinux2014_{self.arch}"]

    @property
    def markers(self) -> dict[str, str]:
        """What the target answers to the conditions in a wheel's requirements (PEP 508)."""
        return {
            "implementation_name": "cpython",
            "implementation_version": f"{self.python}.0",
            "os_name": "posix",
            "platform_machine": self.arch,
            "platform_python_implementation": "CPython",
            "platform_release": "",
            "platform_system": "Linux",
            "platform_version": "",
            "python_full_version": f"{self.python}.0",
            "python_version": self.python,
            "sys_platform": "linux",
        }

    @property
    def pip_options(self) -> list[str]:
        platforms = [word for name in self.platforms for word in ("--platform", name)]
        return ["--only-binary=:all:", "--implementation=cp", f"--python-version={self.python}", *platforms]


@dataclass(frozen=True)
class Wheel:
    """A wheel file and what it says about itself."""

    path: Path
    name: str
    version: str
    requires: tuple[Requirement, ...]
    licence: str

    @classmethod
    def read(cls, path: Path) -> Wheel:
        name, version, _, _ = parse_wheel_filename(path.name)
        with zipfile.ZipFile(path) as archive:
            place = next(entry for entry in archive.namelist() if entry.endswith(".dist-info/METADATA"))
            said = HeaderParser().parsestr(archive.read(place).decode("utf-8"))
        classified = [line for line in said.get_all("Classifier", []) if line.startswith("License ::")]
        licence = said["License-Expression"] or "; ".join(line.rpartition(" :: ")[2] for line in classified)
        requires = tuple(Requirement(text) for text in said.get_all("Requires-Dist", []))
        first_line = (said["License"] or "see its files").strip().splitlines()[0]
        return cls(path, str(name), str(version), requires, licence or first_line)


@dataclass(frozen=True)
class Needs:
    """What the target needs: wheels that are there, and requirements that none of them meets."""

    wheels: tuple[Wheel, ...]
    missing: tuple[Requirement, ...]


def needs(target: Target, wheels: list[Wheel], wanted: list[Requirement]) -> Needs:
    """Follows the requirements from `wanted` as they apply on the target."""
    there = {wheel.name: wheel for wheel in wheels}
    used: dict[str, Wheel] = {}
    missing: dict[str, Requirement] = {}
    seen: set[tuple[str, str]] = set()
    queue = list(wanted)
    while queue:
        requirement = queue.pop()
        name = canonicalize_name(requirement.name)
        wheel = there.get(name)
        if wheel is None or not requirement.specifier.contains(wheel.version, prereleases=True):
            missing[str(requirement)] = requirement
            continue
        used[name] = wheel
        for extra in ("", *sorted(requirement.extras)):
            if (name, extra) in seen:
                continue
            seen.add((name, extra))
            environment = target.markers | {"extra": extra}
            queue += [
                below
                for below in wheel.requires
                if below.marker is None or below.marker.evaluate(environment)
            ]
    return Needs(tuple(used[name] for name in sorted(used)), tuple(missing.values()))


def collect(target: Target, root: Path, extras: list[str], out: Path, local: Path | None) -> list[Wheel]:
    """Builds edged's wheel and fetches all that it needs on the target, and pip, into `out`."""
    out.mkdir()
    source = ["--no-index", f"--find-links={local.resolve()}"] if local else []
    _pip("wheel", "--no-deps", f"--wheel-dir={out}", str(root))
    [own] = out.glob("edged-*.whl")
    wanted = [Requirement(f"edged[{','.join(extras)}]"), Requirement("pip")]
    download = ["download", f"--dest={out}", *target.pip_options, *source]
    _pip(*download, f"{own}[{','.join(extras)}]", "pip")
    for _ in range(ROUNDS):
        wheels = [Wheel.read(path) for path in sorted(out.glob("*.whl"))]
        found = needs(target, wheels, wanted)
        if not found.missing:
            return _only(wheels, found.wheels)
        for requirement in found.missing:
            for wheel in wheels:  # one that does not fit would stay beside the one that does
                if wheel.name == canonicalize_name(requirement.name):
                    wheel.path.unlink(missing_ok=True)
            requirement.marker = None  # it was decided for the target
            _pip(*download, "--no-deps", str(requirement))
    names = ", ".join(str(requirement) for requirement in found.missing)
    raise PackageError(f"no set of wheels meets {names}", "choose another --python or --glibc")


def _only(wheels: list[Wheel], used: tuple[Wheel, ...]) -> list[Wheel]:
    for wheel in wheels:
        if wheel not in used:
            wheel.path.unlink()
    return list(used)


def _pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        tail = "\n".join((done.stderr or done.stdout).strip().splitlines()[-12:])
        raise PackageError(f"pip {arguments[0]} failed:\n{tail}", "is a package registry reachable?")
