"""systemd/: the files by themselves, as systemd's own tools judge them; nothing is booted."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.service.rootfs import ROOT

FILES = ROOT / "systemd"
UNIT = FILES / "edged.service"
DROP_INS = sorted((FILES / "drop-ins").glob("*.conf"))
MOST_EXPOSED = 2.0  # of 10

pytestmark = [
    pytest.mark.systemd,
    pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="not installed: systemd-analyze"),
]


def version() -> int:
    told = subprocess.run(["systemctl", "--version"], capture_output=True, text=True, check=True).stdout
    return int(told.split()[1])


def installed(directory: Path, *drop_ins: Path) -> Path:
    """The unit as on a machine, with a command that is there on this one."""
    unit = directory / UNIT.name
    unit.write_text(UNIT.read_text().replace("ExecStart=/opt/edged/bin/edged", "ExecStart=/bin/true"))
    for drop_in in drop_ins:
        folder = directory / f"{UNIT.name}.d"
        folder.mkdir(exist_ok=True)
        shutil.copy(drop_in, folder)
    return unit


def complaints(unit: Path) -> str:
    """`verify` ends with 0 for a key that systemd does not know: what it says counts."""
    search = {**os.environ, "SYSTEMD_UNIT_PATH": f"{unit.parent}:/lib/systemd/system:/usr/lib/systemd/system"}
    verify = ["systemd-analyze", "verify", "--man=no", str(unit)]
    said = subprocess.run(verify, capture_output=True, text=True, env=search, check=False).stderr
    return "\n".join(line for line in said.splitlines() if "edged" in line)


def test_the_unit_has_no_mistakes(tmp_path: Path) -> None:
    assert complaints(installed(tmp_path)) == ""


@pytest.mark.parametrize("drop_in", DROP_INS, ids=lambda path: path.name)
def test_no_drop_in_has_mistakes(drop_in: Path, tmp_path: Path) -> None:
    needed = re.search(r"systemd (\d+) or later", drop_in.read_text())
    if needed and version() < int(needed[1]):
        pytest.skip(f"for systemd {needed[1]}, this one is {version()}")
    assert complaints(installed(tmp_path, drop_in)) == ""


def test_a_mistake_would_be_found(tmp_path: Path) -> None:
    unit = installed(tmp_path)
    unit.write_text(unit.read_text().replace("PrivateTmp=", "PrivateTemp="))
    assert "PrivateTemp" in complaints(unit)


def test_it_exposes_little() -> None:
    judge = ["systemd-analyze", "security", "--offline=true", f"--threshold={MOST_EXPOSED * 10:.0f}"]
    result = subprocess.run([*judge, str(UNIT)], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
