"""The service on a full disk: it goes on speaking, and what cannot be written leaves nothing half done."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.service.edged import Edged

pytestmark = [pytest.mark.systemd, pytest.mark.timeout(600)]

STATE = "/var/lib/edged"
SIZE_MB = 32


@pytest.fixture
def small(edged: Edged) -> Iterator[Edged]:
    """The service with a file system of its own for its state, and the voice tone on it."""
    run = edged.machine.run
    run("mkdir", "-p", "/tmp/aside")
    run("cp", "-r", f"{STATE}/bundles/tone", "/tmp/aside")
    run("mount", "-t", "tmpfs", "-o", f"size={SIZE_MB}m,mode=755", "small", STATE)
    run("mkdir", f"{STATE}/bundles")
    run("cp", "-r", "/tmp/aside/tone", f"{STATE}/bundles")
    run("chown", "-R", "edged:edged", STATE)
    yield edged
    run("systemctl", "stop", "edged")
    run("umount", STATE)


def _fill(edged: Edged) -> None:
    fill = f"dd if=/dev/zero of={STATE}/ballast bs=64k; dd if=/dev/zero of={STATE}/rest bs=1"
    edged.machine.run("sh", "-c", fill, check=False)
    assert edged.machine.run("sh", "-c", f"echo x > {STATE}/proof", check=False).returncode != 0, "it is full"


def _listing(edged: Edged) -> str:
    """Of the bundles, but for the lock that the first command leaves."""
    found = edged.machine.run("find", f"{STATE}/bundles/", "-type", "f", "-printf", "%P %s %m\n").stdout
    return "".join(sorted(line for line in found.splitlines(True) if ".store.lock" not in line))


def test_it_speaks_on_a_full_disk_and_starts_on_one(small: Edged) -> None:
    small.configure(
        "voices: {bundles: [tone]}\naudio: {enabled: false}\n"
        f"stats: {{prometheus_file: {STATE}/edged.prom, prometheus_file_s: 1}}\n"
    )
    small.start()
    _fill(small)
    assert small.speaks()
    small.machine.run("sleep", "2")  # two statistics that cannot be written
    assert small.speaks()
    small.machine.run("systemctl", "restart", "edged")
    assert small.speaks()
    assert small.show("NRestarts") == "0"
    assert small.log.count("No space left on device") in (1, 2), "told once a life, not once a second"
    small.machine.run("rm", f"{STATE}/ballast")
    small.machine.run("sleep", "2")
    assert (small.machine.root / "var/lib/edged/edged.prom").is_file()


def test_a_bundle_that_has_no_room_is_refused_and_leaves_nothing(small: Edged) -> None:
    small.start()
    _fill(small)
    before = _listing(small)
    refused = small.machine.run("edged", "bundle", "install", "/tmp/aside/tone", check=False)
    assert refused.returncode == 1
    assert "error [bundle]: " in refused.stderr
    assert "more room than the disk has" in refused.stderr
    assert _listing(small) == before
    assert small.speaks()
    assert small.machine.run("edged", "bundle", "verify", "tone").returncode == 0
    small.machine.run("sh", "-c", f"rm {STATE}/ballast {STATE}/rest")
    assert small.machine.run("edged", "bundle", "install", "/tmp/aside/tone").returncode == 0
    assert small.machine.run("edged", "bundle", "activate", "tone").returncode == 0
    assert small.speaks()
