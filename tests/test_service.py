"""Start, stop and restart of the real process."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
import wave
from pathlib import Path

import pytest

from edged.compiler import build
from tests import bundles
from tests.daemon import receive, receive_until, running, send

LONG = " ".join(f"Line number {n} is running again." for n in range(40))
SENTENCE = "Pump four has stopped."


def serve(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Another `edged serve`, for as long as it lives by itself."""
    return subprocess.run(
        [sys.executable, "-m", "edged", "serve", *arguments],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        cwd=cwd,
    )


def test_sigterm_lets_live_jobs_end_and_refuses_new_ones(slow_bundle: Path) -> None:
    with running(slow_bundle) as daemon, daemon.socket() as socket:
        for number in range(3):
            send(socket, op="synthesize", text=LONG[:160], id=f"live{number}", reply="events")
        accepted = 0
        while accepted < 3:
            accepted += receive(socket)["event"] == "accepted"
        daemon.process.send_signal(signal.SIGTERM)
        while daemon.request({"op": "status"})["state"] != "draining":
            pass
        refused = daemon.request({"op": "synthesize", "text": SENTENCE})
        assert (refused["code"], refused["retryable"]) == ("shutting_down", True)
        ended = [receive_until(socket, "done", "cancelled", "failed")[-1] for _ in range(3)]
        assert {e["id"] for e in ended} == {"live0", "live1", "live2"}
        assert {e["event"] for e in ended} == {"done"}
        assert daemon.process.wait(10) == 0
        assert not Path(daemon.endpoint.removeprefix("ipc://")).exists()


def test_a_client_that_is_slow_to_read_still_gets_its_result(tmp_path: Path) -> None:
    """Several times what the kernel holds of a connection; the client sleeps until the daemon has ended its
    work, as on a busy machine."""
    with running(bundles.tone(work=40)) as daemon:
        wav = tmp_path / "long.wav"
        command = [sys.executable, "-m", "edged", "--endpoint", daemon.endpoint, "say", "--out", str(wav)]
        with subprocess.Popen([*command, LONG], stderr=subprocess.PIPE, text=True) as client:
            while not daemon.request({"op": "status"})["jobs"]:
                assert client.poll() is None, "the job was over too soon"
            client.send_signal(signal.SIGSTOP)
            daemon.process.send_signal(signal.SIGTERM)
            until = time.monotonic() + 60  # one that is stopped must not be left to its context, which waits
            while "job done" not in daemon.log and time.monotonic() < until:
                time.sleep(0.02)
            time.sleep(1.5)
            client.send_signal(signal.SIGCONT)
            error = client.communicate(timeout=30)[1]
        assert (client.returncode, error) == (0, "")
        assert daemon.process.wait(10) == 0
        with wave.open(str(wav)) as audio:
            assert audio.getnframes() * audio.getsampwidth() + 44 == wav.stat().st_size > 2 << 20


def test_one_that_does_not_read_holds_the_exit_for_a_time_only() -> None:
    with running(bundles.tone(work=40), service={"drain_s": 2.0}) as daemon:
        command = [sys.executable, "-m", "edged", "--endpoint", daemon.endpoint, "say", "--out", "/dev/null"]
        with subprocess.Popen([*command, "--format", "wav", LONG], stderr=subprocess.DEVNULL) as client:
            while not daemon.request({"op": "status"})["jobs"]:
                assert client.poll() is None, "the job was over too soon"
            client.send_signal(signal.SIGSTOP)
            assert daemon.stop(timeout_s=30) == 0
            client.kill()


def test_jobs_beyond_the_drain_deadline_are_cancelled_and_told(slow_bundle: Path) -> None:
    with running(slow_bundle, service={"drain_s": 0.3}) as daemon, daemon.socket() as socket:
        send(socket, op="synthesize", text=LONG, id="endless", reply="events", stream=True)
        receive_until(socket, "started")
        begin = time.monotonic()
        assert daemon.stop(signal.SIGTERM) == 0
        assert time.monotonic() - begin < 4.0
        assert receive_until(socket, "cancelled", "done")[-1]["event"] == "cancelled"


def test_at_a_fault_live_jobs_are_told_to_have_failed(tone_bundle: Path) -> None:
    """Nobody cancelled them, and they may be sent again."""
    limits = {"jobs": 64, "jobs_per_client": 64}
    with (
        running(tone_bundle, faults={"fail_from_step": 100}, limits=limits) as daemon,
        daemon.socket() as socket,
    ):
        for number in range(60):
            send(socket, op="synthesize", text=LONG, id=str(number), reply="final")
        ended = [receive_until(socket, "cancelled", "done", "failed")[-1] for _ in range(60)]
        assert {event["event"] for event in ended} <= {"done", "failed"}
        given_up = [event for event in ended if event.get("code") == "internal"]
        assert given_up
        assert all(event["retryable"] for event in given_up)
        assert daemon.process.wait(10) == 1


