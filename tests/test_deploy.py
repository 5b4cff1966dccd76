"""deploy/: the offline package, and install.sh in a copy of this system that has neither network nor systemd.

With systemd, upgraded and rolled back, it is tested by tests/service/test_package.py.
The copy is an overlay on this machine's own root in a mount and network namespace of its own: nothing
that is installed there is seen outside, and its upper layer holds exactly what an installation changed.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import soundfile
from packaging.requirements import Requirement

from tests import package as offline

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
sys.path.insert(0, str(DEPLOY))
from package_wheels import PackageError, Target, Wheel, needs  # noqa: E402

HERE = f"{sys.version_info[0]}.{sys.version_info[1]}"
JETPACK_6 = Target("aarch64", "3.10", "2.35")

# -- which wheels ---------------------------------------------------------------------------------


def wheel(folder: Path, name: str, version: str, *requires: str) -> Wheel:
    path = folder / f"{name}-{version}-py3-none-any.whl"
    lines = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nLicense-Expression: MIT\n"]
    lines += [f"Requires-Dist: {text}\n" for text in requires]
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}-{version}.dist-info/METADATA", "".join(lines))
    return Wheel.read(path)


def names(wheels: tuple[Wheel, ...]) -> list[str]:
    return [wheel.name for wheel in wheels]


@pytest.mark.parametrize(
    ("target", "chosen"),
    [
        (JETPACK_6, ["arm", "edged", "old"]),
        (Target("aarch64", "3.12", "2.39"), ["arm", "edged"]),
        (Target("x86_64", "3.10", "2.35"), ["edged", "old"]),
    ],
)
def test_conditions_are_those_of_the_target_and_not_of_this_machine(
    tmp_path: Path, target: Target, chosen: list[str]
) -> None:
    there = [
        wheel(tmp_path, "arm", "1"),
        wheel(tmp_path, "old", "1"),
        wheel(tmp_path, "windows", "1"),
        wheel(
            tmp_path,
            "edged",
            "1",
            'arm; platform_machine == "aarch64"',
            'old; python_version < "3.11"',
            'windows; sys_platform == "win32"',
            'other; extra == "other"',
        ),
    ]
    found = needs(target, there, [Requirement("edged")])
    assert (names(found.wheels), found.missing) == (chosen, ())


def test_what_is_absent_or_of_the_wrong_version_is_named(tmp_path: Path) -> None:
    there = [
        wheel(tmp_path, "edged", "1", 'voice==2; extra == "voice"', "numbers>=2"),
        wheel(tmp_path, "numbers", "1.9"),
        wheel(tmp_path, "voice", "2", "edged[voice]", "table"),
    ]
    found = needs(JETPACK_6, there, [Requirement("edged[voice]")])
    assert sorted(map(str, found.missing)) == ["numbers>=2", "table"]
    assert names(found.wheels) == ["edged", "voice"]


def test_platforms_reach_from_the_targets_glibc_down(tmp_path: Path) -> None:
    platforms = JETPACK_6.platforms
    assert (platforms[0], platforms[-2:]) == (
        "manylinux_2_35_aarch64",
        ["manylinux_2_17_aarch64", "manylinux2014_aarch64"],
    )
    with pytest.raises(PackageError, match=r"2\.5"):
        _ = Target("x86_64", "3.11", "2.5").platforms


# -- the package ----------------------------------------------------------------------------------


def quietly(command: list[str | Path]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture(scope="module")
def package() -> Path:
    """Unpacked; not to be changed."""
    return offline.unpacked()


def test_every_file_is_in_the_checksums_and_every_wheel_in_the_requirements(package: Path) -> None:
    lines = (package / "SHA256SUMS").read_text().splitlines()
    summed = dict(reversed(line.split("  ", 1)) for line in lines)
    files = {str(path.relative_to(package)) for path in package.rglob("*") if path.is_file()}
    assert set(summed) == files - {"SHA256SUMS"}
    for name, digest in summed.items():
        assert hashlib.sha256((package / name).read_bytes()).hexdigest() == digest, name
    locked = (package / "requirements.txt").read_text()
    for path in package.glob("wheels/*.whl"):
        assert summed[f"wheels/{path.name}"] in locked or path.name.startswith("pip-"), path.name
    assert (package / "bundles/hibari/LICENSE").is_file()


def test_every_wheel_has_its_licence_named(package: Path) -> None:
    listed = (package / "licences/LIST").read_text().splitlines()
    assert len(listed) == len(list(package.glob("wheels/*.whl")))
    assert all(line.partition(": ")[2] for line in listed)
    own = [line for line in listed if line.startswith("edged ")]
    assert own[0].endswith("Apache-2.0")
    assert len(list(package.glob("licences/edged-*/*"))) == 2


# -- installing it --------------------------------------------------------------------------------

ACCOUNTS = re.compile(r"etc/(passwd|group|g?shadow|sub[ug]id)-?|etc/\.pwd\.lock")
NAMESPACES = ("unshare", "--mount", "--net", "--propagation", "private")
OVERLAY = """
set -e
mount -t tmpfs -o size=3g none "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
cd "$1/root"
rm -rf opt/edged etc/edged var/lib/edged
mount -t proc proc proc || mount --rbind /proc proc
mount --rbind /dev dev
for place in run tmp; do mount -t tmpfs none $place; done
mkdir tmp/package
mount --bind "$2" tmp/package
echo up
exec sleep infinity
"""


class System:
    """A throw-away copy of this system; `sh` runs in it."""

    def __init__(self, scratch: Path, package: Path) -> None:
        self._place = scratch / "system"
        self._place.mkdir()
        command = [*NAMESPACES, "sh", "-c", OVERLAY, "sh", str(self._place), str(package)]
        self._holder = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self._holder.stdout is not None
        assert self._holder.stderr is not None
        if self._holder.stdout.readline() != "up\n":
            pytest.skip(f"no overlay in a namespace of its own: {self._holder.stderr.read().strip()}")

    def _command(self, script: str) -> list[str]:
        enter = ["nsenter", "-t", str(self._holder.pid), "--mount", "--net"]
        clean = ["env", "-i", "HOME=/tmp", f"PATH={os.environ['PATH']}"]
        return [*enter, "chroot", f"{self._place}/root", *clean, "sh", "-c", f"cd /tmp; {script}"]

    def sh(self, script: str, code: int = 0) -> str:
        """Runs a script, which must end with `code`; what it said."""
        done = quietly(self._command(script))
        said = done.stdout + done.stderr
        assert done.returncode == code, f"{script}: ended with {done.returncode}\n{said[-3000:]}"
        return said

    def speak(self) -> float:
        """Starts the installed daemon, lets it speak, stops it; seconds of speech in the WAV file."""
        say = 'edged say --out /tmp/spoken.wav "Door three is open."'
        with subprocess.Popen(self._command("exec /opt/edged/bin/edged serve")) as daemon:
            try:
                self.sh(f"for i in $(seq 300); do {say} && exit; sleep 0.1; done; exit 1")
            finally:
                daemon.terminate()
        assert daemon.returncode == 0
        samples, rate = soundfile.read(self.path("tmp/spoken.wav"))
        assert abs(samples).max() > 0.05
        return len(samples) / rate

    def path(self, name: str) -> Path:
        return Path(f"/proc/{self._holder.pid}/root{self._place}/root/{name}")

    def changed(self) -> set[str]:
        """The files that are new or differ from the system below; accounts are not counted."""
        upper = Path(f"/proc/{self._holder.pid}/root{self._place}/upper")
        found = {
            str(path.relative_to(upper)) for path in upper.rglob("*") if path.is_file() or path.is_symlink()
        }
        return {name for name in found if not ACCOUNTS.fullmatch(name)}

    def close(self) -> None:
        self._holder.kill()  # the namespaces go with it, and with them all that was mounted
        self._holder.wait()


@pytest.fixture
def system(tmp_path: Path, package: Path) -> Iterator[System]:
    if os.geteuid():
        pytest.skip("namespaces and installing need root")
    if not all(map(shutil.which, ("unshare", "nsenter", "flock"))):
        pytest.skip("unshare, nsenter and flock (util-linux) are needed")
    started = System(tmp_path, offline.copy(package, tmp_path / "package"))
    yield started
    started.close()


INSTALL = f"package/install.sh install --python {sys._base_executable}"  # type: ignore[attr-defined]


@pytest.mark.timeout(400)
def test_install_speak_uninstall(system: System, tmp_path: Path) -> None:
    assert system.sh("cat /proc/net/dev").count(":") == 1  # the loopback device alone
    # What lies in the directory where root happens to be is not run.
    system.sh('for name in venv subprocess pip; do echo \'open("ran", "w")\' > $name.py; done')
    system.sh(f"timeout -s KILL 2 {INSTALL}", code=137)  # an interrupted one is made good by the next
    system.sh(INSTALL)
    system.sh("ls ran", code=2)
    first = system.sh("readlink /opt/edged/current")
    assert system.speak() > 0.8
    before = system.changed()
    system.sh(INSTALL)  # again: nothing changes
    assert (system.sh("readlink /opt/edged/current"), system.changed()) == (first, before)

    system.sh("echo 'volum: 3' >> /etc/edged/edged.yaml")  # a configuration that no release can use
    offline.change(tmp_path / "package", "systemd/edged.service", "# of the next release\n")
    said = system.sh(INSTALL, code=1)
    assert "volum" in said
    assert system.sh("readlink /opt/edged/current") == first

    said = system.sh("/opt/edged/install.sh uninstall")
    assert system.changed() == {"etc/edged/edged.yaml"}
    assert "and the voices in /var/lib/edged" in said
    assert "kept: /etc/edged" in said


def test_what_is_asked_of_the_installer_is_answered(system: System) -> None:
    """Its help ends with a whole sentence, and a Python that is not there is not replaced by another."""
    told = system.sh("package/install.sh --help")
    assert told.rstrip().endswith("leaves the release that was there in service.")
    said = system.sh("package/install.sh --python /nonexistent", code=1)
    assert "--python /nonexistent is not Python" in said
    assert not [name for name in system.changed() if "releases" in name]


def test_a_damaged_package_and_one_for_another_machine_are_refused(system: System, tmp_path: Path) -> None:
    package = tmp_path / "package"
    damaged = package / "config/edged.yaml"
    text = damaged.read_text()
    damaged.unlink()  # a link
    damaged.write_text(text.replace("660", "666"))
    assert "damaged" in system.sh(INSTALL, code=1)
    damaged.write_text(text)
    sums = package / "SHA256SUMS"
    whole = sums.read_text()
    offline.change(package, "SHA256SUMS", "")  # a file of its own now, which is summed anew without itself
    sums.write_text("".join(whole.splitlines(keepends=True)[:-2]))
    assert whole.split()[-1] in system.sh(INSTALL, code=1)
    sums.write_text(whole)
    facts = (package / "package").read_text().splitlines()
    for fact, told in (
        ("arch=sparc64", "is for sparc64"),
        ("python=3.9", "is not Python 3.9"),
        ("glibc=2.99", "needs glibc 2.99"),
        ("room_mb=99999999", "free some space"),
    ):
        others = [line for line in facts if not line.startswith(fact.partition("=")[0])]
        offline.change(package, "package", "\n".join([*others, fact]) + "\n")
        assert told in system.sh(INSTALL, code=1)
    assert not [name for name in system.changed() if "releases" in name]


@pytest.mark.skipif(shutil.which("useradd") is None, reason="useradd is needed")
def test_purge_removes_the_services_account_and_no_other(system: System) -> None:
    system.sh("useradd --create-home edged")  # a person
    assert "kept" in system.sh("package/install.sh uninstall --purge")
    system.sh("getent passwd edged && userdel --remove edged")
    system.sh("useradd --system --user-group --home-dir /var/lib/edged edged && usermod -aG edged nobody")
    system.sh("package/install.sh uninstall --purge")
    system.sh("getent passwd edged", code=2)
    system.sh("getent group edged", code=2)
