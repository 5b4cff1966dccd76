"""The memory of a real process, as the kernel tells it."""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from edged.footprint import ARENAS, SLACK_MB, Footprint, trim


def test_the_exact_figure_is_what_the_kernel_counts() -> None:
    usage = Footprint().measure()
    counted = psutil.Process().memory_full_info()
    assert usage.exact
    assert usage.mb == pytest.approx((counted.pss + counted.swap) / 1e6, abs=8.0)


def test_far_below_what_matters_the_cheap_figure_does_and_is_no_less() -> None:
    cheap, exact = Footprint().measure(1e6), Footprint().measure()
    assert not cheap.exact
    assert cheap.mb > exact.mb - SLACK_MB


def test_memory_that_is_taken_shows_in_both() -> None:
    before = Footprint().measure().mb, Footprint().measure(1e6).mb
    held = b"\xff" * 64_000_000
    after = Footprint().measure().mb, Footprint().measure(1e6).mb
    assert [b - a for a, b in zip(before, after, strict=True)] == pytest.approx([64.0, 64.0], abs=8.0)
    del held


def test_a_page_shared_with_another_process_counts_half() -> None:
    size = 64 << 20
    with mmap.mmap(-1, size) as shared:
        shared.write(b"\xff" * size)
        alone = Footprint().measure().mb
        pid = os.fork()
        if pid == 0:
            sum(shared[::4096])
            os.kill(os.getpid(), signal.SIGSTOP)  # the parent measures meanwhile
            os._exit(0)
        os.waitpid(pid, os.WUNTRACED)
        both = Footprint().measure().mb
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    assert both < alone - 0.4 * size / 1e6


def test_gpu_memory_is_added_and_settles_what_matters() -> None:
    usage = Footprint(gpu_mb=lambda: 2000.0).measure(1500.0)
    assert usage.exact
    assert usage.mb == pytest.approx(2000.0 + usage.process_mb)


def test_where_the_exact_figure_is_hidden_the_resident_size_serves(tmp_path: Path) -> None:
    (tmp_path / "status").write_text("Name:\tx\nVmRSS:\t 100000 kB\nVmSwap:\t 25000 kB\n")
    usage = Footprint(proc=tmp_path).measure()
    assert not usage.exact
    assert usage.mb == pytest.approx(128.0)


def test_trim_gives_free_heap_back_to_the_kernel() -> None:
    """Blocks too small to be mapped one by one, with one that stays at the top of the heap."""
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "malloc_trim"):
        pytest.skip("this C library has no malloc_trim")
    code = """
import ctypes
from edged.footprint import Footprint, trim
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
blocks = [libc.malloc(ctypes.c_size_t(60_000)) for _ in range(1000)]
for block in blocks:
    ctypes.memset(block, 255, 60_000)
top = libc.malloc(ctypes.c_size_t(60_000))
for block in blocks:
    libc.free(ctypes.c_void_p(block))
before = Footprint().measure().mb
trim()
print(before - Footprint().measure().mb)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert float(run.stdout) > 40.0
    trim()


HEAPS = """
import ctypes, sys, threading
from edged.footprint import few_arenas
libc = ctypes.CDLL(None)
libc.malloc.restype = libc.fopen.restype = ctypes.c_void_p
if sys.argv[2] == "few":
    few_arenas()
barrier = threading.Barrier(12)
def take():
    barrier.wait()
    libc.malloc(10_000)
    barrier.wait()
threads = [threading.Thread(target=take) for _ in range(12)]
for thread in threads: thread.start()
for thread in threads: thread.join()
out = ctypes.c_void_p(libc.fopen(sys.argv[1].encode(), b"w"))
libc.malloc_info(0, out)
libc.fclose(out)
"""


def heaps(place: Path, how: str) -> int:
    subprocess.run([sys.executable, "-c", HEAPS, str(place), how], check=True)
    return place.read_text().count("<heap nr=")


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_info"), reason="not glibc")
def test_threads_share_few_heaps(tmp_path: Path) -> None:
    assert heaps(tmp_path / "as it is", "many") > ARENAS
    assert heaps(tmp_path / "few", "few") <= ARENAS
