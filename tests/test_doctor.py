"""`edged doctor` as a real process: a well machine, and one fault at a time with its remedy."""

from __future__ import annotations

import grp
import importlib.util
import json
import os
import pwd
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
import zmq

from edged import protocol
from edged.client import Client
from edged.doctor import daemon as speaking
from edged.doctor import machine, setup, unit
from edged.doctor.findings import Case, Finding, run
from edged.doctor.sound import TONE_LEVEL, TONE_S, beep
from edged.errors import BundleMissing, ConfigError, InternalError, NoDaemon, codes
from edged.settings import Service, Settings, Voices
from tests.daemon import Daemon, running
from tests.pulse import RATE, PulseServer, find, pulse, pulse_server, wait_until

__all__ = ["pulse", "pulse_server"]


def doctor(*args: str, **env: str) -> tuple[int, dict[str, dict[str, Any]], str]:
    """Exit code, the findings by name (the last of a name), and what stands on stderr."""
    command = [sys.executable, "-m", "edged", "doctor", "--json", *args]
    environment = {k: v for k, v in os.environ.items() if k not in ("EDGED_ENDPOINT", "EDGED_CONFIG")}
    done = subprocess.run(
        command, capture_output=True, text=True, env={**environment, **env}, timeout=60, check=False
    )
    assert "Traceback" not in done.stderr
    told = json.loads(done.stdout)
    assert told["ok"] == (done.returncode == 0)
    for finding in told["checks"]:
        assert finding["state"] in ("ok", "warning", "failed", "skipped")
        assert finding["message"]
        assert finding["remedy"] or finding["state"] in ("ok", "skipped"), finding
    return done.returncode, {finding["name"]: finding for finding in told["checks"]}, done.stderr


def written(folder: Path, **groups: Any) -> Path:
    path = folder / "doctor.yaml"
    path.write_text(yaml.safe_dump({"audio": {"enabled": False}, **groups}))
    return path


def test_a_well_daemon_gets_no_failure(daemon: Daemon) -> None:
    code, found, _ = doctor("--config", str(daemon.config))
    assert code == 0
    states = {name: finding["state"] for name, finding in found.items()}
    for name in ("configuration", "versions", "memory plan", "socket", "daemon", "daemon's memory", "speech"):
        assert states[name] == "ok", found[name]
    assert [name for name in states if name.startswith("bundle ")]
    assert states["loudspeaker"] == "skipped"
    assert "s of audio" in found["speech"]["message"]


def test_people_get_lines_with_remedies(daemon: Daemon) -> None:
    command = [sys.executable, "-m", "edged", "doctor", "--config", str(daemon.config), "--no-tone"]
    text = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    assert "ok       daemon: edged " in text
    assert text.splitlines()[-1].endswith("skipped")


def test_without_a_daemon_it_says_how_to_start_one(tone_bundle: Path, tmp_path: Path) -> None:
    config = written(tmp_path, voices={"bundles": [str(tone_bundle)]})
    code, found, _ = doctor("--config", str(config), "--endpoint", f"ipc://{tmp_path}/nobody.sock")
    assert code == 1
    assert found["daemon"]["code"] == "no_daemon"
    assert "edged serve" in found["daemon"]["remedy"]
    assert found["speech"]["state"] == "skipped"
    assert found["memory plan"]["state"] == "ok"


def test_every_problem_of_the_configuration_is_told(tmp_path: Path) -> None:
    config = tmp_path / "bad.yaml"
    config.write_text("audio:\n  latency: 3\nlog:\n  level: loud\n")
    code, found, _ = doctor("--config", str(config), "--endpoint", f"ipc://{tmp_path}/nobody.sock")
    assert code == 1
    assert found["configuration"]["state"] == "failed"
    assert f"{config}:4" in found["configuration"]["message"]


def _cut(bundle: Path) -> None:
    file = next((bundle / "engines").iterdir())
    file.write_bytes(file.read_bytes()[:-1])


def _change(bundle: Path) -> None:
    file = next((bundle / "engines").iterdir())
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)


def _backend(bundle: Path) -> None:
    path = bundle / "manifest.json"
    path.write_text(path.read_text().replace('"onnxruntime"', '"opera"'))


@pytest.mark.parametrize(
    ("harm", "expected"),
    [
        (_cut, "bundle_file_truncated"),
        (_change, "bundle_hash_mismatch"),
        (shutil.rmtree, "bundle_missing"),
        (_backend, "bundle_backend_mismatch"),
    ],
)
def test_a_harmed_bundle_is_named(
    tone_bundle: Path, tmp_path: Path, harm: Callable[[Path], None], expected: str
) -> None:
    bundle = tmp_path / "harmed"
    shutil.copytree(tone_bundle, bundle)
    harm(bundle)
    config = written(tmp_path, voices={"bundles": [str(bundle)]})
    code, found, _ = doctor("--config", str(config), "--endpoint", f"ipc://{tmp_path}/nobody.sock")
    assert code == 1
    assert found[f"bundle {bundle}"]["code"] == expected


