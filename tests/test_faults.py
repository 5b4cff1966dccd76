"""Real daemons with faults made on purpose: each is noticed, told, and ends as it should."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from edged.compiler import build
from edged.footprint import Footprint
from tests.daemon import Daemon, receive_until, running, send
from tests.notify import heard, manager

SENTENCE = "Pump four has stopped."
WITHIN_S = 60.0


@pytest.fixture(scope="module")
def budget_mb(tone_bundle: Path) -> int:
    """Of which a daemon with the tiny voice takes half before its first job."""
    with running(tone_bundle) as daemon:
        used = Footprint(proc=Path(f"/proc/{daemon.process.pid}")).measure().mb
    return round(2 * used)


def eventually(what: Any) -> Any:
    until = time.monotonic() + WITHIN_S
    while not (found := what()):
        assert time.monotonic() < until
        time.sleep(0.05)
    return found


def state(daemon: Daemon) -> str:
    return str(daemon.request({"op": "status"})["memory_state"])


def count(daemon: Daemon, text: str) -> int:
    return sum(text in line for line in daemon.log.splitlines())


# -- memory -------------------------------------------------------------------------------------


def test_a_leak_that_ends_below_the_limit_is_a_warning_and_no_more(tone_bundle: Path, budget_mb: int) -> None:
    faults = {"leak_mb": budget_mb, "leak_to_percent": 85}
    with running(tone_bundle, service={"memory_mb": budget_mb}, faults=faults) as daemon:
        eventually(lambda: state(daemon) == "high")
        time.sleep(4.0)
        status = daemon.request({"op": "status"})
        assert (status["state"], status["memory_state"]) == ("ready", "high")
        assert 0.80 < status["used_mb"] / budget_mb < 0.90
        assert daemon.request({"op": "synthesize", "text": SENTENCE})["event"] == "done"
        assert (count(daemon, "memory_high"), count(daemon, "code=over_budget")) == (1, 0)
        assert daemon.stop() == 0


def test_what_a_cache_holds_is_given_back_and_jobs_are_taken_again(tone_bundle: Path, budget_mb: int) -> None:
    faults = {"leak_mb": budget_mb, "leak_to_percent": 95, "leak_is_cache": True}
    with running(tone_bundle, service={"memory_mb": budget_mb}, faults=faults) as daemon:
        eventually(lambda: count(daemon, "new jobs are taken again"))
        eventually(lambda: state(daemon) == "ok")
        assert daemon.request({"op": "synthesize", "text": SENTENCE})["event"] == "done"
        assert count(daemon, "code=over_budget") == 1
        assert count(daemon, "memory trimmed") == 1


def test_a_lasting_leak_refuses_jobs_lets_the_live_ones_end_and_asks_for_a_restart(
    slow_bundle: Path, budget_mb: int
) -> None:
    faults = {"leak_mb": budget_mb, "leak_to_percent": 95}
    service = {"memory_mb": budget_mb, "over_budget_s": 3.0, "drain_s": 60.0}
    with running(slow_bundle, service=service, faults=faults) as daemon, daemon.socket() as live:
        long = " ".join(f"Line number {n} is running again." for n in range(8))
        send(live, op="synthesize", text=long, id="live", reply="events", stream=True)
        refused = eventually(lambda: _refusal(daemon))
        assert (refused["code"], refused["retryable"]) == ("over_budget", True)
        assert f"of {budget_mb} MB" in refused["message"]
        assert receive_until(live, "done", "cancelled", "failed", timeout_s=WITHIN_S)[-1]["event"] == "done"
        assert daemon.process.wait(WITHIN_S) == os.EX_TEMPFAIL
        assert count(daemon, "memory stayed over the budget") == 1
        assert "Traceback" not in daemon.log
        daemon.start()  # as systemd would
        assert daemon.request({"op": "synthesize", "text": SENTENCE})["event"] == "done"


def _refusal(daemon: Daemon) -> dict[str, Any] | None:
    reply = daemon.request({"op": "synthesize", "text": "ab"})
    return reply if reply["event"] == "failed" else None


def test_a_budget_without_room_to_work_in_starts_nothing(tone_bundle: Path, tmp_path: Path) -> None:
    config = tmp_path / "edged.yaml"
    config.write_text(
        f"audio: {{enabled: false}}\nlimits: {{reply_mb: 1}}\nservice: {{memory_mb: 32}}\n"
        f"voices: {{bundles: [{tone_bundle}]}}\nlisten: {{endpoint: 'ipc://{tmp_path}/s'}}\n"
    )
    command = [sys.executable, "-m", "edged", "serve", "--config", str(config)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 2
    assert "[memory_plan]" in result.stderr
    assert "raise service.memory_mb to" in result.stderr
    assert "Traceback" not in result.stderr


def test_voices_that_the_process_has_no_room_for_are_not_taken(
    tone_bundle: Path, tmp_path: Path, budget_mb: int
) -> None:
    faults = {"leak_mb": budget_mb, "leak_to_percent": 95}
    service = {"memory_mb": budget_mb, "over_budget_s": 0.0}
    with running(tone_bundle, service=service, limits={"reply_mb": 1}, faults=faults) as daemon:
        eventually(lambda: state(daemon) == "full")
        daemon.configure(voices={"bundles": [str(build("tone", tmp_path / "b", name="b"))]})
        reply = daemon.request({"op": "reload"})
        assert (reply["event"], reply["code"]) == ("failed", "restart_needed")
        assert [voice["name"] for voice in daemon.request({"op": "voices"})["voices"]] == ["tone"]


# -- the engine ---------------------------------------------------------------------------------


def test_a_stalled_step_ends_the_signs_of_life_and_a_signal_still_ends_it(tone_bundle: Path) -> None:
    with (
        manager(timeout_s=4.0) as (listener, prefix),
        running(tone_bundle, prefix=prefix, faults={"stall_at_step": 2}, service={"drain_s": 0.2}) as daemon,
        daemon.socket() as client,
    ):
        assert daemon.request({"op": "synthesize", "text": SENTENCE})["event"] == "done"
        heard(listener, 0.1)
        assert "WATCHDOG=1" in heard(listener, 8.0)
        send(client, op="synthesize", text=SENTENCE, reply="events")
        receive_until(client, "started")
        eventually(lambda: "a thread is stuck" in daemon.log)
        heard(listener, 0.5)
        assert "WATCHDOG=1" not in heard(listener, 5.0)
        assert "threads=engine" in daemon.log
        assert daemon.request({"op": "ping"})["event"] == "pong"
        assert daemon.stop() == 0
        assert receive_until(client, "cancelled", "failed")


def test_threads_of_voices_that_a_reload_brought_are_watched(tone_bundle: Path, tmp_path: Path) -> None:
    with (
        manager(timeout_s=4.0) as (_, prefix),
        running(tone_bundle, prefix=prefix, faults={"stall_at_step": 1}, service={"drain_s": 0.2}) as daemon,
        daemon.socket() as client,
    ):
        daemon.configure(voices={"bundles": [str(build("tone", tmp_path / "b", name="b"))]})
        assert daemon.request({"op": "reload"})["loaded"] == ["b"]
        send(client, op="synthesize", text=SENTENCE, reply="events")
        receive_until(client, "started")
        eventually(lambda: "a thread is stuck" in daemon.log)
        assert "threads=engine" in daemon.log
        assert daemon.stop() == 0


def test_a_crash_ends_the_process_by_its_signal(tone_bundle: Path) -> None:
    with running(tone_bundle, faults={"crash_at_step": 2}) as daemon:
        assert daemon.request({"op": "synthesize", "text": SENTENCE})["event"] == "done"
        with daemon.socket() as client:
            send(client, op="synthesize", text=SENTENCE)
            assert daemon.process.wait(WITHIN_S) == -signal.SIGSEGV
        daemon.start()
        assert daemon.request({"op": "synthesize", "text": SENTENCE})["event"] == "done"


def test_steps_that_go_on_failing_end_the_process_after_every_job_is_told(tone_bundle: Path) -> None:
    with running(tone_bundle, faults={"fail_from_step": 2}) as daemon:
        assert daemon.request({"op": "synthesize", "text": SENTENCE})["event"] == "done"
        for _ in range(5):
            reply = daemon.request({"op": "synthesize", "text": SENTENCE})
            assert (reply["event"], reply["code"]) == ("failed", "engine")
        assert daemon.process.wait(WITHIN_S) == 1


def test_faults_are_announced_and_none_are_made_unasked(tone_bundle: Path) -> None:
    said = "faults are made on purpose"
    with running(tone_bundle, faults={"crash_at_step": 1_000_000}) as daemon:
        assert count(daemon, said) == 1
    with running(tone_bundle) as daemon:
        assert count(daemon, said) == 0
