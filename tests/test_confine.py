"""What a process that tries a bundle may still do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from edged.voices import confine

as_root = pytest.mark.skipif(
    os.geteuid() != 0 or not confine._may_read_everything(), reason="only root has something to give up"
)


def confined(code: str, memory_mb: int = 200, **arguments: str) -> str:
    """What the code prints after `confine`; raises with its stderr when it fails."""
    begin = f"import os, socket, sys\nfrom edged.voices.confine import confine\nconfine({memory_mb})\n"
    command = [sys.executable, "-c", begin + code, *arguments.values()]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        raise RuntimeError(result.stderr)
    return result.stdout.strip()


def test_it_cannot_take_more_memory_than_the_daemon() -> None:
    confined("bytearray(200_000_000)", memory_mb=16)
    with pytest.raises(RuntimeError, match="MemoryError"):
        confined("bytearray(2_000_000_000)", memory_mb=16)


def test_it_gives_way_to_everything_else() -> None:
    nice, score = confined("print(os.nice(0), open('/proc/self/oom_score_adj').read())").split()
    assert int(nice) == min(19, os.nice(0) + 10)
    assert score == "1000"


@as_root
def test_it_is_not_root_and_keeps_one_capability() -> None:
    status = dict(
        line.split(":", 1) for line in confined("print(open('/proc/self/status').read())").splitlines()
    )
    assert status["Uid"].split() == status["Gid"].split() == [str(confine.NOBODY)] * 4
    assert status["Groups"].strip() == ""
    assert [int(status[name], 16) for name in ("CapEff", "CapPrm", "CapInh")] == [1 << 2, 1 << 2, 0]
    assert status["NoNewPrivs"].strip() == "1"


@as_root
def test_it_reads_every_file_and_writes_none(tmp_path: Path) -> None:
    secret = tmp_path / "file"
    secret.write_text("content")
    secret.chmod(0o600)
    tmp_path.chmod(0o700)
    assert confined("print(open(sys.argv[1]).read())", path=str(secret)) == "content"
    with pytest.raises(RuntimeError, match="PermissionError"):
        confined("open(sys.argv[1], 'a')", path=str(secret))
    with pytest.raises(RuntimeError, match="PermissionError"):
        confined("os.setuid(0)")
    with pytest.raises(RuntimeError, match="PermissionError"):
        confined("os.kill(int(sys.argv[1]), 0)", pid=str(os.getpid()))


@as_root
def test_it_is_not_on_the_network() -> None:
    inside = confined("print(os.readlink('/proc/self/ns/net'))")
    if inside == os.readlink("/proc/self/ns/net"):
        pytest.skip("this system gives no process a network of its own")
    with pytest.raises(RuntimeError, match=r"Network is unreachable|Cannot assign"):
        confined("socket.create_connection(('127.0.0.1', 9), 2)")


def test_it_ends_with_the_process_that_began_it() -> None:
    inner = "from edged.voices.confine import confine; import time\n"
    inner += "confine(200); print('', flush=True); time.sleep(60)"
    outer = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {inner!r}])"
    parent = subprocess.Popen([sys.executable, "-c", outer], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    parent.stdout.readline()  # the child is confined
    parent.kill()
    parent.communicate(timeout=20)  # the pipe ends when the child, which has it too, has ended


def test_a_gpu_s_groups_are_those_of_its_nodes(tmp_path: Path) -> None:
    (tmp_path / "dri").mkdir()
    nodes = {"nvmap": 44, "nvhost-gpu": 44, "dri/renderD128": 104, "dri/card0": 7, "nvidia0": 0, "null": 9}
    if os.geteuid() != 0:
        pytest.skip("only root may give files to groups")
    for name, group in nodes.items():
        (tmp_path / name).touch()
        os.chown(tmp_path / name, -1, group)
    assert confine.device_groups(tmp_path) == [44, 104]
