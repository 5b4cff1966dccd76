"""`edged bundle activate` and its like as real processes: what they tell, and when."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from edged.store import Store
from edged.store_install import install
from tests import bundles


@pytest.fixture
def place(tmp_path: Path) -> Store:
    made = Store(tmp_path / "bundles")
    install(made, bundles.tone())
    return made


def shell(place: Store, line: str) -> subprocess.CompletedProcess[str]:
    """EDGED stands for the command."""
    line = line.replace("EDGED", f"{shlex.quote(sys.executable)} -m edged")
    environment = {**os.environ, "EDGED_BUNDLES": str(place.directory), "EDGED_CONFIG": "/dev/null"}
    environment["PYTHONUNBUFFERED"] = "1"
    return subprocess.run(
        ["bash", "-c", line], capture_output=True, text=True, env=environment, timeout=60, check=False
    )


ACTIVATE = "EDGED bundle activate --no-trial --no-reload tone"


def test_nothing_has_changed_is_told(place: Store) -> None:
    (version,) = place.versions()
    first = shell(place, ACTIVATE)
    assert f"tone: {version.path.name} is in use, nothing before" in first.stdout, first.stderr
    assert f"tone: {version.path.name} was in use already" in shell(place, ACTIVATE).stdout


def test_a_reader_that_is_gone_is_no_matter_of_the_disk(place: Store) -> None:
    for options in ("", "--json"):
        told = shell(place, f"{ACTIVATE} {options} | exec true")
        assert told.stderr == ""
        assert place.current("tone")
    full = shell(place, f"{ACTIVATE} >/dev/full")
    assert "[system]: No space left on device\n  standard output\n" in full.stderr


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_is_no_bundle_in_the_place_of_the_link_is_named(place: Store, kind: str) -> None:
    path = place.directory / "tone"
    path.write_text("") if kind == "file" else path.mkdir()
    refused = shell(place, ACTIVATE)
    assert refused.returncode == 1
    assert f"rm -r {path}" in refused.stderr
    assert "Traceback" not in refused.stderr
    subprocess.run(["rm", "-r", str(path)], check=True)
    assert shell(place, ACTIVATE).returncode == 0


@pytest.mark.parametrize("command", ["top", "stats --watch", "doctor --no-tone"])
def test_a_closed_stdout_is_no_traceback(place: Store, command: str) -> None:
    told = shell(place, f"timeout -s INT 5 EDGED {command} --endpoint ipc://{place.directory}/x >&-")
    assert "Traceback" not in told.stderr
