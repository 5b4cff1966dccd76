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
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# trixie has a newer systemd, and takes another three minutes to make.
SUITE = os.environ.get("EDGED_TEST_SUITE", "bookworm")
PYTHON = {"bookworm": "3.11", "trixie": "3.13"}
PACKAGES = "systemd,systemd-sysv,dbus,libpam-systemd,python3,libportaudio2,libasound2-plugins,libsonic0"
EXTRAS = ("voice-en", "chattts")
# Importing them as root leaves their compiled form, which the service may not write.
MODULES = (
    "asyncio, click, hibari, msgspec, numpy, onnx, onnxruntime, opencc, psutil, rich, sounddevice, "
    "soundfile, soxr, tokenizers, yaml, zmq.auth.thread"
)
TIMEOUT_S = 600
KEPT_S = 7 * 86_400


class Unavailable(Exception):
    """Why there is no machine; a reason to skip."""


def cached() -> Path:
    """The folder, made if it is not there. Raises `Unavailable`."""
    key = hashlib.sha256(repr((SUITE, PACKAGES, MODULES, requirements())).encode()).hexdigest()
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "edged-tests"
    caches.mkdir(parents=True, exist_ok=True)
    folder = caches / f"rootfs-{key[:16]}"
    with (caches / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if folder.is_dir():
            os.utime(folder)
            return folder
        for former in caches.glob("rootfs-*"):  # a newer one may be in use, by another checkout
            if time.time() - former.stat().st_mtime > KEPT_S:
                shutil.rmtree(former)
        unfinished = caches / "unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        _make(unfinished)
        unfinished.rename(folder)
        os.utime(folder)
    return folder


def requirements() -> list[str]:
    """What edged and its voices need, from pyproject.toml."""
    text = (ROOT / "pyproject.toml").read_text()
    names = ("dependencies", *EXTRAS)
    lists = [re.search(rf"^{re.escape(name)} = \[(.*?)\]$", text, re.M | re.S) for name in names]
    return [wanted for found in lists if found for wanted in re.findall(r'"([^"]+)"', found[1])]


def python(folder: Path) -> str:
    """ "3.11", the version inside."""
    return (folder / "usr/bin/python3").readlink().name.removeprefix("python")


def packages(folder: Path) -> Path:
    """Where edged's environment has its packages."""
    return folder / "opt/edged/lib" / f"python{python(folder)}" / "site-packages"


def _make(folder: Path) -> None:
    """The packages of Debian, and meanwhile those of Python, which need nothing but the version of it."""
    modules = folder.with_name("modules")
    shutil.rmtree(modules, ignore_errors=True)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-compile", "--target", str(modules)]
    pip += ["--python-version", PYTHON[SUITE], "--only-binary=:all:", *requirements()]
    # Without documentation and translations it would be smaller, and takes half as long again to make.
    debian = ["mmdebstrap", "--quiet", "--variant=apt", "--format=directory", f"--include={PACKAGES}"]
    debian += ["--dpkgopt=force-unsafe-io", SUITE, str(folder)]
    with ThreadPoolExecutor(2) as both:
        list(both.map(_run, (debian, pip)))
    _run(["chroot", str(folder), "python3", "-m", "venv", "--without-pip", "/opt/edged"])
    for path in modules.iterdir():
        path.rename(packages(folder) / path.name)
    modules.rmdir()
    _run(["chroot", str(folder), "/opt/edged/bin/python", "-c", f"import {MODULES}"])


def _run(command: list[str]) -> None:
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{command[0]} took longer than {TIMEOUT_S} s") from None
    if result.returncode:
        last = (result.stderr or result.stdout).strip().splitlines()[-3:]
        raise Unavailable(f"{command[0]}: {' | '.join(last)}")
