"""Checks of a Jetson, on folders in the place of a board: none of this was seen on one."""

from __future__ import annotations

from pathlib import Path

import pytest

from edged.doctor.findings import Finding
from edged.doctor.jetson import board

RELEASE = "# R36 (release), REVISION: 4.3, GCID: 38968081, BOARD: generic, EABI: aarch64\n"
CONF = "< POWER_MODEL ID=0 NAME=15W >\nCPU_ONLINE CORE_0 1\n< POWER_MODEL ID=2 NAME=MAXN_SUPER >\n"
SWAPS = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A board as it comes: middle power mode, clocks that vary, zram."""
    files = {
        "proc/device-tree/model": "NVIDIA Jetson Orin Nano Developer Kit\0",
        "etc/nv_tegra_release": RELEASE,
        "etc/nvpmodel.conf": CONF,
        "proc/swaps": f"{SWAPS}/dev/zram0 partition 635456 0 5\n/dev/zram1 partition 635456 1000 5\n",
        "sys/class/devfreq/17000000.gpu/min_freq": "306000000\n",
        "sys/class/devfreq/17000000.gpu/max_freq": "624750000\n",
    }
    for core in range(6):
        folder = f"sys/devices/system/cpu/cpu{core}/cpufreq"
        files |= {f"{folder}/scaling_min_freq": "729600\n", f"{folder}/scaling_max_freq": "1510400\n"}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def found(root: Path, told: str = "NV Power Mode: 15W\n0\n") -> dict[str, Finding]:
    findings = {finding.name: finding for finding in board(root, lambda: told)}
    assert all(f.remedy or f.state in ("ok", "skipped") for f in findings.values())
    return findings


def test_other_machines_are_not_told_of(tmp_path: Path) -> None:
    assert found(tmp_path) == {}
    (tmp_path / "proc/device-tree").mkdir(parents=True)
    (tmp_path / "proc/device-tree/model").write_text("Raspberry Pi 5\0")
    assert found(tmp_path) == {}


def test_which_board_it_is(root: Path) -> None:
    assert found(root)["Jetson"].message == "NVIDIA Jetson Orin Nano Developer Kit, Jetson Linux 36.4.3"
    (root / "etc/nv_tegra_release").unlink()
    assert found(root)["Jetson"].message == "NVIDIA Jetson Orin Nano Developer Kit"


def test_a_power_mode_below_the_highest_names_the_command_for_it(root: Path) -> None:
    mode = found(root)["power mode"]
    assert (mode.state, mode.message) == ("warning", "15W; there are 15W (0), MAXN_SUPER (2)")
    assert mode.remedy.endswith("sudo nvpmodel -m 2")
    assert found(root, "NV Power Mode: MAXN_SUPER\n2\n")["power mode"].state == "ok"
    assert found(root, "")["power mode"].state == "skipped"
    (root / "etc/nvpmodel.conf").unlink()
    assert "nvpmodel -m ID" in found(root)["power mode"].remedy


def test_clocks_that_vary_are_told_once_a_kind(root: Path) -> None:
    clocks = found(root)["clocks"]
    assert clocks.message == "vary with the load: GPU 306 to 625 MHz, processor 730 to 1510 MHz"
    assert "jetson_clocks" in clocks.remedy
    for file in root.glob("sys/**/*min_freq"):
        file.write_text(file.with_name(file.name.replace("min", "max")).read_text())
    assert found(root)["clocks"].message == "fixed"
    for file in root.glob("sys/**/*_freq"):
        file.unlink()
    assert found(root)["clocks"].state == "skipped", "what cannot be read may vary or not"


def test_memory_that_is_swapped_out_is_a_warning(root: Path) -> None:
    assert found(root)["swap"].message == "zram0 635 MB, zram1 635 MB, 1 MB of it in use"
    (root / "proc/swaps").write_text(f"{SWAPS}/swap file 4194300 300000 -2\n")
    swap = found(root)["swap"]
    assert (swap.state, swap.message) == ("warning", "300 MB are swapped out of memory (swap 4194 MB)")
    (root / "proc/swaps").write_text(SWAPS)
    assert found(root)["swap"].state == "ok"
