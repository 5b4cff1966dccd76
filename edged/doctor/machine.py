"""Checks of the machine: versions, processor, GPU, memory, disk, clock. Main thread.

They read /proc and the like, and change nothing. Neighbour: `findings` runs them.
"""

from __future__ import annotations

import ctypes
import os
import platform
import shutil
import time
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import psutil

import edged
from edged.doctor.findings import Case, Finding
from edged.engine.cuda_driver import LIBRARY, Driver
from edged.errors import CudaError, CudaUnavailable, EdgedError
from edged.paths import bundle_directories

PACKAGES = ("click", "msgspec", "numpy", "onnxruntime", "psutil", "pyyaml", "pyzmq", "rich", "sounddevice")
MORE_PACKAGES = ("pulsectl", "soundfile", "soxr")
OPTIONAL = ("hibari-tts", "onnx", "tokenizers", "systemd-python", "tensorrt", "pycuda")
LOW_DISK_MB, NO_DISK_MB = 500.0, 50.0
LOW_MEMORY_MB = 150.0  # free beside a daemon that has its buffers already


def versions(case: Case) -> Iterator[Finding]:
    found = installed((*PACKAGES, *MORE_PACKAGES))
    missing = [name for name, version in found.items() if not version]
    if missing:
        remedy = "install edged again, in its own environment"
        yield Finding("versions", "failed", f"not installed: {', '.join(missing)}", remedy, "missing_extra")
        return
    told = f"edged {edged.__version__}, Python {platform.python_version()}, onnxruntime "
    yield Finding("versions", "ok", told + found["onnxruntime"])


def installed(names: tuple[str, ...]) -> dict[str, str]:
    """Versions of distributions, "" for one that is not there."""
    found = {}
    for name in names:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = ""
    return found


def processor(case: Case) -> Iterator[Finding]:
    cores = len(os.sched_getaffinity(0))
    model, flags = _cpuinfo()
    wanted = {"x86_64": ("avx2", "avx512_vnni", "avx_vnni"), "aarch64": ("asimd", "asimddp", "i8mm")}
    names = wanted.get(platform.machine(), ())
    there = [name for name in names if name in flags]
    told = f"{model or platform.machine()}, {cores} {'core' if cores == 1 else 'cores'}"
    told += f", {' '.join(there)}" if there else ""
    if names and flags and names[0] not in flags:
        yield Finding("processor", "warning", f"{told}: no {names[0]}", "speech may be slower than real time")
    elif cores < 2:
        yield Finding("processor", "warning", told, "give the service two cores (CPUAffinity=, CPUQuota=)")
    else:
        yield Finding("processor", "ok", told)


def _cpuinfo() -> tuple[str, set[str]]:
    """Model and features; empty where /proc hides them."""
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:
        return "", set()
    pairs = [(name.strip().lower(), value.strip()) for name, _, value in (x.partition(":") for x in lines)]
    model = next((value for name, value in pairs if name == "model name"), "")
    flags = next((value for name, value in pairs if name in ("flags", "features")), "")
    return model, set(flags.split())


def gpu(case: Case) -> Iterator[Finding]:
    """Driver and CUDA where present; nothing of it is needed where no voice is for the GPU."""
    tegra = _first_line("/etc/nv_tegra_release")
    driver = _first_line("/proc/driver/nvidia/version")
    devices = any(Path(path).exists() for path in ("/dev/nvidia0", "/dev/nvhost-gpu", "/dev/nvmap"))
    if not (tegra or driver or devices):
        yield Finding("GPU", "ok", "none; voices for onnxruntime are computed on the processor")
        return
    cuda = _cuda_version()
    told = "; ".join(part for part in (tegra.lstrip("# "), driver.removeprefix("NVRM version: ")) if part)
    if cuda:
        yield Finding("GPU", "ok", f"{told or 'NVIDIA'}; driver for CUDA {cuda}")
    else:
        text = f"{told or 'NVIDIA device nodes'}, but {LIBRARY} cannot be loaded"
        yield Finding("GPU", "warning", text, CudaUnavailable.default_hint, CudaUnavailable.code)


def _cuda_version() -> str:
    """The driver's highest CUDA version. Asking for it does not initialise the GPU."""
    number = ctypes.c_int()
    try:
        Driver().call("cuDriverGetVersion", ctypes.byref(number))
    except (CudaError, CudaUnavailable):
        return ""
    return f"{number.value // 1000}.{number.value % 1000 // 10}"


def _first_line(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace").split("\n", 1)[0].strip()
    except OSError:
        return ""


def memory(case: Case) -> Iterator[Finding]:
    """Whether there is room for the daemon, or beside it when it runs."""
    free_mb = psutil.virtual_memory().available / 1e6
    total_mb = psutil.virtual_memory().total / 1e6
    runs = not isinstance(case.status, EdgedError)
    needed_mb = LOW_MEMORY_MB if runs else float(case.settings.service.memory_mb)
    told = f"{free_mb:.0f} of {total_mb:.0f} MB available"
    if free_mb < needed_mb:
        wanted = "beside the daemon" if runs else "service.memory_mb"
        remedy = "stop other programs, or load smaller voices and lower service.memory_mb"
        yield Finding("memory", "warning", f"{told}, {needed_mb:.0f} are wanted ({wanted})", remedy)
    else:
        yield Finding("memory", "ok", told)


def disk(case: Case) -> Iterator[Finding]:
    """Room where bundles and the journal are. A read-only file system is no fault by itself."""
    places = {_existing(path) for path in (*bundle_directories(case.settings.voices.directory)[:1],)}
    places |= {_existing(Path("/var/log")), _existing(Path("/tmp"))}
    devices = {place.stat().st_dev: place for place in sorted(places, reverse=True)}
    for place in sorted(devices.values()):
        free_mb = shutil.disk_usage(place).free / 1e6
        told = f"{place}: {free_mb:.0f} MB free"
        if free_mb < LOW_DISK_MB:
            remedy = "make room: journalctl --vacuum-size=100M, edged bundle list, apt clean"
            yield Finding("disk", "failed" if free_mb < NO_DISK_MB else "warning", told, remedy)
        else:
            yield Finding("disk", "ok", told)


def _existing(path: Path) -> Path:
    return next(place for place in (path, *path.parents) if place.exists())


def clock(case: Case) -> Iterator[Finding]:
    """A clock that is before the installation makes the journal's times useless; speech does not use it."""
    now, installed_at = time.time(), Path(edged.__file__).stat().st_mtime
    told = time.strftime("%Y-%m-%d %H:%M:%S %z", time.localtime(now))
    if now < installed_at - 86_400:
        remedy = "set it (timedatectl set-time ...), replace the battery of the clock, or reach a time server"
        yield Finding("clock", "warning", f"{told} is before edged was installed", remedy)
    else:
        yield Finding("clock", "ok", told)
