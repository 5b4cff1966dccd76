"""The root file system that the tests boot: a small Debian with what edged needs, made once and kept.

It lies in a cache directory and is never written to afterwards: a machine writes to memory laid over it.
`edged` itself is not in it, so that a change of the code needs no new one.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# trixie has a newer systemd, and takes another three minutes to make.
SUITE = os.environ.get("EDGED_TEST_SUITE", "bookworm")
PACKAGES = "systemd,systemd-sysv,dbus,libpam-systemd,python3,libportaudio2,libasound2-plugins"
LEFT_OUT = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*", "/usr/share/info/*")
EXTRA = "voice-en"
# Importing them as root leaves their compiled form, which the service may not write.
MODULES = (
    "asyncio, click, hibari, msgspec, numpy, onnx, onnxruntime, psutil, rich, sounddevice, soundfile, soxr, "
    "yaml, zmq.auth.thread"
)
TIMEOUT_S = 600


class Unavailable(Exception):
    """Why there is no machine; a reason to skip."""


def cached() -> Path:
    """The folder, made if it is not there. Raises `Unavailable`."""
    key = hashlib.sha256(repr((SUITE, PACKAGES, LEFT_OUT, MODULES, requirements())).encode()).hexdigest()
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "edged-tests"
    caches.mkdir(parents=True, exist_ok=True)
    folder = caches / f"rootfs-{key[:16]}"
    with (caches / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if folder.is_dir():
            return folder
        for former in caches.glob("rootfs-*"):
            shutil.rmtree(former)
        unfinished = caches / "unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        _make(unfinished)
        unfinished.rename(folder)
    return folder


def requirements() -> list[str]:
    """What edged and its built-in voice need, from pyproject.toml."""
    text = (ROOT / "pyproject.toml").read_text()
    lists = [
        re.search(rf"^{re.escape(name)} = \[(.*?)\]$", text, re.M | re.S) for name in ("dependencies", EXTRA)
    ]
    return [wanted for found in lists if found for wanted in re.findall(r'"([^"]+)"', found[1])]


def python(folder: Path) -> str:
    """ "3.11", the version inside."""
    return (folder / "usr/bin/python3").readlink().name.removeprefix("python")


def packages(folder: Path) -> Path:
    """Where edged's environment has its packages."""
    return folder / "opt/edged/lib" / f"python{python(folder)}" / "site-packages"


def _make(folder: Path) -> None:
    command = ["mmdebstrap", "--quiet", "--variant=apt", "--format=directory", f"--include={PACKAGES}"]
    command += ["--dpkgopt=force-unsafe-io", *(f"--dpkgopt=path-exclude={path}" for path in LEFT_OUT)]
    _run([*command, SUITE, str(folder)])
    _run(["chroot", str(folder), "python3", "-m", "venv", "--without-pip", "/opt/edged"])
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-compile",
        "--target",
        str(packages(folder)),
    ]
    _run([*pip, "--python-version", python(folder), "--only-binary=:all:", *requirements()])
    _run(["chroot", str(folder), "/opt/edged/bin/python", "-c", f"import {MODULES}"])


def _run(command: list[str]) -> None:
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{command[0]} took longer than {TIMEOUT_S} s") from None
    if result.returncode:
        last = (result.stderr or result.stdout).strip().splitlines()[-3:]
        raise Unavailable(f"{command[0]}: {' | '.join(last)}")
