"""One offline package for all tests of the session, made as README.md says, and changed copies of it."""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

import pytest

from edged import __version__

MAKE = Path(__file__).parents[1] / "deploy" / "make-offline-package"
OLD_GLIBC = "2.35"  # so that it can also be installed in a machine of tests/service
TIMEOUT_S = 300


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="edged-test-package-")


@functools.cache
def built() -> Path:
    """The folder with the archive and, where dpkg-deb is, the .deb for this machine and this Python.

    Skips the test where no package registry can be reached.
    """
    folder = Path(_folder().name)
    pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "--dest", str(folder / "probe")]
    if _run([*pip, "click"]).returncode:
        pytest.skip("no package registry can be reached")
    ours = (os.confstr("CS_GNU_LIBC_VERSION") or "").split()[-1]
    glibc = min(ours, OLD_GLIBC, key=lambda version: [int(part) for part in version.split(".")])
    deb = ["--deb"] if shutil.which("dpkg-deb") else []
    made = _run([sys.executable, str(MAKE), "--glibc", glibc, "--out", str(folder / "out"), *deb])
    assert made.returncode == 0, made.stderr
    return folder / "out"


@functools.cache
def unpacked() -> Path:
    """The folder that the archive holds; not to be changed."""
    [archive] = built().glob("*.tar.gz")
    with tarfile.open(archive) as content:
        content.extractall(built(), filter="tar")
    return built() / archive.name.removesuffix(".tar.gz")


def copy(package: Path, place: Path) -> Path:
    """Shares its files, each until it is changed."""
    shutil.copytree(package, place, copy_function=os.link)
    return place


def change(package: Path, file: str, text: str) -> None:
    """Gives a file of a copy another content, and the package the checksums of it."""
    _replace(package / file, text.encode())
    _sum(package)


def upgrade(package: Path, version: str) -> None:
    """Makes a copy one of a higher version of edged."""
    [old] = package.glob("wheels/edged-*.whl")
    new = old.with_name(old.name.replace(f"-{__version__}-", f"-{version}-"))
    info = f"edged-{__version__}.dist-info/"
    with zipfile.ZipFile(old) as content, zipfile.ZipFile(new, "w") as changed:
        for name in content.namelist():
            data = content.read(name)
            if name in ("edged/__init__.py", f"{info}METADATA", f"{info}RECORD"):
                data = data.replace(__version__.encode(), version.encode())
            changed.writestr(name.replace(info, f"edged-{version}.dist-info/"), data)
    old.unlink()
    lines = (package / "requirements.txt").read_text().splitlines(keepends=True)
    digest = hashlib.sha256(new.read_bytes()).hexdigest()
    own = f"edged=={version} --hash=sha256:{digest}\n"
    text = "".join(own if line.startswith("edged==") else line for line in lines)
    _replace(package / "requirements.txt", text.encode())
    facts = (package / "package").read_text().replace(f"version={__version__}", f"version={version}")
    _replace(package / "package", facts.encode())
    _sum(package)


def _replace(path: Path, data: bytes) -> None:
    mode = path.stat().st_mode
    path.unlink()  # it is a link to the file of the package that others use
    path.write_bytes(data)
    path.chmod(mode)


def _sum(package: Path) -> None:
    files = sorted(path for path in package.rglob("*") if path.is_file() and path.name != "SHA256SUMS")
    lines = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(package)}\n" for path in files
    ]
    _replace(package / "SHA256SUMS", "".join(lines).encode())


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
