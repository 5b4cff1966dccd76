"""edged as a service on a healthy machine: start, speak, restart, stop."""

from __future__ import annotations

import json
import re
import wave

import pytest

from tests.service.edged import LONG, SENTENCE, Edged, saying
from tests.service.rootfs import ROOT

pytestmark = [pytest.mark.systemd, pytest.mark.timeout(600)]


def test_as_installed_it_builds_its_voice_and_speaks_to_its_group_only(edged: Edged) -> None:
    edged.configure("")
    edged.start()
    assert edged.show("StatusText") == "ready: heart"
    assert (edged.machine.root / "var/lib/edged/bundles/hibari/manifest.json").is_file()
    assert edged.speaks(user="alice")
    refused = edged.say(user="bob")
    assert refused.returncode == 3
    assert "add your user to the group" in refused.stderr


def test_it_runs_as_nobody_special(edged: Edged) -> None:
    edged.start()
    status = dict(
        line.split(":\t", 1)
        for line in (edged.machine.root / f"proc/{edged.pid}/status").read_text().splitlines()
    )
    user = edged.machine.run("id", "--user", "edged").stdout.strip()
    assert set(status["Uid"].split()) == {user}
    assert int(status["CapEff"], 16) == int(status["CapBnd"], 16) == 0
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")


def test_nothing_that_it_does_is_forbidden_to_it(edged: Edged) -> None:
    """Whatever the hardening takes away would show as a warning of it or of a library."""
    edged.configure("voices: {bundles: [tone, hibari]}\naudio: {enabled: false}\nlisten: {group: audio}\n")
    edged.start()
    assert edged.machine.run("stat", "--format=%G", "/run/edged/edged.sock").stdout.strip() == "audio"
    assert edged.say(SENTENCE, "--voice", "heart", user="root").returncode == 0
    fields = ["journalctl", "_SYSTEMD_UNIT=edged.service", f"_PID={edged.pid}", "--output=json", "--no-pager"]
    entries = [json.loads(line) for line in edged.machine.run(*fields).stdout.splitlines()]
    assert [e["MESSAGE"] for e in entries if int(e["PRIORITY"]) <= 4] == []
    assert any(e["MESSAGE"].startswith("ready ") for e in entries), "its lines are in the journal"


def test_on_a_jetson_the_modes_of_the_devices_decide(edged: Edged) -> None:
    drop_in = ROOT / "systemd/drop-ins/jetson.conf"
    edged.drop_in(drop_in.name, drop_in.read_text())
    edged.start()
    assert (edged.show("DevicePolicy"), edged.show("DeviceAllow")) == ("auto", "")
    groups = edged.machine.run("getent", "group", "audio", "video", "render").stdout.splitlines()
    status = (edged.machine.root / f"proc/{edged.pid}/status").read_text()
    held = set(re.search(r"^Groups:(.*)$", status, re.M)[1].split())
    assert {line.split(":")[2] for line in groups} <= held
    assert edged.speaks()


def test_beside_a_discrete_card_only_its_devices_are_opened(edged: Edged) -> None:
    drop_in = ROOT / "systemd/drop-ins/nvidia.conf"
    edged.drop_in(drop_in.name, drop_in.read_text())
    edged.start()
    assert edged.show("DevicePolicy") == "closed"
    allowed = edged.show("DeviceAllow")
    assert "char-nvidia* rw" in allowed
    assert "char-alsa rw" in allowed
    groups = edged.machine.run("getent", "group", "audio", "video", "render").stdout.splitlines()
    status = (edged.machine.root / f"proc/{edged.pid}/status").read_text()
    held = set(re.search(r"^Groups:(.*)$", status, re.M)[1].split())
    assert {line.split(":")[2] for line in groups} <= held
    assert edged.speaks()


def test_stop_lets_a_job_end(edged: Edged) -> None:
    edged.configure("voices: {bundles: [slow]}\naudio: {enabled: false}\nservice: {drain_s: 25}\n")
    edged.start()
    with saying(edged, LONG) as job:
        edged.machine.run("systemctl", "stop", "edged")
        error = job.communicate(timeout=60)[1]
    assert (job.returncode, error) == (0, ""), edged.log
    with wave.open(str(edged.machine.root / "tmp/long.wav")) as audio:
        whole_s = audio.getnframes() / audio.getframerate()
        assert len(audio.readframes(audio.getnframes())) == audio.getnframes() * audio.getsampwidth()
    log = edged.log
    assert abs(float(re.search(r"audio=([\d.]+)s", log)[1]) - whole_s) < 0.01
    assert "draining phase=stop jobs=1" in log
    assert "job done" in log
    assert (edged.show("ActiveState"), edged.show("Result")) == ("inactive", "success")
    assert not (edged.machine.root / "run/edged").exists()


def test_a_killed_one_is_back_soon(edged: Edged) -> None:
    edged.start()
    assert edged.speaks()
    before = edged.pid
    edged.signal("KILL")
    edged.wait_for("NRestarts", "1")
    edged.wait_for("ActiveState", "active")
    assert edged.speaks()
    assert edged.pid not in (0, before)


def test_the_same_state_serves_the_next_start(edged: Edged) -> None:
    edged.start()
    for _ in range(2):
        edged.machine.run("systemctl", "restart", "edged")
        assert edged.speaks()
    assert edged.show("NRestarts") == "0"
