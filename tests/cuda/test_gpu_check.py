"""tools/gpu_check runs to its end on every machine, and says what it could not check and why."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cuda import fake

SCRIPT = Path(__file__).resolve().parent.parent.parent / "tools" / "gpu_check"
NEEDS_A_DRIVER = {"driver", "arenas", "copies", "bandwidth", "streams", "events", "graphs", "engines"}


def checked(
    *names: str, env: dict[str, str] | None = None, status: int = 0
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Runs the script; the whole answer, and the results by check."""
    done = subprocess.run(
        [sys.executable, SCRIPT, *names],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        env=env or {**os.environ, "PYTHONPATH": str(SCRIPT.parent.parent)},
    )
    assert done.returncode == status, done.stderr
    answer = json.loads(done.stdout)
    return answer, {result["check"]: result for result in answer["checks"]}


def test_a_machine_without_a_gpu() -> None:
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        pass
    else:
        pytest.skip("this machine has an NVIDIA driver")
    answer, results = checked()
    assert answer["failed"] == 0
    assert answer["ok"] + answer["skipped"] == len(results)
    assert results["packages"]["result"] == "ok"
    assert results["packages"]["packages"]["numpy"]
    for name in NEEDS_A_DRIVER:
        assert results[name]["result"] == "skipped", results[name]
        assert results[name]["reason"]
    assert "libcuda.so.1" in results["driver"]["reason"]


def test_on_the_stand_in(libcuda: Path) -> None:
    names = ("driver", "arenas", "copies", "bandwidth", "streams", "graphs")
    answer, results = checked(*names, env=fake.environment(libcuda))
    assert [result["result"] for result in results.values()] == ["ok"] * len(names), answer
    assert results["driver"]["devices"][0]["name"] == "fake device (host memory)"
    assert results["graphs"]["launched_us"] < results["graphs"]["plain_us"]
    assert all(
        results["copies"][f"{kind}_{way}_gb_s"] > 0
        for kind in ("pinned", "pageable")
        for way in ("up", "down")
    )
    assert results["arenas"]["free_after"] == results["arenas"]["free_before"]


def test_a_wait_that_keeps_the_processor_busy_is_found(libcuda: Path) -> None:
    """The stand-in does a stream's work on the thread that waits for it."""
    _, results = checked("events", env=fake.environment(libcuda), status=1)
    assert results["events"]["result"] == "failed"
    assert "kept the processor busy" in results["events"]["reason"]


def test_a_driver_that_fails(libcuda: Path) -> None:
    env = fake.environment(libcuda, fail="cuMemHostAlloc:1:2,cuStreamBeginCapture_v2:1:801")
    _, results = checked("arenas", "graphs", env=env, status=1)
    assert results["arenas"]["result"] == "failed"
    assert "CUDA_ERROR_OUT_OF_MEMORY" in results["arenas"]["reason"]
    assert results["graphs"]["result"] == "failed"  # it needs page-locked memory first
    env = fake.environment(libcuda, graphs=0)
    _, results = checked("graphs", env=env)
    assert results["graphs"]["result"] == "skipped"


def test_a_driver_that_kills_the_process(tmp_path: Path) -> None:
    if fake.unavailable().startswith("there is no C compiler"):
        pytest.skip("there is no C compiler")
    source = tmp_path / "driver.c"
    source.write_text(
        "#include <stdlib.h>\nint cuDriverGetVersion(int *v) { *v = 13000; return 0; }\n"
        "int cuInit(unsigned f) { (void)f; abort(); }\n"
    )
    library = tmp_path / "libcuda.so.1"
    subprocess.run(["cc", "-shared", "-fPIC", source, "-o", library], check=True)
    _, results = checked("driver", "packages", env=fake.environment(library), status=1)
    assert results["driver"]["result"] == "failed"
    assert "SIGABRT" in results["driver"]["reason"]
    assert results["packages"]["result"] == "ok"


def without(folder: Path, *modules: str) -> dict[str, str]:
    """The environment of a process in which these modules cannot be imported, and TensorRT is found."""
    lines = [f"sys.modules[{module!r}] = None" for module in modules]
    (folder / "sitecustomize.py").write_text("\n".join(["import sys", *lines]))
    for module in ("tensorrt", "pycuda"):
        (folder / f"{module}.py").write_text("")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(SCRIPT.parent.parent)])}


def test_what_the_environment_lacks_is_skipped_with_the_command_for_it(tmp_path: Path) -> None:
    _, results = checked("engines", env=without(tmp_path, "tokenizers"))
    assert results["engines"]["result"] == "skipped"
    assert "[chattts]" in results["engines"]["reason"]


def test_a_module_of_our_own_that_is_missing_is_a_failure(tmp_path: Path) -> None:
    _, results = checked("arenas", env=without(tmp_path, "edged.engine.cuda"), status=1)
    assert results["arenas"]["result"] == "failed"
    assert "edged.engine.cuda" in results["arenas"]["reason"]


def test_the_kernels_need_no_pytest(tmp_path: Path) -> None:
    code = "from tests.masked_pos_enc import Call, expected"
    env = without(tmp_path, "pytest")
    subprocess.run([sys.executable, "-c", code], env=env, check=True, timeout=60)


def test_an_unknown_check() -> None:
    done = subprocess.run([sys.executable, SCRIPT, "nothing"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "no such check: nothing" in done.stderr
