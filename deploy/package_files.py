"""The content of an offline package: one staged folder, from which the archive and the .deb are made.

    install.sh README.md LICENSE NOTICE     package (facts that install.sh reads)   SHA256SUMS
    wheels/ requirements.txt                bundles/ systemd/ config/ licences/     debs/ (if any)

The same input gives the same bytes: names are sorted, and times are those of $SOURCE_DATE_EPOCH (or 0).
Neighbours: `make-offline-package` calls it; `package_wheels.py` chose the wheels.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import subprocess
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from package_wheels import PackageError, Target, Wheel

DEB_ARCH = {"x86_64": "amd64", "aarch64": "arm64"}
PLACE = "usr/share/edged/package"  # of the package in the .deb
# Of the accounts only the one that was made for the service, as install.sh does it, which is gone by now.
POSTRM = """[ "$1" = purge ] || exit 0
rm -rf /etc/edged /var/lib/edged
entry=$(getent passwd edged) || exit 0
[ "$(echo "$entry" | cut -d: -f6)" = /var/lib/edged ] || exit 0
[ "$(echo "$entry" | cut -d: -f3)" -lt 1000 ] || exit 0
userdel edged || true
if getent group edged >/dev/null; then groupdel edged || true; fi
"""
UNPACKED = 2.6  # times the wheels' size, with compiled Python; 2.4 measured


@dataclass(frozen=True)
class Stage:
    """A filled folder, ready to be packed."""

    path: Path
    target: Target
    version: str

    @property
    def name(self) -> str:
        return self.path.name

    @classmethod
    def fill(
        cls,
        scratch: Path,
        target: Target,
        root: Path,
        wheels: list[Wheel],
        bundles: list[Path],
        debs: Path | None,
    ) -> Stage:
        [version] = [wheel.version for wheel in wheels if wheel.name == "edged"]
        path = scratch / f"edged-{version}-{target.arch}-py{target.python}"
        (path / "wheels").mkdir(parents=True)
        for wheel in wheels:
            shutil.copy(wheel.path, path / "wheels")
        (path / "requirements.txt").write_text(
            "".join(_locked(wheel) for wheel in wheels if wheel.name != "pip")
        )
        _licences(path / "licences", wheels)
        for bundle in bundles:
            if not (bundle / "manifest.json").is_file():
                raise PackageError(f"{bundle} is not a voice bundle", "see: edged bundle list")
            shutil.copytree(bundle, path / "bundles" / bundle.resolve().name)
        for folder in ("systemd", "config"):
            shutil.copytree(root / folder, path / folder)
        shutil.copytree(root / "deploy" / "jetson", path / "jetson")
        for name in ("LICENSE", "NOTICE", "deploy/README.md", "deploy/install.sh"):
            shutil.copy(root / name, path)
        if debs is not None:
            (path / "debs").mkdir()
            for file in sorted(debs.glob("*.deb")):
                shutil.copy(file, path / "debs")
        room = sum(wheel.path.stat().st_size for wheel in wheels) * UNPACKED + _size(path / "bundles")
        (path / "package").write_text(
            f"version={version}\narch={target.arch}\npython={target.python}\nglibc={target.glibc}\n"
            f"room_mb={room / 1e6:.0f}\n"
        )
        (path / "SHA256SUMS").write_text(checksums(path))
        return cls(path, target, version)


def checksums(path: Path) -> str:
    """A line for every file, as `sha256sum --check` reads them."""
    files = sorted(file.relative_to(path) for file in path.rglob("*") if file.is_file())
    return "".join(f"{_digest(path / file)}  {file}\n" for file in files if file.as_posix() != "SHA256SUMS")


def write_archive(stage: Stage, out: Path) -> Path:
    result = out / f"{stage.name}.tar.gz"
    unfinished = result.with_name(f".{result.name}.part")
    # Wheels are compressed already: more effort would take a minute and save nothing.
    with (
        unfinished.open("wb") as raw,
        gzip.GzipFile("", "wb", compresslevel=1, fileobj=raw, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for path in [stage.path, *sorted(stage.path.rglob("*"))]:
            archive.add(path, path.relative_to(stage.path.parent).as_posix(), False, filter=_plain)
    unfinished.rename(result)
    return result


def write_deb(stage: Stage, out: Path) -> Path:
    """A Debian package that carries the same folder and runs its install.sh."""
    if shutil.which("dpkg-deb") is None:
        raise PackageError("dpkg-deb is not installed", "leave --deb out, or: apt install dpkg")
    arch = DEB_ARCH[stage.target.arch]
    tree = stage.path.parent / "deb"
    shutil.copytree(stage.path, tree / PLACE, copy_function=_link)
    control = tree / "DEBIAN"
    control.mkdir()
    low, high = _series(stage.target.python)
    (control / "control").write_text(
        f"Package: edged\nVersion: {stage.version}\nArchitecture: {arch}\nSection: sound\n"
        f"Priority: optional\nMaintainer: the edged project <root@localhost>\n"
        f"Installed-Size: {_size(stage.path) // 1024}\n"
        f"Depends: python3 (>= {low}), python3 (<< {high}), libc6 (>= {stage.target.glibc})\n"
        "Recommends: libportaudio2, libasound2-plugins, libsonic0\n"
        "Description: Offline text-to-speech daemon\n"
        " Speaks what programs send it, on the loudspeaker or as audio data, without a network.\n"
    )
    install = f"/{PLACE}/install.sh"
    scripts = {
        "postinst": f'[ "$1" = configure ] || exit 0\nexec {install} install --prefix /usr\n',
        "prerm": f'[ "$1" = remove ] || exit 0\nexec {install} uninstall --keep-voices\n',
        "postrm": POSTRM,
    }
    for name, body in scripts.items():
        (control / name).write_text(f"#!/bin/sh\nset -e\n{body}")
        (control / name).chmod(0o755)
    result = out / f"edged_{stage.version}_{arch}_py{stage.target.python}.deb"
    subprocess.run(
        ["dpkg-deb", "--root-owner-group", "-Zgzip", "-z1", "--build", str(tree), str(result)],
        check=True,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "SOURCE_DATE_EPOCH": str(_epoch())},
    )
    return result


def _series(python: str) -> tuple[str, str]:
    """3.11 is met by Debian's 3.11.2-1, but not by 3.12."""
    major, _, minor = python.partition(".")
    return f"{major}.{minor}", f"{major}.{int(minor) + 1}~"


