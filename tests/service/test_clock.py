"""The wall clock jumps, as when a box without a battery hears from a time server: edged must not care.

The clock is the host's, which a test must not set: a library that is loaded first moves it for one process.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
import time
from pathlib import Path

import pytest

from tests.service.edged import LONG, Edged, saying

pytestmark = [pytest.mark.systemd, pytest.mark.timeout(600)]

SOURCE = Path(__file__).with_name("clock_step.c")
LIBRARY = "/usr/local/lib/clock_step.so"
STEP = "/usr/local/lib/clock_step"
YEAR_S = 365 * 86_400


class Clock:
    """Of the service and of commands that are told to use it."""

    def __init__(self, edged: Edged) -> None:
        self._edged = edged
        target = edged.machine.root / LIBRARY.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        build = ["cc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", str(target), str(SOURCE)]
        subprocess.run(build, check=True)
        self._step = edged.machine.root / STEP.lstrip("/")
        self._step.write_bytes(struct.pack("q", 0))
        settings = f"[Service]\nEnvironment=LD_PRELOAD={LIBRARY} CLOCK_STEP={STEP}\nWatchdogSec=4\n"
        edged.drop_in("clock.conf", settings)

    def step(self, seconds: int) -> None:
        with self._step.open("r+b") as file:
            file.write(struct.pack("q", seconds))

    def ahead_s(self) -> float:
        """As a process inside finds it."""
        ask = ["env", f"LD_PRELOAD={LIBRARY}", f"CLOCK_STEP={STEP}", "/opt/edged/bin/python", "-c"]
        return float(self._edged.machine.run(*ask, "import time; print(time.time())").stdout) - time.time()


@pytest.mark.skipif(shutil.which("cc") is None, reason="not installed: a C compiler")
def test_no_deadline_and_no_pause_goes_by_the_wall_clock(edged: Edged) -> None:
    edged.configure(
        "voices: {bundles: [slow]}\naudio: {enabled: false}\n"
        "stats: {prometheus_file: /var/lib/edged/edged.prom, prometheus_file_s: 1}\n"
    )
    clock = Clock(edged)
    edged.start()
    assert LIBRARY in (edged.machine.root / f"proc/{edged.pid}/maps").read_text()
    statistics = edged.machine.root / "var/lib/edged/edged.prom"
    for seconds in (YEAR_S, -YEAR_S, 0):
        with saying(edged, LONG, "--deadline-ms", "60000") as job:
            clock.step(seconds)
            assert abs(clock.ahead_s() - seconds) < 60, "the library works"
            error = job.communicate(timeout=60)[1]
        assert (job.returncode, error) == (0, "")
        statistics.unlink(missing_ok=True)
        end = time.monotonic() + 10
        while not statistics.exists():
            assert time.monotonic() < end, "what is done once a second is still done"
            time.sleep(0.1)
        assert edged.speaks()
    time.sleep(5)  # more than systemd waits for a sign of life
    assert edged.speaks()
    assert edged.show("NRestarts") == "0"
    edged.machine.run("systemctl", "stop", "edged")
    assert edged.show("Result") == "success"
    assert " [" not in "".join(line for line in edged.log.splitlines() if "code=" in line)
