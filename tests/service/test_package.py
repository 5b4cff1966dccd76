"""The offline package and the .deb on a machine with systemd and without a network, as README.md says."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests import package as offline
from tests.pulse import PulseServer, wait_until, why_not
from tests.service import machine as machines
from tests.service.machine import Machine
from tests.service.rootfs import Unavailable, cached, python

pytestmark = [pytest.mark.systemd, pytest.mark.timeout(600)]

SENTENCE = "Door three is open."
CURRENT = "/opt/edged/current"
DROP_IN = f"{CURRENT}/share/edged/systemd/drop-ins/desktop-sound.conf"
ADMINISTRATORS = "/etc/systemd/system/edged.service.d"
# Not of the installation: what was copied here, the log, and what users have.
OTHERS = ("/root/", "/proc/", "/sys/", "/run/", "/tmp/", "/home/", "/var/log/", "/srv/", ADMINISTRATORS)


class Box:
    """A machine on which nothing of edged is installed, and the users alice and bob."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        machine.run("useradd", "--uid", "1000", "--create-home", "alice")
        machine.run("useradd", "--create-home", "bob")

    def sh(self, script: str, user: str = "", code: int = 0) -> str:
        """Runs a script, which must end with `code`; what it said."""
        done = self.machine.run("sh", "-c", script, user=user, check=False, timeout_s=300.0)
        said = done.stdout + done.stderr
        assert done.returncode == code, f"{script}: ended with {done.returncode}\n{said[-3000:]}"
        return said

    def install(self, package: Path, code: int = 0) -> str:
        """Copied there and installed."""
        self.put(package)
        return self.sh("cd /root/package && ./install.sh", code=code)

    def put(self, package: Path) -> None:
        place = self.machine.root / "root" / "package"
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(package, place)

    def speaks(self, version: str = "") -> None:
        """The service, to alice; it is of that version."""
        assert self.sh("systemctl is-active edged").strip() == "active"
        told = json.loads(self.sh("edged status --json", user="alice"))
        assert told["version"] == (version or told["version"])
        self.sh(f'cd && edged say --out /tmp/spoken.wav "{SENTENCE}"', user="alice")
        assert (self.machine.root / "tmp/spoken.wav").read_bytes()[:4] == b"RIFF"

    def left(self) -> list[str]:
        """Files, also of the service's user, whose names tell that they are of edged."""
        user = "-o -user edged" if self.machine.run("id", "edged", check=False).returncode == 0 else ""
        found = self.sh(f"find / -xdev \\( -path '*edged*' {user} -o -nouser \\) ! -type d").splitlines()
        return [path for path in found if not path.startswith(OTHERS)]


@pytest.fixture(scope="module")
def box() -> Iterator[Box]:
    if reason := machines.why_not():
        pytest.skip(reason)
    outside = Path(tempfile.mkdtemp(prefix="edged-box-"))
    outside.chmod(0o755)
    try:
        there = python(cached())
        if there != f"{sys.version_info[0]}.{sys.version_info[1]}":
            pytest.skip(f"the package is for the Python of the tests, the machine has {there}")
        machine = Machine("box", outside, installed=False)
    except Unavailable as exc:
        pytest.skip(str(exc))
    try:
        yield Box(machine)
    finally:
        machine.halt()
        shutil.rmtree(outside)


def test_install_speak_upgrade_roll_back_uninstall(box: Box, tmp_path: Path) -> None:
    package, sh = offline.unpacked(), box.sh
    assert sh("cat /proc/net/dev").count(":") == 1  # the loopback device alone
    said = box.install(package)
    assert "usermod -aG edged" in said  # what is to be done next
    sh(f'cd && edged say --out /tmp/no.wav "{SENTENCE}"', user="bob", code=3)
    sh("usermod -aG edged alice")
    box.speaks()
    assert sh("systemctl is-enabled edged").strip() == "enabled"
    first = sh(f"readlink {CURRENT}")
    process = sh("systemctl show edged -p MainPID")
    box.install(package)  # again: it goes on as it is
    assert sh("systemctl show edged -p MainPID") == process

    sh("sed -i 's/  jobs: 64/  jobs: 65/' /etc/edged/edged.yaml")
    second = offline.copy(package, tmp_path / "second")
    offline.upgrade(second, "9.0.0")
    box.install(second)
    box.speaks("9.0.0")
    assert "jobs: 65" in sh("cat /etc/edged/edged.yaml")

    sh("/opt/edged/install.sh rollback")
    assert sh(f"readlink {CURRENT}") == first
    box.speaks()
    assert "jobs: 65" in sh("cat /etc/edged/edged.yaml")

    third = offline.copy(second, tmp_path / "third")  # its daemon ends before it is ready
    offline.change(third, "systemd/edged.service", _unready((third / "systemd/edged.service").read_text()))
    said = box.install(third, code=1)
    assert "no engine here" in said, "the reason, from the journal"
    assert f"{Path(first.strip()).name} is in service as before" in said
    assert sh(f"readlink {CURRENT}") == first
    box.speaks()
    assert "9.0.0" in sh("readlink /opt/edged/previous"), "what never worked is not to be rolled back to"

    sh("/opt/edged/install.sh uninstall")
    assert box.left() == ["/etc/edged/edged.yaml"]
    assert "jobs: 65" in sh("cat /etc/edged/edged.yaml")
    assert "edged" not in sh("systemctl list-unit-files; journalctl --list-catalog")