def _locked(wheel: Wheel) -> str:
    return f"{wheel.name}=={wheel.version} --hash=sha256:{_digest(wheel.path)}\n"


def _licences(out: Path, wheels: list[Wheel]) -> None:
    """The licence files of every wheel, where people look for them, and a list of what they are."""
    out.mkdir()
    lines = []
    for wheel in wheels:
        folder = out / f"{wheel.name}-{wheel.version}"
        with zipfile.ZipFile(wheel.path) as archive:
            for entry in archive.namelist():
                parts = Path(entry).parts
                inside = parts[0].endswith(".dist-info") and _is_licence(parts[1:])
                if inside and not entry.endswith("/"):
                    folder.mkdir(exist_ok=True)
                    (folder / "-".join(parts[1:])).write_bytes(archive.read(entry))
        lines.append(f"{wheel.name} {wheel.version}: {wheel.licence}\n")
    (out / "LIST").write_text("".join(lines))


def _is_licence(parts: tuple[str, ...]) -> bool:
    head = parts[0].lower() if parts else ""
    return head == "licenses" or head.startswith(("licen", "copying", "notice", "authors"))


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    entry.mtime = _epoch()
    entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
    return entry


def _epoch() -> int:
    return int(os.environ.get("SOURCE_DATE_EPOCH", "0"))


def _link(source: str, target: str) -> None:
    os.link(source, target)


def _size(path: Path) -> int:
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