def test_a_second_sigint_forces_the_end(slow_bundle: Path) -> None:
    with running(slow_bundle, service={"drain_s": 60.0}) as daemon, daemon.socket() as socket:
        send(socket, op="synthesize", text=LONG, reply="events", stream=True)
        receive_until(socket, "started")
        daemon.process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        assert daemon.process.poll() is None, "the first SIGINT must drain"
        begin = time.monotonic()
        assert daemon.stop(signal.SIGINT) == 130
        assert time.monotonic() - begin < 1.0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_that_its_parent_blocked_are_heard(tone_bundle: Path, number: signal.Signals) -> None:
    blocking = (
        "import os, signal, sys; signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals()); "
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    with running(tone_bundle, prefix=[sys.executable, "-c", blocking]) as daemon:
        assert daemon.stop(number, timeout_s=10) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_it_restarts_on_the_same_socket_and_waiting_clients_reconnect(
    tone_bundle: Path, number: signal.Signals
) -> None:
    with running(tone_bundle) as daemon, daemon.socket() as socket:
        send(socket, op="ping", id="1")
        assert receive(socket)["id"] == "1"
        daemon.stop(number)
        daemon.start()
        send(socket, op="synthesize", text=SENTENCE, id="2")
        assert receive(socket)["event"] == "done"


def test_a_second_daemon_on_the_socket_is_refused_and_harms_nothing(tone_bundle: Path) -> None:
    with running(tone_bundle) as daemon:
        second = serve("--config", str(daemon.config))
        assert second.returncode == 1
        assert "already_running" in second.stderr
        assert "Traceback" not in second.stderr
        assert daemon.request({"op": "synthesize", "text": SENTENCE})["event"] == "done"


def test_the_socket_has_the_configured_mode(tone_bundle: Path) -> None:
    for mode in ("660", "600"):
        with running(tone_bundle, listen={"mode": mode}) as daemon:
            for address in (daemon.endpoint, daemon.events):
                found = stat.S_IMODE(os.stat(address.removeprefix("ipc://")).st_mode)
                assert found == int(mode, 8)


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["--bundle", "no-such-voice"], "bundle_missing", "no-such-voice"),
        (["--endpoint", "ipc:///proc/nonexistent/edged.sock", "--bundle", "TONE"], "config", "nonexistent"),
        (["--endpoint", "ipc:///tmp/" + "x" * 120, "--bundle", "TONE"], "config", "107"),
        (["--config", "/no/such/file.yaml"], "config", "/no/such/file.yaml"),
    ],
)
def test_it_says_why_it_cannot_start(
    tone_bundle: Path, tmp_path: Path, arguments: list[str], code: str, says: str
) -> None:
    arguments = [str(tone_bundle) if a == "TONE" else a for a in arguments]
    if "--endpoint" not in arguments:
        arguments += ["--endpoint", f"ipc://{tmp_path}/edged.sock"]
    result = serve(*arguments)
    assert result.returncode == {"config": 2, "bundle_missing": 6}[code]
    assert says in result.stderr
    assert f"[{code}]" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_damaged_bundle_is_refused_before_anything_is_served(tone_bundle: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged"
    subprocess.run(["cp", "-r", str(tone_bundle), str(damaged)], check=True)
    engine = damaged / "engines" / "tone.onnx"
    data = bytearray(engine.read_bytes())
    data[len(data) // 2] ^= 0xFF
    engine.write_bytes(data)
    result = serve("--endpoint", f"ipc://{tmp_path}/s", "--bundle", str(damaged))
    assert result.returncode == 1
    assert "bundle_hash_mismatch" in result.stderr
    assert not (tmp_path / "s").exists()


def test_a_bundle_in_the_working_directory_is_found_by_its_bare_name(tmp_path: Path) -> None:
    (tmp_path / "b4").mkdir()
    (tmp_path / "b4" / "manifest.json").write_text("{}")
    result = serve("--endpoint", f"ipc://{tmp_path}/s", "--bundle", "b4", cwd=tmp_path)
    assert "[bundle_manifest_invalid]: b4/manifest.json" in result.stderr
    (tmp_path / "b4" / "manifest.json").unlink()  # any other folder does not hide a bundle that is installed
    result = serve("--endpoint", f"ipc://{tmp_path}/s", "--bundle", "b4", cwd=tmp_path)
    assert "[bundle_missing]: voice bundle 'b4' is not installed" in result.stderr


def test_two_bundles_serve_side_by_side_and_the_first_is_the_default(
    tone_bundle: Path, tmp_path: Path
) -> None:
    other = build("tone", tmp_path / "low", name="low", rate=16_000)
    with running(tone_bundle, other) as daemon:
        voices = daemon.request({"op": "voices"})["voices"]
        assert [(v["name"], v["default"]) for v in voices] == [("tone", True), ("low", False)]
        for voice, rate in (("tone", 24_000), ("low", 16_000), ("", 24_000)):
            reply = daemon.request({"op": "synthesize", "text": SENTENCE, "voice": voice})
            assert reply["sample_rate"] == rate


def test_idle_it_sleeps(tone_bundle: Path) -> None:
    """No polling: an idle daemon on a battery-powered box must not wake up, nor for silent clients."""
    with running(tone_bundle) as daemon:
        clients = [daemon.socket() for _ in range(30)]
        for client in clients:
            send(client, op="ping")
            receive(client)
            time.sleep(0.02)  # so that no two of them are in step
        time.sleep(0.5)

        def switches() -> int:
            total = 0
            for task in Path(f"/proc/{daemon.process.pid}/task").iterdir():
                for line in (task / "status").read_text().splitlines():
                    if line.startswith("voluntary_ctxt_switches"):
                        total += int(line.split()[1])
            return total

        before = switches()
        time.sleep(2.0)
        assert (switches() - before) / 2.0 <= 20


@pytest.mark.parametrize(
    "numbers", [("SIGHUP", "SIGTERM"), ("SIGTERM", "SIGHUP"), ("SIGHUP", "SIGTERM", "SIGHUP")]
)
def test_signals_that_come_together_are_not_lost(tone_bundle: Path, numbers: tuple[str, ...]) -> None:
    for _ in range(3):
        with running(tone_bundle) as daemon:
            for number in numbers:
                daemon.process.send_signal(getattr(signal, number))
            assert daemon.process.wait(10) == 0


def test_every_accepted_job_is_told_its_ending_at_a_stop_under_load(slow_bundle: Path) -> None:
    with running(slow_bundle, service={"drain_s": 0.2}, limits={"jobs_per_client": 64}) as daemon:
        sockets = [daemon.socket() for _ in range(4)]
        for number in range(12):
            for socket in sockets:
                send(socket, op="synthesize", text=LONG, id=str(number), reply="events", stream=True)
        for socket in sockets:
            receive_until(socket, "accepted")
        daemon.process.send_signal(signal.SIGTERM)
        for socket in sockets:
            accepted, ended = {"0"}, []
            while len(ended) < 12:
                event = receive(socket)
                if event["event"] == "accepted":
                    accepted.add(event["id"])
                elif event["event"] in ("done", "cancelled", "failed"):
                    ended.append(event["id"])
            assert sorted(ended, key=int) == [str(n) for n in range(12)]
            socket.close()
        assert daemon.process.wait(10) == 0


def test_clients_are_told_that_it_is_still_starting(hibari_bundle: Path) -> None:
    from tests.daemon import Daemon

    states = []
    wait_ready = Daemon.wait_ready

    def watch(self: Daemon) -> None:
        until = time.monotonic() + 30
        while time.monotonic() < until:
            try:
                states.append(self.request({"op": "status"}, timeout_s=0.2)["state"])
                if states[-1] == "starting":
                    for header in (
                        {"op": "synthesize", "text": SENTENCE},
                        {"op": "control", "do": "pause", "scope": "all"},
                        {"op": "cancel", "scope": "all"},
                    ):
                        reply = self.request(header, timeout_s=5)
                        states.append(reply.get("code", reply["event"]))
            except TimeoutError:
                continue
            if states[-1] == "ready":
                return

    Daemon.wait_ready = watch  # type: ignore[method-assign]
    try:
        with running(hibari_bundle):
            pass
    finally:
        Daemon.wait_ready = wait_ready  # type: ignore[method-assign]
    assert states[0] == "starting"
    assert states[1] in ("starting", "done")
    assert "internal" not in states


def test_an_ordinary_file_is_never_taken_for_a_socket(tone_bundle: Path, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("data")
    for endpoint in (f"ipc://{precious}", "tcp://127.0.0.1:45671", "ipc://relative"):
        result = serve("--endpoint", endpoint, "--bundle", str(tone_bundle))
        assert result.returncode == 2
        assert "Traceback" not in result.stderr
    assert precious.read_text() == "data"
    assert [p.name for p in tmp_path.iterdir()] == ["precious"]


def test_a_stopping_daemon_leaves_its_successors_socket_alone(tone_bundle: Path) -> None:
    with running(tone_bundle) as first:
        for lock in first.directory.glob("*.lock"):
            lock.unlink()
        second = subprocess.Popen([sys.executable, "-m", "edged", "serve", "--config", str(first.config)])
        try:
            until = time.monotonic() + 20
            while first.request({"op": "status"})["pid"] != second.pid:
                assert time.monotonic() < until
                time.sleep(0.05)
            first.stop()
            assert first.request({"op": "status"})["pid"] == second.pid
        finally:
            second.terminate()
            second.wait(10)


def test_a_log_that_nobody_reads_stops_nobody(tone_bundle: Path) -> None:
    blocked, write = os.pipe()
    prefix = ["bash", "-c", f'exec "$@" 2>&{write}', "--"]
    with running(tone_bundle, prefix=prefix, pass_fds=(write,)) as daemon:
        os.close(write)
        for _ in range(600):
            assert daemon.request({"op": "synthesize", "text": "ab"})["event"] == "done"
        assert daemon.stop() == 0
    os.close(blocked)