# The terminal is closed while the service starts.
HANG_UP = """
cd /root/package
./install.sh &
until [ "$(systemctl show edged -p ActiveState --value)" = activating ]; do sleep 0.1; done
kill -TERM $!
wait $!
"""
# The power fails between the switch of the link and the restart.
CUT = """
mkdir -p /root/cut
printf '#!/bin/sh\\nkill -KILL $PPID\\n' > /root/cut/systemctl
chmod +x /root/cut/systemctl
cd /root/package
PATH=/root/cut:$PATH ./install.sh
"""


def test_an_interrupted_upgrade_is_made_good_by_the_next_run(box: Box, tmp_path: Path) -> None:
    package, sh = offline.unpacked(), box.sh
    box.install(package)
    sh("usermod -aG edged alice")
    first = sh(f"readlink {CURRENT}")

    second = offline.copy(package, tmp_path / "second")
    offline.upgrade(second, "9.0.0")
    box.put(second)
    sh(CUT, code=137)
    sh("cd /root/package && ./install.sh")
    box.speaks("9.0.0")
    assert sh("readlink /opt/edged/previous") == first

    bad = offline.copy(package, tmp_path / "bad")
    unit = (bad / "systemd/edged.service").read_text()
    offline.change(bad, "systemd/edged.service", _unready(unit, "sleep 10; exit 1"))
    box.put(bad)
    sh(HANG_UP, code=143)
    assert "9.0.0" not in sh(f"readlink {CURRENT}")
    said = sh("cd /root/package && ./install.sh", code=1)
    assert "is in service as before" in said
    box.speaks("9.0.0")
    assert sh("readlink /opt/edged/previous") == first

    sh(HANG_UP, code=143)
    sh("/opt/edged/install.sh rollback")
    box.speaks("9.0.0")
    sh("/opt/edged/install.sh uninstall --purge")
    assert box.left() == []


def _unready(unit: str, script: str = "echo no engine here; exit 1") -> str:
    lines = unit.splitlines(keepends=True)
    start = f"ExecStart=/bin/sh -c '{script}'\n"
    return "".join(start if line.startswith("ExecStart=") else line for line in lines)


@pytest.fixture
def sound(box: Box) -> Iterator[PulseServer]:
    """Alice's sound server, where that of her session would be."""
    if reason := why_not():
        pytest.skip(reason)
    server = PulseServer(box.machine.sound)
    server.start()
    box.sh("systemctl start user@1000.service")
    box.sh(
        "mkdir -p /run/user/1000/pulse && ln -sf /srv/sound/pulse.sock /run/user/1000/pulse/native", "alice"
    )
    yield server
    server.stop()


@pytest.mark.audio
def test_the_debian_package_installs_plays_and_is_purged(box: Box, sound: PulseServer) -> None:
    debs = list(offline.built().glob("*.deb"))
    if not debs:
        pytest.skip("dpkg-deb is not installed")
    sh = box.sh
    shutil.copy(debs[0], box.machine.root / "root/edged.deb")
    sh("rm -rf /etc/edged; dpkg -i /root/edged.deb")
    assert "/usr/lib/systemd/system/edged.service" in sh("cat /opt/edged/.files")
    sh("usermod -aG edged alice")
    box.speaks()
    sh(f"install -D -m 644 {DROP_IN} {ADMINISTRATORS}/desktop-sound.conf")  # as the file says
    sh("systemctl daemon-reload && systemctl restart edged")
    with sound.record() as recording:
        sh(f'cd && edged say "{SENTENCE}"', user="alice")
        wait_until(lambda: np.abs(recording.samples).max(initial=0) > 0.01, what="a sound")
    healthy = json.loads(sh("cd && XDG_RUNTIME_DIR=/run/user/1000 edged doctor --json", user="alice"))
    assert {check["state"] for check in healthy["checks"]} <= {"ok", "skipped"}, healthy
    voice = "/var/lib/edged/bundles/mine/data/speakers.json"  # as someone has enrolled
    sh(f"mkdir -p {voice.rpartition('/')[0]} && touch {voice}")
    said = sh("dpkg -r edged")
    assert "kept: /var/lib/edged" in said
    left = {path for path in box.left() if "/dpkg/" not in path}
    assert {"/etc/edged/edged.yaml", voice} <= left
    assert not [path for path in left if path.startswith(("/opt", "/usr"))]
    sh("dpkg -P edged")
    assert box.left() == []
    sh("getent group edged", code=2)
