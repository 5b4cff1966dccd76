"""Huge pages under memory of this process, as the kernel itself reports them."""

from __future__ import annotations

import mmap
import re
from pathlib import Path

import numpy as np
import pytest

from edged.engine import pages

SIZE = 16 * pages.HUGE
ENABLED = Path("/sys/kernel/mm/transparent_hugepage/enabled")


def smaps(*mappings: tuple[int, int, str, int]) -> str:
    return "".join(
        f"{start:x}-{end:x} {rest}\nSize: 1 kB\nRss: {rss >> 10} kB\nVmFlags: rd wr\n"
        for start, end, rest, rss in mappings
    )


def test_only_whole_huge_pages_of_filled_private_memory() -> None:
    page, anonymous = pages.HUGE, "rw-p 00000000 00:00 0 "
    text = smaps(
        (page + 4096, 4 * page + 4096, anonymous, 3 * page),
        (10 * page, 12 * page, anonymous, page // 2),  # mostly untouched
        (20 * page, 22 * page, "rw-p 00000000 08:01 77 /a/file", 2 * page),
        (30 * page, 32 * page, "r--p 00000000 00:00 0 ", 2 * page),
        (40 * page, 42 * page, "rw-s 00000000 00:00 0 ", 2 * page),
        (50 * page, 52 * page, "rw-p 00000000 00:00 0    [heap]", 2 * page),
        (60 * page, 62 * page, "rw-p 00000000 00:00 0    [stack]", 2 * page),
        (70 * page + 1, 71 * page, anonymous, page),  # no whole page inside
    )
    assert list(pages._regions(text)) == [(2 * page, 2 * page), (50 * page, 2 * page)]


def huge_kb(address: int) -> int:
    for block in re.split(r"\n(?=[0-9a-f]+-[0-9a-f]+ )", Path("/proc/self/smaps").read_text()):
        start, end = (int(part, 16) for part in block.split(maxsplit=1)[0].split("-"))
        if start <= address < end:
            found = re.search(r"AnonHugePages: +(\d+)", block)
            assert found is not None
            return int(found[1])
    raise AssertionError("not mapped")


@pytest.mark.skipif(
    not ENABLED.exists() or "[never]" in ENABLED.read_text(), reason="the kernel has no huge pages"
)
def test_memory_in_use_keeps_its_content() -> None:
    with mmap.mmap(-1, SIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        array = np.frombuffer(memory, np.uint32)
        array[:] = np.arange(len(array))
        address = array.ctypes.data
        assert pages.collapse() >= SIZE - 2 * pages.HUGE
        pages.start().join(60)
        assert (array == np.arange(len(array))).all()
        huge = huge_kb(address)
        del array
    assert huge == 0 or huge << 10 >= pages.HUGE  # none on a kernel that only promises


def test_a_hidden_proc_changes_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(pages, "_SMAPS", tmp_path / "absent")
    assert pages.collapse() == 0
