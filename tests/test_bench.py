"""tools/bench chattts on a tiny checkpoint: it runs to its end, and its figures are possible ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.timeout(600)  # of one run
KEYS = (
    "rtf_1 step_ms floor_ms step_over_floor rtf_4 reference_rtf speedup over_llamacpp_1 over_llamacpp_4 "
    "first_audio_ms first_audio_p99_4_ms underruns rss_mb growth_mb large_allocations outside_engine_pct "
    "ready_s machine"
).split()


@pytest.fixture(scope="module")
def result(tiny_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    plots = tmp_path_factory.mktemp("bench") / "plots"
    command = [sys.executable, str(ROOT / "tools/bench"), "chattts", "--json", "--quick", "--precision=int8"]
    command += [f"--checkpoint={tiny_checkpoint}", f"--plots={plots}", "--jobs=12"]
    done = subprocess.run(
        command,
        env={**os.environ, "EDGED_BENCH_HERE": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), plots


def test_every_figure_is_there_and_possible(result: tuple[dict[str, Any], Path]) -> None:
    assert set(result[0]) == {"int8"}
    figures = result[0]["int8"]
    assert set(KEYS) <= set(figures)
    peers = {"reference_rtf", "speedup", "over_llamacpp_1", "over_llamacpp_4"}
    assert all(figures[key] is None for key in peers)
    for key in ("rtf_1", "rtf_4", "step_ms", "floor_ms", "first_audio_ms", "first_audio_p99_4_ms", "ready_s"):
        assert figures[key] > 0, key
    for key in ("step_over_floor", "rtf_1", "rtf_4", "first_audio_ms", "ready_s"):
        range_ = figures["spread"][key]
        assert 0 < range_["min"] <= figures[key] <= range_["max"], key
    assert figures["rss_mb"] >= figures["rss_ready_mb"] > 30
    assert abs(figures["growth_mb"]) < 50


def test_streams_are_as_long_as_they_should_be(result: tuple[dict[str, Any], Path]) -> None:
    figures = result[0]["int8"]
    assert figures["spread"]["audio_s"]["min"] >= 5.0
    assert figures["stream_s"]["min"] >= 20.0
    assert set(figures["by_streams"]) == {"1", "2", "3", "4"}


def test_the_weights_of_a_step_are_counted_once_and_whole(
    result: tuple[dict[str, Any], Path], tiny_checkpoint: Path
) -> None:
    from edged.compiler.chattts.checkpoint import Checkpoint

    with Checkpoint.open(tiny_checkpoint) as opened:
        sizes = opened.sizes
    layer = 4 * sizes.hidden**2 + 3 * sizes.hidden * sizes.intermediate
    heads = sizes.hidden * sizes.codebooks * sizes.audio_tokens
    one_byte_each = (sizes.layers * layer + heads) / 1e6
    assert one_byte_each <= result[0]["int8"]["weight_mb"] <= 1.35 * one_byte_each


def test_the_plots_are_pictures(result: tuple[dict[str, Any], Path]) -> None:
    for name in ("step_times", "streams", "memory"):
        assert (result[1] / f"{name}.png").read_bytes().startswith(b"\x89PNG")
