"""The service with faults made on purpose (`faults` of the configuration): each ends as the unit says."""

from __future__ import annotations

import json

import pytest

from tests.service.edged import Edged

pytestmark = [pytest.mark.systemd, pytest.mark.timeout(600)]

TONE = "voices: {bundles: [tone]}\naudio: {enabled: false}\n"


def test_a_step_that_never_ends_is_told_killed_and_started_again(edged: Edged) -> None:
    edged.configure(TONE + "faults: {stall_at_step: 2}\n")
    edged.drop_in("watchdog.conf", "[Service]\nWatchdogSec=4\n")
    edged.start()
    before = edged.pid
    assert edged.speaks()
    assert not edged.speaks()
    edged.wait_for("NRestarts", "1")
    edged.wait_for("ActiveState", "active")
    assert edged.pid != before
    log = edged.log
    assert "a thread is stuck in its round" in log
    assert "threads=engine" in log
    assert "Watchdog timeout" in log
    assert "faults.py" in log, "where the thread was"
    assert edged.speaks()


def test_crash_after_crash_ends_in_failed_with_the_reasons(edged: Edged) -> None:
    edged.configure(TONE + "faults: {crash_at_step: 1}\n")
    edged.drop_in("fast.conf", "[Service]\nRestartSec=50ms\n[Unit]\nStartLimitBurst=3\n")
    edged.start()
    for _ in range(6):
        if edged.show("ActiveState") == "failed":
            break
        edged.say(timeout_s=10.0)
        edged.wait_to_settle()
    assert (edged.show("ActiveState"), edged.show("Result")) == ("failed", "signal")
    log = edged.log
    assert log.count("step 1 crashes on purpose") == 3
    assert "Fatal Python error: Segmentation fault" in log
    assert "faults.py" in log, "where it was"
    assert "status=11/SEGV" in log
    assert "Start request repeated too quickly" in log


def test_a_leak_over_its_budget_makes_it_leave_and_come_back(edged: Edged) -> None:
    """It ends by itself, before the kernel would end it."""
    edged.start()
    budget_mb = round(2 * int(edged.show("MemoryCurrent")) / 1e6) + 100
    settings = f"service: {{memory_mb: {budget_mb}, over_budget_s: 2}}\nlimits: {{reply_mb: 1}}\n"
    edged.configure(TONE + settings + f"faults: {{leak_mb: {budget_mb}, leak_to_percent: 95}}\n")
    edged.machine.run("systemctl", "restart", "edged")
    edged.wait_for("NRestarts", "1")
    edged.configure(TONE + settings)
    edged.wait_to_settle()
    edged.machine.run("systemctl", "restart", "edged")
    log = edged.log
    assert "new jobs are refused" in log
    assert "memory stayed over the budget" in log
    assert "status=75/TEMPFAIL" in log
    assert "oom" not in log.lower()
    assert edged.speaks()


def test_a_leak_that_its_own_budget_does_not_see_ends_at_memory_max(edged: Edged) -> None:
    if not edged.machine.limits_memory:
        pytest.skip("no memory controller that the machine may use")
    edged.start()
    limit = int(edged.show("MemoryCurrent")) + (64 << 20)
    edged.configure(TONE + "service: {memory_mb: 100000}\nfaults: {leak_mb: 200}\n")
    edged.drop_in("limit.conf", f"[Service]\nMemoryMax={limit}\n")
    edged.machine.run("systemctl", "restart", "edged")
    edged.wait_for("NRestarts", "1")
    edged.configure(TONE)
    edged.wait_to_settle()
    edged.machine.run("systemctl", "restart", "edged")
    assert edged.speaks()
    assert "status=9/KILL" in edged.log or "oom-kill" in edged.log


def test_a_bundle_of_another_backend_is_refused_by_name(edged: Edged) -> None:
    _make_foreign(edged, "foreign")
    edged.configure("voices: {bundles: [foreign]}\naudio: {enabled: false}\n")
    edged.drop_in("fast.conf", "[Service]\nRestartSec=50ms\n[Unit]\nStartLimitBurst=2\n")
    assert not edged.try_to_start()
    edged.wait_for("ActiveState", "failed")
    log = edged.log
    assert "cannot start" in log
    assert "is built for 'openvino'; this version of edged runs onnxruntime, tensorrt only" in log
    assert "code=bundle_backend_mismatch" in log
    edged.machine.run("rm", "-rf", "/var/lib/edged/bundles/foreign")


def test_a_bundle_of_another_backend_is_not_installed_nor_does_it_silence_a_box(edged: Edged) -> None:
    """The command does not take it; put into use by hand, the version before speaks."""
    run, bundles = edged.machine.run, "/var/lib/edged/bundles"
    _make_foreign(edged, "foreign")
    run("cp", "-r", f"{bundles}/tone", "/tmp/kept")
    try:
        refused = run("edged", "bundle", "install", f"{bundles}/foreign", check=False)
        assert refused.returncode == 1
        assert "error [bundle_backend_mismatch]" in refused.stderr
        run("edged", "bundle", "install", "/tmp/kept")
        run("edged", "bundle", "activate", "--no-trial", "--no-reload", "tone")
        by_hand = "before=$(readlink tone); mv foreign tone-9-0123456789ab"
        by_hand += "; ln -sfn $before .tone.previous; ln -sfn tone-9-0123456789ab tone"
        run("sh", "-ec", f"cd {bundles}; {by_hand}")
        edged.start()
        assert edged.show("StatusText") == "ready: tone (tone-9-0123456789ab cannot be used)"
        assert edged.speaks()
        assert "code=bundle_backend_mismatch" in edged.log
    finally:
        run("systemctl", "stop", "edged")
        run("sh", "-c", f"cd {bundles} && rm -rf tone tone-* foreign .tone.* && mv /tmp/kept tone")


def _make_foreign(edged: Edged, name: str) -> None:
    """The voice tone, with a manifest that names a backend which is not here."""
    edged.machine.run("cp", "-r", "/var/lib/edged/bundles/tone", f"/var/lib/edged/bundles/{name}")
    path = edged.machine.root / f"var/lib/edged/bundles/{name}/manifest.json"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps({**manifest, "backend": "openvino"}))
