"""edged as a service when something is wrong: it comes back, or says why it does not."""

from __future__ import annotations

import time

import pytest

from tests.service.edged import CONFIG, Edged

pytestmark = [pytest.mark.systemd, pytest.mark.timeout(600)]


def test_one_that_hangs_is_ended_and_started_again(edged: Edged) -> None:
    edged.drop_in("watchdog.conf", "[Service]\nWatchdogSec=3\n")
    edged.start()
    before = edged.pid
    edged.signal("STOP")
    edged.wait_for("NRestarts", "1")
    edged.wait_for("ActiveState", "active")
    assert edged.pid != before
    assert "Watchdog timeout" in edged.log
    assert "Thread 0x" in edged.log, "where each thread was"
    assert edged.speaks()


def test_one_that_works_is_left_alone_by_the_watchdog(edged: Edged) -> None:
    edged.drop_in("watchdog.conf", "[Service]\nWatchdogSec=4\n")
    edged.start()
    end = time.monotonic() + 9
    while time.monotonic() < end:
        assert edged.speaks()
    time.sleep(5)  # and idle
    assert edged.speaks()
    assert edged.show("NRestarts") == "0"


def test_a_damaged_voice_ends_in_failed_with_the_reason(edged: Edged) -> None:
    bundles = edged.machine.root / "var/lib/edged/bundles"
    edged.machine.run("cp", "-r", "/var/lib/edged/bundles/tone", "/var/lib/edged/bundles/broken")
    damaged = max((p for p in (bundles / "broken").rglob("*.onnx")), key=lambda path: path.stat().st_size)
    data = bytearray(damaged.read_bytes())
    data[len(data) // 2] ^= 1
    damaged.write_bytes(data)
    edged.configure("voices: {bundles: [broken]}\naudio: {enabled: false}\n")
    edged.drop_in("fast.conf", "[Service]\nRestartSec=50ms\n[Unit]\nStartLimitBurst=3\n")
    assert not edged.try_to_start()
    edged.wait_for("ActiveState", "failed")
    assert int(edged.show("NRestarts")) >= 2
    log = edged.log
    assert "cannot start" in log
    assert damaged.name in log
    assert "Start request repeated too quickly" in log
    edged.machine.run("rm", "-rf", "/var/lib/edged/bundles/broken")


def test_an_unreadable_configuration_fails_at_once_and_says_so(edged: Edged) -> None:
    edged.machine.run("chmod", "000", CONFIG)
    assert not edged.try_to_start()
    assert (edged.show("ActiveState"), edged.show("ExecMainStatus")) == ("failed", "2")
    assert edged.show("NRestarts") == "0"
    assert CONFIG in edged.log
    edged.machine.run("chmod", "644", CONFIG)
    edged.start()
    assert edged.speaks()


def test_every_mistake_in_the_configuration_is_in_the_journal(edged: Edged) -> None:
    edged.configure("audio: {volume: loud}\nvoices: {bundels: [tone]}\n")
    assert not edged.try_to_start()
    assert edged.show("NRestarts") == "0"
    assert f"{CONFIG}:1" in edged.log
    assert "bundles" in edged.log


def test_read_only_voices_are_enough(edged: Edged) -> None:
    edged.drop_in("read-only.conf", "[Service]\nReadOnlyPaths=/var/lib/edged\n")
    edged.start()
    assert edged.speaks()


def test_a_second_daemon_gives_way(edged: Edged) -> None:
    edged.start()
    serve = ["env", "RUNTIME_DIRECTORY=/run/edged", "edged", "serve"]
    second = edged.machine.run(*serve, user="edged", check=False)
    assert second.returncode == 1
    assert "already_running" in second.stderr
    assert edged.speaks()
    edged.machine.run("systemctl", "stop", "edged")


def test_beyond_its_memory_it_is_killed_and_comes_back(edged: Edged) -> None:
    if not edged.machine.limits_memory:
        pytest.skip("no memory controller that the machine may use")
    # The limit is put a little above what it has, and a long result does the rest. (Below what it has, a
    # control group of version 1 takes none.)
    edged.start()
    limit = int(edged.show("MemoryCurrent")) + (8 << 20)
    edged.machine.run("systemctl", "set-property", "--runtime", "edged", f"MemoryMax={limit}")
    edged.say("Line number four is running again. " * 140, timeout_s=10.0)
    edged.wait_for("NRestarts", "1")
    edged.machine.run("systemctl", "revert", "edged")
    edged.wait_for("ActiveState", "active")
    assert edged.speaks()
    assert "killed" in edged.log
