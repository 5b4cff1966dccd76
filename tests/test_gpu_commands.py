"""`edged bundle` and `edged doctor` with a bundle for TensorRT, on a machine that cannot run it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from edged.bundle import read_manifest
from edged.bundle_write import write_manifest
from edged.compiler.chattts.thresholds import TENSORRT
from tests import bundles
from tests.daemon import running
from tests.drivers import driver
from tests.test_fallback import REMARK, ROOT, pytestmark

__all__ = ["pytestmark"]

LIMITS = {**TENSORRT["int8"], "min_waveform_snr_db": 50.0}
MEASURED = {
    "max_kl": 0.001,
    "max_logit_error": 0.1,
    "min_hidden_snr_db": 24.0,
    "min_token_agreement": 0.7,
    "min_waveform_snr_db": 51.5,
}


@pytest.fixture
def planned(tmp_path: Path) -> Path:
    """A bundle "orin" with the figures that it needs."""
    record = msgspec.structs.replace(bundles.TENSORRT, measured=MEASURED)
    out = bundles.for_tensorrt(bundles.tone(), tmp_path / "orin", record=record)
    write_manifest(out, msgspec.structs.replace(read_manifest(out), name="orin", thresholds=LIMITS))
    return out


def edged(*arguments: object, code: int = 0, **env: str) -> str:
    """stdout, or stderr where it must fail."""
    kept = {k: v for k, v in os.environ.items() if k not in ("EDGED_ENDPOINT", "EDGED_CONFIG")}
    done = subprocess.run(
        [sys.executable, "-m", "edged", *map(str, arguments)],
        env={**kept, **env},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == code, (done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    return done.stderr if code else done.stdout


def test_it_is_installed_listed_and_verified_as_its_files_are_good(planned: Path, tmp_path: Path) -> None:
    env = {"EDGED_BUNDLES": str(tmp_path / "store")}
    edged("bundle", "install", planned, **env)
    (entry,) = json.loads(edged("bundle", "list", "--json", **env))["bundles"]
    assert (entry["state"], entry["backend"]) == ("ok", "tensorrt")
    assert "tensorrt" in edged("bundle", "list", **env)
    told = edged("bundle", "verify", entry["path"], **env)
    for part in ("TensorRT 10.3.0", "8.7", "Orin", "400 MB", "every file is as the manifest says"):
        assert part in told


def test_it_is_activated_only_where_it_can_run(planned: Path, tmp_path: Path) -> None:
    env = {"EDGED_BUNDLES": str(tmp_path / "store")}
    edged("bundle", "install", planned, **env)
    told = edged("bundle", "activate", "orin", "--no-reload", code=1, **env)
    assert "[cuda_missing]" in told
    assert "libcuda.so.1" in told
    (entry,) = json.loads(edged("bundle", "list", "--json", **env))["bundles"]
    assert entry["role"] == "spare"
    edged("bundle", "activate", "orin", "--no-reload", "--no-trial", **env)


@pytest.mark.parametrize(
    ("measured", "says"),
    [
        ({}, "max_kl: not measured"),
        ({"max_kl": 0.001}, "min_waveform_snr_db: not measured"),
        ({**MEASURED, "max_kl": 0.02}, "max_kl: 0.02"),
        ({**MEASURED, "min_waveform_snr_db": 49.0}, "min_waveform_snr_db: 49"),
    ],
)
def test_one_that_is_not_precise_enough_is_refused_without_a_trial_too(
    planned: Path, tmp_path: Path, measured: dict[str, float], says: str
) -> None:
    manifest = read_manifest(planned)
    assert manifest.tensorrt is not None
    record = msgspec.structs.replace(manifest.tensorrt, measured=measured)
    write_manifest(planned, msgspec.structs.replace(manifest, tensorrt=record))
    env = {"EDGED_BUNDLES": str(tmp_path / "store")}
    edged("bundle", "install", planned, **env)
    told = edged("bundle", "activate", "orin", "--no-reload", "--no-trial", code=1, **env)
    assert "[bundle_inaccurate]" in told
    assert says in told
    assert ("build it anew on this machine" in told) == ("not measured" in says)


@pytest.mark.skipif(find_spec("pycuda") is not None, reason="pycuda is installed")
def test_a_build_without_pycuda_ends_before_it_begins(tiny_checkpoint: Path, tmp_path: Path) -> None:
    driver(tmp_path).rename(tmp_path / "libcuda.so.1")
    build = ("bundle", "build", "chattts", "--backend", "tensorrt", "--checkpoint", tiny_checkpoint)
    env = {"LD_LIBRARY_PATH": str(tmp_path), "PYTHONPATH": str(ROOT)}
    told = edged(*build, "--out", tmp_path / "out" / "gpu", code=6, **env)
    assert "[missing_extra]" in told
    assert "'pycuda'" in told
    assert "[tensorrt]" in told
    assert not (tmp_path / "out").exists()


def doctor(folder: Path, code: int, **groups: Any) -> dict[str, dict[str, Any]]:
    config = folder / "doctor.yaml"
    config.write_text(yaml.safe_dump({"audio": {"enabled": False}, **groups}))
    command = ["doctor", "--json", "--config", config]
    done = subprocess.run(
        [sys.executable, "-m", "edged", "--endpoint", f"ipc://{folder}/nobody", *map(str, command)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == code, done.stdout
    return {finding["name"]: finding for finding in json.loads(done.stdout)["checks"]}


def test_doctor_tells_what_is_missing(planned: Path, tone_bundle: Path, tmp_path: Path) -> None:
    voices = {"bundles": [str(planned)]}
    found = doctor(tmp_path, 1, voices=voices)
    assert found[f"bundle {planned}"]["state"] == "ok"
    gpu = found[f"GPU for {planned}"]
    assert (gpu["state"], gpu["code"]) == ("failed", "cuda_missing")
    assert gpu["remedy"]
    found = doctor(tmp_path, 1, voices=voices, engine={"fallback": str(tone_bundle)})
    gpu = found[f"GPU for {planned}"]
    assert (gpu["state"], gpu["code"]) == ("warning", "cuda_missing")
    assert "speaks instead" in gpu["message"]
    assert found[f"bundle {tone_bundle}"]["state"] == "ok", "the fallback is checked like the others"
    assert found["memory plan"]["message"].startswith("about 46")


def test_doctor_tells_a_fallback_that_is_none(planned: Path, tmp_path: Path) -> None:
    voices = {"bundles": [str(planned)]}
    found = doctor(tmp_path, 1, voices=voices, engine={"fallback": "absent"})
    assert found["bundle absent"]["code"] == "bundle_missing"
    gpu = found[f"GPU for {planned}"]
    assert (gpu["state"], gpu["code"]) == ("failed", "cuda_missing")
    assert "instead" not in gpu["message"]
    assert found["TensorRT"]["state"] == "failed"
    found = doctor(tmp_path, 1, voices=voices, engine={"fallback": str(planned)})
    assert "needs a GPU, too" in found[f"GPU for {planned}"]["message"]


def test_doctor_tells_that_the_daemon_speaks_with_its_fallback(planned: Path, tone_bundle: Path) -> None:
    with running(planned, engine={"fallback": str(tone_bundle)}) as daemon:
        command = ["--endpoint", daemon.endpoint, "doctor", "--json", "--config", str(daemon.config)]
        found = {f["name"]: f for f in json.loads(edged(*command))["checks"]}
    assert found["daemon"]["state"] == "warning"
    assert REMARK in found["daemon"]["message"]
    assert found["speech"]["state"] == "ok"
