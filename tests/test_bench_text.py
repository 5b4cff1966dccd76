"""tools/bench text: it runs to its end, and its figures are possible ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
KEYS = {"median_ms", "p95_ms", "cpu_ms", "prepare_cpu_ms", "long_ms_per_kb", "load_ms", "added_mb", "machine"}
ENVIRONMENT = {**os.environ, "EDGED_BENCH_HERE": "1", "PYTHONPATH": str(ROOT)}


def bench(*arguments: str) -> str:
    command = [sys.executable, str(ROOT / "tools/bench"), "text", "--quick", *arguments]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_figure_is_there_and_possible() -> None:
    columns = json.loads(bench("--json"))
    assert list(columns) == ["en", "zh", "mixed", "figures"]
    for kind, figures in columns.items():
        assert set(figures) == KEYS
        assert 0 < figures["median_ms"] <= figures["p95_ms"], kind
        assert figures["cpu_ms"] > 0
        assert figures["prepare_cpu_ms"] > 0
        assert figures["long_ms_per_kb"] > 0
        assert 0 < figures["added_mb"] < 60, kind
        assert figures["load_ms"] > 0


@pytest.mark.parametrize("key", sorted(KEYS - {"machine"}))
def test_the_table_names_every_figure(key: str, printed: str) -> None:
    assert key in printed


@pytest.fixture(scope="module")
def printed() -> str:
    return bench()
