"""The TensorRT half of a build without TensorRT: phases, profiles, report, clocks, the command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edged.bundle import read_manifest
from edged.bundle_write import write_manifest
from edged.compiler import clocks, trt
from edged.compiler.graph import Graph
from edged.compiler.trt_phases import Phases, stoppable
from edged.compiler.trt_report import summary
from edged.precision import LOOSEST
from tests import bundles

# -- phases ----------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 5), st.integers(1, 5)), max_size=60))
def test_the_fraction_only_grows(calls: list[tuple[str, int, int]]) -> None:
    """Whatever comes in whatever order: phases within phases, unknown ones, steps beyond the last."""
    told: list[float] = []
    phases = Phases("gpt", lambda phase, fraction: told.append(fraction))
    for name, kind, number in calls:
        if kind < 2:
            phases.start(name, "abcd"[number % 4] if kind else None, number)
        elif kind < 4:
            assert phases.step(name, number)
        else:
            phases.finish(name)
    assert told == sorted(told)
    assert all(0 <= fraction <= 1 for fraction in told)


def test_a_phase_within_a_step_of_another() -> None:
    told: list[tuple[str, float]] = []
    phases = Phases("gpt", lambda phase, fraction: told.append((phase, fraction)))
    phases.start("Build", None, 4)
    phases.step("Build", 0)
    phases.start("Tactics", "Build", 2)
    phases.step("Tactics", 0)
    assert told[-1] == ("gpt: Tactics", pytest.approx(0.25 + 0.125))
    phases.finish("Tactics")
    phases.finish("Build")
    assert told[-1] == ("gpt: Build", pytest.approx(1.0))


def test_what_the_callback_raises_is_kept_and_stops_the_build() -> None:
    def full(phase: str, fraction: float) -> None:
        raise OSError("no space")

    phases = Phases("gpt", full)
    phases.start("Build", None, 4)
    assert phases.step("Build", 0) is False
    assert isinstance(phases.failure, OSError)


def test_no_signal_stays_blocked_behind_a_build_however_short() -> None:
    """Child processes inherit what is blocked: they would not hear a SIGTERM."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    for _ in range(100):
        assert stoppable(lambda: 1, Phases("gpt", lambda phase, fraction: None)) == 1
        assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before


# -- profiles, report, clocks ----------------------------------------------------------------------


def test_profiles_come_from_the_names_of_dimensions(tmp_path: Path) -> None:
    graph = Graph("net", 21)
    graph.input("x", "float32", ("B", "S", 4), (8, 48, 4))
    graph.input("flag", "bool", (1,), (1,))
    graph.save(tmp_path / "net.onnx")
    found = trt.profile(tmp_path / "net.onnx", {"B": (1, 1, 8), "S": (1, 2, 3), "other": (1, 1, 1)})
    assert found == {"x": ((1, 1, 4), (1, 2, 4), (8, 3, 4))}
    with pytest.raises(ValueError, match="x: no range for the dimension S"):
        trt.profile(tmp_path / "net.onnx", {"B": (1, 1, 8)})


def test_the_report_names_the_largest_layers() -> None:
    layers: list[Any] = [
        {
            "Name": f"layer {n}",
            "LayerType": "gemm" if n % 2 else "pointwise",
            "TacticName": f"tactic_{n}",
            "Weights": {"Type": "Half", "Count": 100 * n},
            "Outputs": [{"Format/Datatype": "Half"}],
        }
        for n in range(12)
    ]
    found = summary(json.dumps({"Layers": layers}))
    assert (found["layers"], found["kinds"]) == (12, {"pointwise": 6, "gemm": 6})
    assert [layer["name"] for layer in found["largest"]] == [f"layer {n}" for n in range(11, 3, -1)]
    assert found["largest"][0] == {"name": "layer 11", "kind": "gemm", "tactic": "tactic_11", "weights": 1100}
    assert summary(json.dumps({"Layers": ["only", "names"]}))["layers"] == 2
    assert summary("{}") == {"layers": 0, "kinds": {}, "outputs": {}, "largest": []}


def test_clocks_of_a_board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place, now, most in (
        ("sys/devices/system/cpu/cpufreq/policy0/scaling_{}_freq", 1_510_400, 1_510_400),
        ("sys/class/devfreq/17000000.gpu/{}_freq", 306_000_000, 918_000_000),
    ):
        for kind, value in (("cur", now), ("max", most)):
            file = tmp_path / place.format(kind)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{value}\n")
    broken = tmp_path / "sys/devices/system/cpu/cpufreq/policy1"
    broken.mkdir()
    (broken / "scaling_cur_freq").write_text("<unknown>")
    commands = tmp_path / "bin"
    commands.mkdir()
    (commands / "nvpmodel").write_text("#!/bin/sh\necho 'NV Power Mode: 15W'\necho 0\n")
    (commands / "nvidia-smi").write_text("#!/bin/sh\nexit 9\n")
    for command in commands.iterdir():
        command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{commands}{os.pathsep}/usr/bin:/bin")
    assert clocks.clocks(tmp_path) == {
        "power_mode": "NV Power Mode: 15W 0",
        "cpu_policy0_mhz": "1510 of 1510",
        "gpu_mhz": "306 of 918",
    }


# -- the command line ------------------------------------------------------------------------------


def edged(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "edged", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_a_machine_without_a_driver_is_told_at_once(tiny_checkpoint: Path, tmp_path: Path) -> None:
    if Path("/dev/nvidiactl").exists() or Path("/dev/nvhost-gpu").exists():
        pytest.skip("this machine has an NVIDIA driver")
    build = ("bundle", "build", "chattts", "--checkpoint", str(tiny_checkpoint), "--out", str(tmp_path / "b"))
    done = edged(*build, "--backend", "tensorrt")
    assert done.returncode == 1
    assert "cuda_missing" in done.stderr
    done = edged(*build, "--workspace", "100")
    assert done.returncode != 0
    assert "--backend tensorrt" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_verify_shows_the_figures_of_a_build(tmp_path: Path) -> None:
    limits = {**LOOSEST, "max_kl": 1e-4}
    for name, waveform in (("good", 54.5), ("bad", 39.0)):
        measured = {**LOOSEST, "max_kl": 2e-6, "min_waveform_snr_db": waveform}
        record = msgspec.structs.replace(bundles.TENSORRT, measured=measured)
        path = bundles.for_tensorrt(bundles.tone(), tmp_path / name, record=record)
        write_manifest(path, msgspec.structs.replace(read_manifest(path), thresholds=limits))
    good, bad = (
        edged("bundle", "verify", str(tmp_path / "good")),
        edged("bundle", "verify", str(tmp_path / "bad")),
    )
    assert (good.returncode, bad.returncode) == (0, 1)
    assert "ok      max_kl: 2e-06, at most 0.0001 is wanted" in good.stdout
    assert "FAILED  min_waveform_snr_db: 39, at least 40 is wanted" in bad.stdout
    assert "bundle_inaccurate" in bad.stderr
