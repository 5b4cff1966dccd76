"""One machine for all the tests here, with edged installed; each test begins with a fresh service."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import bundles
from tests.service.edged import Edged
from tests.service.machine import Machine, why_not
from tests.service.rootfs import Unavailable

WORK = 120  # a sentence of the voice slow takes some hundredths of a second


@pytest.fixture(scope="session")
def machine() -> Iterator[Machine]:
    """Booted, with edged, the voices tone and slow, and the users alice, who may speak, and bob."""
    reason = why_not()
    if reason:
        pytest.skip(reason)
    outside = Path(tempfile.mkdtemp(prefix="edged-machine-"))
    outside.chmod(0o755)
    try:
        machine = Machine("test", outside)
    except Unavailable as exc:
        shutil.rmtree(outside)
        pytest.skip(str(exc))
    try:
        for name, bundle in (("tone", bundles.tone()), ("slow", bundles.tone(work=WORK))):
            shutil.copytree(bundle, machine.root / "var/lib/edged/bundles" / name)
        machine.run("chmod", "-R", "a+rX", "/var/lib/edged/bundles")
        users = ('u alice 1000 "" /home/alice', "m alice edged", 'u bob - "" /home/bob')
        machine.run("systemd-sysusers", "--inline", *users)
        for user in ("alice", "bob"):
            machine.run("install", "-d", "-o", user, "-g", user, f"/home/{user}")
        yield machine
    finally:
        machine.halt()
        shutil.rmtree(outside)


@pytest.fixture
def edged(machine: Machine) -> Iterator[Edged]:
    """The service, stopped, with the voice tone; what a test changes of it is taken back."""
    service = Edged(machine)
    service.reset()
    yield service
    service.reset()