def test_a_plan_over_the_budget_fails(tone_bundle: Path, tmp_path: Path) -> None:
    config = written(
        tmp_path, voices={"bundles": [str(tone_bundle)]}, service={"memory_mb": 16}, limits={"reply_mb": 64}
    )
    code, found, _ = doctor("--config", str(config), "--endpoint", f"ipc://{tmp_path}/nobody.sock")
    assert code == 1
    assert issubclass(codes()[found["memory plan"]["code"]], ConfigError)
    assert "service.memory_mb" in found["memory plan"]["remedy"]


def test_a_plan_that_leaves_nothing_for_the_interpreter_is_a_warning(tone_bundle: Path) -> None:
    (plan,) = setup.plan(case(voices=Voices(bundles=[str(tone_bundle)]), service=Service(memory_mb=110)))
    assert (plan.state, "interpreter" in plan.message) == ("warning", True)
    wanted = int(re.findall(r"memory_mb to (\d+)", plan.remedy)[0])
    (plan,) = setup.plan(case(voices=Voices(bundles=[str(tone_bundle)]), service=Service(memory_mb=wanted)))
    assert plan.state == "ok"


def test_a_daemon_near_its_budget_is_a_warning(tone_bundle: Path) -> None:
    with running(tone_bundle) as daemon:
        budget_mb = round(4 * daemon.request({"op": "status"})["rss_mb"])
    # Over the 80 % of the warning, below the 90 % from which it takes no jobs. Other programs with the same
    # libraries share its memory, and come and go: the leak keeps to the 85 %.
    leak = {"leak_mb": budget_mb, "leak_to_percent": 85}
    with running(tone_bundle, service={"memory_mb": budget_mb}, faults=leak) as daemon:
        wait_until(lambda: daemon.request({"op": "status"})["memory_state"] == "high", 30.0, "high memory")
        code, found, _ = doctor("--config", str(daemon.config))
    assert code == 0
    assert found["daemon's memory"]["state"] == "warning"
    assert "--memory" in found["daemon's memory"]["remedy"]


