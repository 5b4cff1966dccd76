"""The stand-in for libcuda.so.1: compiled here, loaded in a process of its own, asked what was allocated.

A process has one libcuda, so whoever uses this one runs in a child: `tests/cuda/conftest.py` forks each test
of its folder, other tests start a process with `environment`.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

from edged.engine.cuda import Device

HERE = Path(__file__).resolve().parent
PREPARED = Path(os.environ.get("EDGED_TEST_CUDA", HERE.parent.parent / ".venv" / "cuda"))


def unavailable() -> str:
    """Why pycuda cannot be used here, "" when it can."""
    if not shutil.which("cc") or not shutil.which("nm"):
        return "there is no C compiler"
    if not any(PREPARED.glob(f"pycuda/_driver.cpython-{sys.version_info[0]}{sys.version_info[1]}-*")):
        return f"pycuda is not compiled in {PREPARED}: run tools/test_cuda, which needs nvcc"
    return ""


def build(folder: Path) -> Path:
    """Compiles libcuda.so.1 into the folder. What only pycuda wants says that it is not supported."""
    own, whole, rest = folder / "libfake.so", folder / "libcuda.so.1", folder / "rest.c"
    compiler = ["cc", "-std=gnu11", "-O1", "-g", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1"]
    subprocess.run([*compiler, HERE / "fake_libcuda.c", "-o", own], check=True)
    extension = next(PREPARED.glob("pycuda/_driver.*"), None)
    wanted = _symbols("--undefined-only", extension) if extension else set()
    names = sorted(wanted - _symbols("--defined-only", own))
    rest.write_text("".join(f"int {name}(void) {{ return 801; }}\n" for name in names))
    subprocess.run([*compiler, HERE / "fake_libcuda.c", rest, "-o", whole], check=True)
    return whole


def _symbols(which: str, library: Path) -> set[str]:
    listed = subprocess.run(["nm", "-D", which, library], check=True, capture_output=True, text=True)
    names = (line.split()[-1] for line in listed.stdout.splitlines())
    return {name for name in names if name.startswith("cu") and name[2:3].isupper()}


def environment(library: Path, **settings: str | int) -> dict[str, str]:
    """For a process that is to find the stand-in and pycuda; settings are the FAKE_CUDA_... of the C file."""
    paths = [str(HERE.parent.parent), str(PREPARED), os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        "LD_LIBRARY_PATH": os.pathsep.join([str(library.parent), os.environ.get("LD_LIBRARY_PATH", "")]),
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        **{f"FAKE_CUDA_{name.upper()}": str(value) for name, value in settings.items()},
    }


class Fake:
    """The stand-in's books. Loaded in this process, where every later look for libcuda.so.1 finds it."""

    def __init__(self, library: Path) -> None:
        self.stub = ctypes.CDLL(str(library), ctypes.RTLD_GLOBAL)
        if not hasattr(ctypes.CDLL("libcuda.so.1"), "fake_live"):
            raise RuntimeError("this process has loaded the real driver before")
        for name in ("fake_live", "fake_total", "fake_calls"):
            function = getattr(self.stub, name)
            function.argtypes, function.restype = [ctypes.c_char_p], ctypes.c_long
        self.stub.fake_fail.argtypes = [ctypes.c_char_p, ctypes.c_long, ctypes.c_int]
        self.stub.fake_fail.restype = None

    def live(self, kind: str) -> int:
        """Of device, pinned, stream, event, context, graph: how many there are."""
        return int(self.stub.fake_live(kind.encode()))

    def total(self, kind: str) -> int:
        """How many were ever made."""
        return int(self.stub.fake_total(kind.encode()))

    def calls(self, function: str) -> int:
        return int(self.stub.fake_calls(function.encode()))

    def fail(self, function: str, code: int, nth: int = 1) -> None:
        """The nth call from now, and every later one, gives this code; 0 ends that."""
        self.stub.fake_fail(function.encode(), nth, code)

    def left(self) -> dict[str, int]:
        """What is alive, by kind."""
        kinds = ("device", "pinned", "stream", "event", "context", "graph")
        return {kind: self.live(kind) for kind in kinds if self.live(kind)}


def opened() -> Device:
    """The device, for use by the calling thread."""
    device = Device()
    device.use()
    return device
