"""What there is: packages, compiler, driver, devices. Nothing but the driver's library is loaded."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

from gpu_checking import Skip

PACKAGES = ("numpy", "onnxruntime", "onnx", "pycuda", "tensorrt", "tensorrt-cu12", "tensorrt-cu13")
MAJOR, MINOR, INTEGRATED, PROCESSORS = 75, 76, 18, 16  # CU_DEVICE_ATTRIBUTE_*


def packages() -> dict[str, Any]:
    """Installed versions, "" for what is not there, and the CUDA compiler's last line."""
    return {"packages": {name: _version(name) for name in PACKAGES}, "nvcc": _nvcc()}


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def nvcc() -> str:
    """The compiler's path, "" where there is none."""
    usual = Path("/usr/local/cuda/bin/nvcc")
    return shutil.which("nvcc") or (str(usual) if usual.exists() else "")


def _nvcc() -> str:
    if not nvcc():
        return ""
    told = subprocess.run([nvcc(), "--version"], capture_output=True, text=True, timeout=10, check=False)
    return next((line for line in told.stdout.splitlines() if "release" in line), "").strip()


def driver() -> dict[str, Any]:
    """The driver's version of CUDA, and each device."""
    from edged.engine.cuda_driver import LIBRARY, Driver

    try:
        ctypes.CDLL(LIBRARY)
    except OSError as error:
        raise Skip(f"there is no NVIDIA driver: {error}") from None
    cuda, number = Driver(), ctypes.c_int()
    cuda.call("cuDriverGetVersion", ctypes.byref(number))
    cuda.call("cuInit", ctypes.c_uint(0))
    version = number.value
    cuda.call("cuDeviceGetCount", ctypes.byref(number))
    return {
        "cuda": f"{version // 1000}.{version % 1000 // 10}",
        "kernel_module": _first_line("/proc/driver/nvidia/version") or _first_line("/etc/nv_tegra_release"),
        "devices": [_device(cuda, ordinal) for ordinal in range(number.value)],
    }


def _device(cuda: Any, ordinal: int) -> dict[str, Any]:
    device, name, size = ctypes.c_int(), ctypes.create_string_buffer(256), ctypes.c_size_t()
    cuda.call("cuDeviceGet", ctypes.byref(device), ctypes.c_int(ordinal))
    cuda.call("cuDeviceGetName", name, ctypes.c_int(len(name)), device)
    cuda.call("cuDeviceTotalMem_v2", ctypes.byref(size), device)

    def attribute(which: int) -> int:
        value = ctypes.c_int()
        cuda.call("cuDeviceGetAttribute", ctypes.byref(value), ctypes.c_int(which), device)
        return value.value

    return {
        "name": name.value.decode(errors="replace"),
        "capability": f"{attribute(MAJOR)}.{attribute(MINOR)}",
        "memory": size.value,
        "integrated": bool(attribute(INTEGRATED)),
        "multiprocessors": attribute(PROCESSORS),
    }


def _first_line(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace").partition("\n")[0].strip()
    except OSError:
        return ""