def test_a_bundle_for_tensorrt_needs_its_packages(tone_bundle: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "gpu"
    shutil.copytree(tone_bundle, bundle)
    manifest = bundle / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"onnxruntime"', '"tensorrt"'))
    config = written(tmp_path, voices={"bundles": [str(bundle)]})
    endpoint = ("--endpoint", f"ipc://{tmp_path}/nobody.sock")
    _, found, _ = doctor("--config", str(config), *endpoint, PYTHONPATH=os.pathsep.join(sys.path))
    for name, package in (("TensorRT", "tensorrt"), ("pycuda", "pycuda")):
        if importlib.util.find_spec(package):
            continue
        assert (found[name]["state"], found[name]["code"]) == ("failed", "missing_extra")
        assert "[tensorrt]" in found[name]["remedy"]
    for version, state in (("10.3.0", "ok"), ("11.4.0.106", "ok"), ("8.6.1", "warning"), ("12.0", "warning")):
        installed = tmp_path / version / f"tensorrt-{version}.dist-info" / "METADATA"
        installed.parent.mkdir(parents=True)
        installed.write_text(f"Metadata-Version: 2.1\nName: tensorrt\nVersion: {version}\n")
        path = os.pathsep.join([str(installed.parent.parent), *sys.path])
        _, found, _ = doctor("--config", str(config), *endpoint, PYTHONPATH=path)
        assert found["TensorRT"]["state"] == state
        assert version in found["TensorRT"]["message"]


def test_other_bundles_need_no_packages_of_the_gpu(tone_bundle: Path, tmp_path: Path) -> None:
    config = written(tmp_path, voices={"bundles": [str(tone_bundle)]})
    _, found, _ = doctor("--config", str(config), "--endpoint", f"ipc://{tmp_path}/nobody.sock")
    assert not {"TensorRT", "pycuda"} & set(found)


def test_an_engine_that_is_stuck_does_not_hold_the_doctor(
    tone_bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert speaking.LIMIT_S <= 30.0
    monkeypatch.setattr(speaking, "LIMIT_S", 2.0)  # of the same checks, in this process
    with running(tone_bundle, faults={"stall_at_step": 1}, service={"warmup": False}) as daemon:
        with Client(daemon.endpoint) as client:
            status = client.status()
        one = Case(Settings(), daemon.endpoint, lambda: Client(daemon.endpoint), status)
        begin = time.monotonic()
        (told,) = speaking.speech(one)
        assert time.monotonic() - begin < 5.0
        assert next(iter(speaking.answers(one))).state == "ok"
        daemon.process.kill()
    assert (told.state, told.code) == ("failed", "timeout")


def test_a_pipe_as_configuration_is_a_finding(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    code, found, _ = doctor("--config", str(tmp_path / "pipe"), "--endpoint", f"ipc://{tmp_path}/none.sock")
    assert code == 1
    assert "regular file" in found["configuration"]["message"]


def test_what_a_false_daemon_says_does_nothing_to_the_terminal(tmp_path: Path) -> None:
    hostile = "9\x1b]0;x\x07\nok       speech: fine\u202e"
    with zmq.Context() as context, context.socket(zmq.ROUTER) as false:
        endpoint = f"ipc://{tmp_path}/s.sock"
        false.bind(endpoint)
        command = [sys.executable, "-m", "edged", "doctor", "--no-tone", "--endpoint", endpoint]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
            while process.poll() is None:
                if false.poll(50):
                    peer, header = false.recv_multipart()
                    fault = protocol.failed(InternalError(hostile), id=protocol.request_id(header))
                    false.send_multipart([peer, protocol.encode(fault)])
            assert process.stdout is not None
            text = process.stdout.read().decode()
    assert r"\x1b]0;x\x07\nok " in text
    assert not any(part in text for part in ("\x1b", "\x07", "\u202e", "\nok       speech"))


# -- the checks by themselves -------------------------------------------------------------------


def case(endpoint: str = "", **groups: Any) -> Case:
    def no_client() -> Any:
        raise AssertionError("nobody is asked")

    return Case(Settings(**groups), endpoint, no_client, NoDaemon("none"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can ask as another user")
def test_a_socket_that_another_user_may_not_use() -> None:
    code = (
        "import os, sys\nfrom edged.doctor import setup\nfrom tests.test_doctor import case\n"
        "os.setgroups([])\nos.setgid(65534)\nos.setuid(65534)\n"
        "print(*setup.socket(case('ipc://' + sys.argv[1])))"
    )
    with tempfile.TemporaryDirectory(prefix="edged-") as folder, socket.socket(socket.AF_UNIX) as listener:
        os.chmod(folder, 0o755)
        path = Path(folder) / "s.sock"
        listener.bind(str(path))
        path.chmod(0o660)
        (mine,) = setup.socket(case(f"ipc://{path}"))
        command = [sys.executable, "-c", code, str(path)]
        theirs = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        os.chmod(folder, 0o700)
        hidden = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert mine.state == "ok"
    for told in (theirs, hidden):
        assert "state='failed'" in told
        assert "usermod -aG" in told


def test_a_file_in_the_sockets_place(tmp_path: Path) -> None:
    (tmp_path / "s.sock").write_text("")
    (found,) = setup.socket(case(f"ipc://{tmp_path}/s.sock"))
    assert (found.state, "not a socket" in found.message) == ("failed", True)


@pytest.mark.parametrize(
    ("told", "state", "remedy"),
    [
        ({"LoadState": "not-found"}, "skipped", "deploy/README.md"),
        ({"ActiveState": "failed", "Result": "start-limit-hit"}, "failed", "reset-failed"),
        ({"ActiveState": "inactive"}, "warning", "systemctl start edged"),
        ({"ActiveState": "activating"}, "warning", "journalctl -u edged -x -e"),
        ({"ActiveState": "active", "UnitFileState": "disabled"}, "warning", "systemctl enable edged"),
        ({"ActiveState": "active", "UnitFileState": "enabled", "NRestarts": "3"}, "warning", "journalctl"),
        ({"ActiveState": "active", "UnitFileState": "enabled", "NRestarts": "0"}, "ok", ""),
    ],
)
def test_what_systemd_says_is_judged(told: dict[str, str], state: str, remedy: str) -> None:
    found = unit.judged({"LoadState": "loaded", **told})
    assert found.state == state
    assert remedy in found.remedy


def test_a_failed_service_comes_with_its_last_error() -> None:
    told = {"LoadState": "loaded", "ActiveState": "failed", "Result": "exit-code", "ExecMainStatus": "2"}
    found = unit.judged(told, lambda: "cannot start: line 7")
    assert "a configuration that cannot be used" in found.message
    assert found.message.endswith("cannot start: line 7")


@pytest.mark.parametrize(
    ("result", "status", "told"),
    [
        ("exit-code", "217", "User="),
        ("exit-code", "5", "listen.tcp"),
        ("core-dump", "11", "SIGSEGV, a crash in native code"),
        ("signal", "9", "SIGKILL"),
        ("signal", "40", "signal 40"),
    ],
)
def test_how_it_ended_is_explained(result: str, status: str, told: str) -> None:
    unit_says = {"LoadState": "loaded", "ActiveState": "failed", "Result": result, "ExecMainStatus": status}
    assert told in unit.judged(unit_says).message


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can ask as another user")
def test_whether_the_services_user_may_read_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """By name or number, as desktop-sound.conf has it, and with the groups of the unit."""
    nobody = pwd.getpwnam("nobody")
    with tempfile.NamedTemporaryFile() as file:
        path = Path(file.name)
        os.chown(path, 0, grp.getgrnam("audio").gr_gid)
        for user in ("nobody", str(nobody.pw_uid)):
            for mode, groups, may in (
                (0o600, "", False),
                (0o604, "", True),
                (0o640, "", False),
                (0o640, "audio", True),
            ):
                path.chmod(mode)
                told = {"User": user, "Group": "", "SupplementaryGroups": groups}
                monkeypatch.setattr(unit, "properties", lambda told=told: told)
                assert unit.forbidden(path) == ("" if may else user), (user, oct(mode), groups)


@pytest.mark.parametrize(
    ("limit", "warned"), [("1992294400", False), ("1048576000", True), ("infinity", False)]
)
def test_a_limit_of_the_unit_below_the_budget(limit: str, warned: bool) -> None:
    found = list(unit.limited({"MemoryMax": limit}, 1500))
    assert bool(found) is warned
    assert all("MemoryMax=1788M" in f.remedy for f in found)


def test_a_clock_before_the_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    (now,) = machine.clock(case())
    assert now.state == "ok"
    monkeypatch.setattr(
        machine.time, "time", lambda: 86_400.0
    )  # a board without a battery, after a power cut
    (then,) = machine.clock(case())
    assert (then.state, "1970" in then.message) == ("warning", True)


def test_a_check_that_breaks_hides_no_other() -> None:
    def breaks(case: Case) -> list[Finding]:
        raise ZeroDivisionError("unforeseen")

    def fails(case: Case) -> list[Finding]:
        raise BundleMissing("no bundle")

    def fine(case: Case) -> list[Finding]:
        return [Finding("c", "ok", "well")]

    found = list(run(case(), [("a", breaks), ("b", fails), ("c", fine)]))
    assert [(f.name, f.state, f.code) for f in found] == [
        ("a", "failed", "internal"),
        ("b", "failed", "bundle_missing"),
        ("c", "ok", ""),
    ]


# -- sound --------------------------------------------------------------------------------------


@pytest.mark.audio
def test_the_tone_is_heard(pulse: PulseServer, tone_bundle: Path) -> None:
    with running(tone_bundle, audio={"enabled": True, "device": "pulse"}) as daemon, pulse.record() as heard:
        code, found, stderr = doctor("--config", str(daemon.config), "--tone")
    assert stderr == ""
    assert code == 0, found
    assert found["loudspeaker"]["state"] == "ok"
    assert found["test tone"]["state"] == "ok"
    tone, mono = beep(RATE), heard.samples[:, 0]
    at = find(tone, mono)
    assert abs(np.abs(mono[at : at + len(tone)]).max() - TONE_LEVEL) < 0.01
    assert len(tone) == int(TONE_S * RATE)


@pytest.mark.audio
def test_without_a_sound_server_the_loudspeaker_fails(pulse: PulseServer, tone_bundle: Path) -> None:
    with running(tone_bundle, audio={"enabled": True, "device": "pulse"}) as daemon:
        code, found, stderr = doctor(
            "--config", str(daemon.config), "--tone", PULSE_SERVER="unix:/nonexistent/pulse"
        )
    assert stderr == ""
    assert "the daemon has one" in found["loudspeaker"]["message"]
    assert (found["loudspeaker"]["state"], code) == ("warning", 0), "a server that died looks the same"
    assert "restart the sound server" in found["loudspeaker"]["remedy"]
    pulse.stop()
    with running(tone_bundle, audio={"enabled": True, "device": "pulse"}) as daemon:
        code, found, stderr = doctor("--config", str(daemon.config), "--tone")
    assert code == 1
    assert found["loudspeaker"]["code"] == "no_audio_device"


def test_a_socket_in_a_folder_that_others_may_change_is_a_failure(tone_bundle: Path, tmp_path: Path) -> None:
    config = written(tmp_path, voices={"bundles": [str(tone_bundle)]})
    tmp_path.chmod(0o1777)
    trap = tmp_path / "edged"
    trap.mkdir()
    trap.chmod(0o777)
    code, found, _ = doctor("--config", str(config), "--endpoint", f"ipc://{trap}/edged.sock")
    assert code == 1
    assert found["socket"]["state"] == "failed"
    assert "may be written to by other users" in found["socket"]["message"]
