"""No large allocation on the engine thread while it speaks, counted beneath Python and the runtime."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import bundles

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))
import alloc_probe  # noqa: E402


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    try:
        return alloc_probe.build(tmp_path_factory.mktemp("probe"))
    except alloc_probe.ProbeUnavailable as reason:
        pytest.skip(f"the allocation probe cannot be built: {reason}")


def watched(library, folder, *arguments):
    """The numbers that tests/allocating.py prints when run under the probe."""
    counts = folder / "counts"
    command = [sys.executable, str(ROOT / "tests/allocating.py"), str(counts), *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **alloc_probe.environment(library, counts)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [int(number) for number in done.stdout.split()], counts


def test_it_sees_a_megabyte_of_numpy_on_the_named_thread(library, tmp_path):
    (seen,), counts = watched(library, tmp_path, "numpy")
    assert seen == 1
    row = alloc_probe.read(counts)["edged-engine"]
    assert row.heap_bytes >= 1 << 20
    assert alloc_probe.read(counts, pid=1) == {}


@pytest.mark.parametrize("voice", ["tone", "hibari", "chattts"])
def test_a_warm_voice_allocates_nothing_large(library, tmp_path, voice, request):
    if voice == "chattts":
        checkpoint = request.getfixturevalue("tiny_checkpoint")
        path = bundles.build_chattts(tmp_path / "bundle", checkpoint, precision="int8", positions=256)
    else:
        path = getattr(bundles, voice)()
    (heap, maps, utterances, warming_up), _ = watched(library, tmp_path, "steps", path)
    assert utterances >= 60
    assert warming_up > 0  # the probe was there
    assert (heap, maps) == (0, 0)
