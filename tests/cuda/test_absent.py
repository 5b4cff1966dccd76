"""What is missing has an error of its own, which says what to install."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from edged.engine.cuda import Device
from edged.engine.cuda_driver import Driver
from edged.errors import CudaUnavailable, MissingExtra
from tests.cuda import fake

OPEN = """
from edged.engine.cuda import Device
try:
    Device().close()
except Exception as error:
    print(type(error).__name__, error)
"""


def test_without_pycuda() -> None:
    if importlib.util.find_spec("pycuda"):
        pytest.skip("pycuda is installed in this environment")
    with pytest.raises(MissingExtra, match=r"'pycuda'.*\[tensorrt\]"):
        Device()


def test_without_a_driver(tmp_path: Path) -> None:
    reason = fake.unavailable()
    if reason:
        pytest.skip(reason)
    try:
        Driver()
    except CudaUnavailable:
        pass
    else:
        pytest.skip("this machine has an NVIDIA driver")
    env = fake.environment(tmp_path / "libcuda.so.1")
    done = subprocess.run([sys.executable, "-c", OPEN], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("CudaUnavailable pycuda cannot be loaded: libcuda.so.1"), done.stdout


def test_a_library_that_is_no_driver(tmp_path: Path) -> None:
    """One without the functions that pycuda links: of another version, or of something else."""
    reason = fake.unavailable()
    if reason:
        pytest.skip(reason)
    library = tmp_path / "libcuda.so.1"
    command = ["cc", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-x", "c", "/dev/null", "-o", library]
    subprocess.run(command, check=True)
    env = fake.environment(library)
    done = subprocess.run([sys.executable, "-c", OPEN], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("CudaUnavailable pycuda cannot be loaded:"), done.stdout


@pytest.mark.parametrize(
    ("failing", "error"),
    [("cuInit:1:100", "CUDA_ERROR_NO_DEVICE"), ("cuInit:1:999", "CUDA_ERROR_UNKNOWN"), ("", "")],
)
def test_a_driver_that_does_not_start(libcuda: Path, failing: str, error: str) -> None:
    """In a process that finds the library by its name, as the daemon does."""
    env = fake.environment(libcuda, fail=failing)
    done = subprocess.run([sys.executable, "-c", OPEN], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("CudaUnavailable CUDA device 0: cuInit failed" if error else "")
    assert error in done.stdout
    assert not done.stderr
