"""How fast this machine was set to run while TensorRT measured its tactics: facts for the manifest.

CLI process only. Plans are chosen by times, so a board in a low power mode chooses others. Everything here
may be absent: what is not found is left out. Neighbour: `chattts/plans.py` puts it into the manifest.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

LIMIT_S = 10.0
_COMMANDS = {
    "power_mode": ("nvpmodel", "-q"),  # Jetson: its name on one line, its number on the next
    "gpu_max_mhz": (
        "nvidia-smi",
        "--query-gpu=clocks.max.sm,clocks.max.mem",
        "--format=csv,noheader",
    ),
}


def clocks(root: Path = Path("/")) -> dict[str, str]:
    """Power mode, and the frequencies of processor and GPU as now and at most."""
    found = {name: told for name, command in _COMMANDS.items() if (told := _told(command))}
    for policy in sorted(root.glob("sys/devices/system/cpu/cpufreq/policy*")):
        _frequency(
            found, f"cpu_{policy.name}", policy / "scaling_cur_freq", policy / "scaling_max_freq", 1000
        )
    for device in sorted(root.glob("sys/class/devfreq/*")):
        if "gpu" in device.name or "ga10b" in device.name or "gv11b" in device.name:
            _frequency(found, "gpu", device / "cur_freq", device / "max_freq", 1_000_000)
    return found


def _frequency(found: dict[str, str], name: str, now: Path, most: Path, unit: int) -> None:
    with suppress(OSError, ValueError):
        values = [int(path.read_text("ascii")) // unit for path in (now, most)]
        found[f"{name}_mhz"] = "{} of {}".format(*values)


def _told(command: Sequence[str]) -> str:
    """The command's answer on one line, "" where there is none."""
    with suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=True)
        return " ".join(done.stdout.split())[:200]
    return ""
