"""`edged audio` as a real process on a real sound server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests import bundles
from tests.daemon import running
from tests.pulse import RATE, PulseServer, name_sinks, pulse, pulse_server

__all__ = ["pulse", "pulse_server"]
pytestmark = pytest.mark.audio
CONFIG = """audio:
  device: [nothing, "ED?ED", ""]
  devices:
    - {match: "*edg*", lead_in_ms: 0, latency_ms: 50}
"""


def edged(*args: str, **env: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k not in ("EDGED_ENDPOINT", "EDGED_CONFIG")}
    command = [sys.executable, "-m", "edged", "audio", *args]
    return subprocess.run(command, capture_output=True, text=True, env={**environment, **env}, timeout=60)


@pytest.fixture
def config(pulse: PulseServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name_sinks(tmp_path, monkeypatch, "edged")
    path = tmp_path / "edged.yaml"
    path.write_text(CONFIG)
    return str(path)


def test_the_list_says_what_the_configuration_means(config: str) -> None:
    result = edged("list", "--config", config)
    assert (result.returncode, result.stderr) == (0, "")
    (row,) = [line for line in result.stdout.splitlines() if line.startswith("edged ")]
    assert row.endswith("used, device 'ED?ED', devices '*edg*'")
    devices = json.loads(edged("list", "--config", config, "--json").stdout)["devices"]
    assert [(d["name"], d["entry"], d["settings"]) for d in devices if d["used"]] == [("edged", 2, "*edg*")]


def test_a_tone_comes_from_each_channel_in_turn(config: str, pulse: PulseServer) -> None:
    with pulse.record() as recording:
        options = ("--seconds", "0.3", "--no-voice", "--config", config)
        result = edged("test", *options, "--json")
        heard = np.abs(recording.samples) > 0.01
    assert (result.returncode, result.stderr) == (0, "")
    told = json.loads(result.stdout)
    assert (told["device"], told["rate"], told["channels"]) == ("edged", RATE, 2)
    assert (told["spoken"], told["unspoken"], told["underruns"]) == (False, "not wanted", 0)
    left, right = (np.flatnonzero(heard[:, channel]) for channel in (0, 1))
    for places in (left, right):
        assert (places[-1] - places[0]) / RATE == pytest.approx(0.3, abs=0.05)
    assert right[0] > left[-1]


def test_without_a_bundle_there_are_tones_alone(config: str, tmp_path: Path) -> None:
    result = edged(
        "test", "--seconds", "0.1", "--config", config, HOME=str(tmp_path), XDG_DATA_HOME=str(tmp_path)
    )
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    said = ["channel 1: a tone", "channel 2: a tone"]
    if "no number was said" not in result.stdout:  # the voice is installed with this Python
        said = [f"{line} and its number" for line in said]
    assert lines[1:3] == said
    assert lines[-1].endswith("0 underruns")


def test_no_device_names_what_the_daemon_uses(pulse: PulseServer, config: str) -> None:
    unknown = edged("test", "--device", "Bose", "--config", config)
    assert unknown.returncode != 0
    assert "there is no audio device 'Bose'" in unknown.stderr
    assert "the daemon uses" not in unknown.stderr
    audio = {"enabled": True, "device": "edged"}
    with running(bundles.tone(), audio=audio) as daemon:
        held = edged("test", "--endpoint", daemon.endpoint, "--device", "Bose", "--config", config)
    assert "the daemon uses 'edged'" in held.stderr
