"""Checks of an NVIDIA Jetson: power mode, clocks, swap. Main thread; they change nothing.

Every file is below `root`, and `power_mode` asks nvpmodel, so that a folder can stand in for a board. On
other machines nothing is said. Neighbour: `findings` runs them; deploy/jetson has the advice at length.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

from edged.doctor.findings import Case, Finding

WAIT_S = 10.0
SWAPPED_MB = 50.0  # more than that is in use: memory is short
_RELEASE = re.compile(r"# R(\d+) \(release\), REVISION: ([\d.]+)")
_ASKED = re.compile(r"NV Power Mode: *(\S+)(?:\s+(\d+))?")
_MODES = re.compile(r"^< *POWER_MODEL +ID=(\d+) +NAME=(\S+) *>", re.MULTILINE)
_FASTEST = "MAXN"  # and MAXN_SUPER: no bound on power


def jetson(case: Case) -> Iterator[Finding]:
    yield from board(Path("/"), _nvpmodel)


def board(root: Path, power_mode: Callable[[], str]) -> Iterator[Finding]:
    """power_mode: what `nvpmodel -q` prints; "" where it cannot be asked."""
    model = _text(root / "proc/device-tree/model").strip("\0\n ")
    release = _text(root / "etc/nv_tegra_release")
    if not (release or "Jetson" in model):
        return
    known = _RELEASE.match(release)
    linux = f", Jetson Linux {known[1]}.{known[2]}" if known else ""
    yield Finding("Jetson", "ok", f"{model or 'NVIDIA Tegra'}{linux}")
    yield _power(power_mode(), _text(root / "etc/nvpmodel.conf"))
    yield _clocks(root / "sys")
    yield _swap(_text(root / "proc/swaps"))


def _power(told: str, configured: str) -> Finding:
    asked = _ASKED.search(told)
    if asked is None:
        return Finding(
            "power mode", "skipped", "nvpmodel does not tell it; as root it may: sudo edged doctor"
        )
    name, modes = asked[1], dict(_MODES.findall(configured))
    fastest = next((f"sudo nvpmodel -m {n}" for n, other in modes.items() if other.startswith(_FASTEST)), "")
    if name.startswith(_FASTEST):
        return Finding("power mode", "ok", name)
    offered = f"; there are {', '.join(f'{other} ({n})' for n, other in modes.items())}" if modes else ""
    remedy = fastest or "sudo nvpmodel -m ID, where the power supply and the cooling allow more"
    return Finding("power mode", "warning", f"{name}{offered}", f"where power and cooling allow it: {remedy}")


def _clocks(sys: Path) -> Finding:
    """Clocks that rise and fall cost time at the start of a sentence; jetson_clocks fixes them."""
    found = dict.fromkeys(
        [_range("processor", path, "scaling_", 1e3) for path in sys.glob("devices/system/cpu/cpu*/cpufreq")]
        + [_range("GPU", path, "", 1e6) for path in sys.glob("class/devfreq/*gpu*")]
    )  # cores of a kind are told once
    moving = sorted(f"{name} {low:.0f} to {high:.0f} MHz" for name, low, high in found if low < high)
    if not any(high for _, _, high in found):
        return Finding("clocks", "skipped", "the kernel does not tell them")
    if not moving:
        return Finding("clocks", "ok", "fixed")
    told = ", ".join(moving)
    remedy = "for an even first audio: sudo jetson_clocks (takes more power; deploy/jetson/README.md)"
    return Finding("clocks", "ok", f"vary with the load: {told}", remedy)


def _range(name: str, folder: Path, prefix: str, units: float) -> tuple[str, float, float]:
    """Lowest and highest MHz that are allowed now."""
    low, high = (_number(folder / f"{prefix}{end}_freq") / units for end in ("min", "max"))
    return name, low, high


def _swap(table: str) -> Finding:
    rows = [line.split() for line in table.splitlines()[1:]]
    areas = [(row[0], int(row[2]) / 1e3, int(row[3]) / 1e3) for row in rows if len(row) > 3]
    used_mb = sum(used for _, _, used in areas)
    told = ", ".join(f"{name.rpartition('/')[2]} {size:.0f} MB" for name, size, _ in areas)
    if used_mb > SWAPPED_MB:
        remedy = "free memory: run without a desktop (sudo systemctl set-default multi-user.target)"
        return Finding("swap", "warning", f"{used_mb:.0f} MB are swapped out of memory ({told})", remedy)
    if not areas:
        return Finding(
            "swap", "ok", "none; building a bundle for TensorRT may need some: deploy/jetson/README.md"
        )
    return Finding("swap", "ok", f"{told}, {used_mb:.0f} MB of it in use")


def _nvpmodel() -> str:
    try:
        done = subprocess.run(["nvpmodel", "-q"], capture_output=True, text=True, timeout=WAIT_S, check=False)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout


def _number(path: Path) -> int:
    try:
        return int(_text(path))
    except ValueError:
        return 0


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
