"""The checks before a GPU bundle is opened, on real libraries that behave like a driver with one defect."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from edged import errors
from edged.engine import preflight
from edged.manifest import TensorRT
from tests.bundles import TENSORRT
from tests.drivers import SOURCE, compiler, driver

BUDGET_MB = 1_500.0
Make = Callable[..., Path]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Compiles a driver with these macros."""
    return lambda **macros: driver(tmp_path, **macros)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Makes a package of TensorRT known, by its metadata alone: importing it would fail."""

    def put(version: str, name: str = "tensorrt") -> None:
        info = tmp_path / "site" / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        monkeypatch.syspath_prepend(str(tmp_path / "site"))

    return put


def refused(kind: type[errors.GpuUnusable], library: Path | str, **changes: object) -> errors.GpuUnusable:
    wanted: TensorRT = msgspec.structs.replace(TENSORRT, **changes)
    with pytest.raises(errors.GpuUnusable) as caught:
        preflight.check(wanted, BUDGET_MB, str(library))
    assert type(caught.value) is kind
    assert caught.value.hint
    return caught.value


def test_a_machine_that_fits_is_told_with_what_it_has(make: Make, installed: Callable[..., None]) -> None:
    installed("10.3.0")
    library = make()
    found = preflight.check(TENSORRT, BUDGET_MB, str(library))
    assert found == preflight.Found("12.6", "10.3.0", "Fake Orin", "8.7", False, 6000.0, 8000.0)
    assert preflight.look(str(library)) == found
    assert ctypes.CDLL(str(library)).fakeHeld() == 0
    for part in ("Fake Orin", "8.7", "6000 of 8000 MB", "CUDA 12.6", "TensorRT 10.3.0"):
        assert part in str(found)


def test_no_driver() -> None:
    assert "libcuda.so.77" in refused(errors.CudaMissing, "libcuda.so.77").message


def test_a_file_that_is_no_library_and_a_library_that_is_no_driver(tmp_path: Path) -> None:
    (tmp_path / "libcuda.so.1").write_bytes(b"not a library")
    refused(errors.CudaMissing, tmp_path / "libcuda.so.1")
    (tmp_path / "other.c").write_text("int something(void) { return 0; }\n")
    subprocess.run(
        [*compiler(), "-shared", "-fPIC", "-o", "libother.so", "other.c"], cwd=tmp_path, check=True
    )
    assert "cuDriverGetVersion" in refused(errors.CudaMissing, tmp_path / "libother.so").message


@pytest.mark.parametrize(
    ("macros", "kind", "says"),
    [
        ({"INIT": 100}, errors.GpuMissing, "CUDA_ERROR_NO_DEVICE (100)"),
        ({"COUNT": 0}, errors.GpuMissing, "no device"),
        ({"INIT": 999}, errors.CudaInitFailed, "CUDA_ERROR_UNKNOWN (999)"),
        ({"INIT": 803}, errors.CudaInitFailed, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803)"),
        ({"INIT": 46}, errors.CudaInitFailed, "error 46"),
        ({"VERSION": 11080, "INIT": 999}, errors.DriverTooOld, "CUDA up to 11.8"),
        ({"MAJOR": 12, "MINOR": 0}, errors.CapabilityMismatch, "has 12.0"),
        ({"MINOR": 6}, errors.CapabilityMismatch, "has 8.6"),
        ({"FREE_MB": 300}, errors.DeviceMemoryShort, "300 of 8000 MB"),
        ({"FAIL": '"cuDriverGetVersion"'}, errors.GpuUnusable, "cuDriverGetVersion: CUDA_ERROR_UNKNOWN"),
        ({"FAIL": '"cuDeviceGetCount"'}, errors.GpuUnusable, "cuDeviceGetCount"),
        ({"FAIL": '"cuDeviceGetName"'}, errors.GpuUnusable, "cuDeviceGetName"),
        ({"FAIL": '"cuDeviceGetAttribute"'}, errors.GpuUnusable, "cuDeviceGetAttribute"),
        ({"FAIL": '"cuDevicePrimaryCtxRetain"'}, errors.GpuUnusable, "cuDevicePrimaryCtxRetain"),
        ({"FAIL": '"cuCtxPushCurrent_v2"'}, errors.GpuUnusable, "cuCtxPushCurrent_v2"),
        ({"FAIL": '"cuMemGetInfo_v2"'}, errors.GpuUnusable, "cuMemGetInfo_v2"),
        ({"INIT": 999, "NAMELESS": 1}, errors.CudaMissing, "cuGetErrorName"),
    ],
)
def test_each_defect_of_the_driver_has_its_error(
    make: Make,
    installed: Callable[..., None],
    macros: dict[str, object],
    kind: type[errors.GpuUnusable],
    says: str,
) -> None:
    installed("10.3.0")
    library = make(**macros)
    assert says in refused(kind, library).message
    assert ctypes.CDLL(str(library)).fakeHeld() == 0, "a context was not given back"


def test_after_an_upgrade_of_the_driver_a_restart_is_the_remedy(
    make: Make, installed: Callable[..., None]
) -> None:
    installed("10.3.0")
    assert refused(errors.CudaInitFailed, make(INIT=803)).hint.startswith("restart the machine")


@pytest.mark.parametrize(
    ("version", "name", "fits"),
    [
        ("10.3.0", "tensorrt", True),
        ("10.3.0.post1", "tensorrt-cu12", True),
        ("10.3.0.26", "tensorrt-cu12", True),
        ("10.3.1.post1", "tensorrt-cu12", False),
        ("10.3.0", "tensorrt-cu12-bindings", True),
        ("10.30.0", "tensorrt", False),
        ("10.13.3.9", "tensorrt-cu13", False),
        ("11.4.0.106", "tensorrt", False),
        ("8.6.2", "tensorrt", False),
    ],
)
def test_a_plan_runs_with_the_release_that_made_it(
    make: Make, installed: Callable[..., None], version: str, name: str, fits: bool
) -> None:
    installed(version, name)
    if fits:
        assert preflight.check(TENSORRT, BUDGET_MB, str(make())).tensorrt == version
    else:
        error = refused(errors.TensorRTMismatch, make(INIT=999))
        assert version in error.message
        assert "edged bundle build" in error.hint


@pytest.mark.skipif(bool(preflight.tensorrt_version()), reason="TensorRT is installed in this Python")
def test_without_tensorrt(make: Make) -> None:
    assert "10.3" in refused(errors.TensorRTMissing, make()).message
    assert "not installed" in str(preflight.look(str(make(MINOR=6))))


def test_a_driver_of_the_same_major_version_will_do(make: Make, installed: Callable[..., None]) -> None:
    installed("10.3.0")
    assert preflight.check(TENSORRT, BUDGET_MB, str(make(VERSION=12020))).cuda == "12.2"
    assert preflight.check(TENSORRT, BUDGET_MB, str(make(VERSION=13000))).cuda == "13.0"


def test_memory_of_the_gpu_counts_in_the_budget_before_anything_is_loaded() -> None:
    error = refused(errors.DeviceMemoryShort, "libcuda.so.77", device_mb=BUDGET_MB + 1)
    assert "service.memory_mb" in error.hint


def test_where_memory_is_shared_what_the_kernel_could_give_counts(
    make: Make, installed: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed("10.3.0")
    monkeypatch.setattr(preflight, "MEMINFO", tmp_path / "meminfo")
    library = make(INTEGRATED=1, FREE_MB=300)
    (tmp_path / "meminfo").write_text("MemTotal:  7800000 kB\nMemAvailable:  1000000 kB\n")
    found = preflight.check(TENSORRT, BUDGET_MB, str(library))
    assert (found.integrated, found.free_mb) == (True, 1024.0)
    (tmp_path / "meminfo").write_text("MemAvailable:  100 kB\n")
    refused(errors.DeviceMemoryShort, library)
    (tmp_path / "meminfo").unlink()
    refused(errors.DeviceMemoryShort, library)


def test_it_loads_the_driver_by_its_name_and_nothing_of_nvidia_else(make: Make, tmp_path: Path) -> None:
    """In a process of its own, as a dynamic linker finds it, with neither package importable."""
    shutil.copyfile(make(), tmp_path / "libcuda.so.1")
    code = (
        "import sys; sys.modules['tensorrt'] = sys.modules['pycuda'] = None\n"
        "from edged.engine import preflight; print(preflight.look())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"LD_LIBRARY_PATH": str(tmp_path), "PYTHONPATH": str(SOURCE.parent.parent)},
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert done.stdout.startswith("Fake Orin (compute capability 8.7)"), done.stderr
