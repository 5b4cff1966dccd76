"""Engines of a small random ChatTTS model: built by TensorRT here, loaded as the daemon does, timed.

The build compares them with fp32 networks of ONNX Runtime over pieces of prompts and 48 steps each, and
refuses engines whose figures are beyond the thresholds. A cache that TensorRT does not update in place (the
networks take that for granted) ends here, with figures far beyond them.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

from gpu_checking import memory, require

ROOT = Path(__file__).resolve().parent.parent.parent
TEXT, STEPS = "One, two, three.", 200
NEEDS = (  # packages, with their extras
    ("tensorrt", "tensorrt"),
    ("pycuda", "tensorrt"),
    ("onnx", "build"),
    ("tokenizers", "chattts"),
    ("opencc", "chattts"),
)


def chattts() -> dict[str, Any]:
    from edged.errors import MissingExtra

    for module, extra in NEEDS:
        if find_spec(module) is None:
            raise MissingExtra(module, extra, "building and speaking with a bundle")
    rate = memory.bandwidth()
    with tempfile.TemporaryDirectory() as folder:
        checkpoint, bundle = Path(folder) / "checkpoint", Path(folder) / "bundle"
        _run(str(ROOT / "tools/make_checkpoint"), "--size", "tiny", "--out", str(checkpoint))
        begin = time.monotonic()
        build = ("-m", "edged", "bundle", "build", "chattts", "--backend", "tensorrt")
        _run(*build, "--checkpoint", str(checkpoint), "--out", str(bundle))
        built_s = round(time.monotonic() - begin, 1)
        figures = {"build_s": built_s, "agreement": _agreement(bundle), **_steps(bundle)}
        plan = (bundle / "engines/gpt.plan").stat().st_size
    floor_ms = plan / (rate["gb_s"] * 1e9) * 1e3  # the plan is little more than its weights
    ratio = figures["step_ms"] / floor_ms
    return {
        **rate,
        **figures,
        "plan": plan,
        "floor_ms": round(floor_ms, 4),
        "step_over_floor": round(ratio, 1),
    }


def _run(*arguments: str) -> None:
    made = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)
    told = (made.stderr or made.stdout).strip()[-600:]
    require(made.returncode == 0, f"{' '.join(arguments[:6])}: status {made.returncode}: {told}")


def _agreement(path: Path) -> dict[str, float]:
    """The figures of the build, which must be within the thresholds."""
    from edged.bundle import read_manifest
    from edged.precision import check_precision

    manifest = read_manifest(path)
    check_precision(manifest)
    require(manifest.tensorrt is not None, "the bundle has no figures")
    assert manifest.tensorrt is not None
    return manifest.tensorrt.measured


def _steps(path: Path) -> dict[str, Any]:
    """Loads the bundle as the daemon does and times the steps of a voice."""
    from edged import settings
    from edged.bundle import Bundle
    from edged.engine.buffers import Arena
    from edged.job import Params
    from edged.text.prepare import prepare
    from edged.voices.load import open_bundle

    begin = time.monotonic()
    voice = open_bundle(Bundle.load(path), settings.Engine(), Arena())[0]
    voice.warm_up()
    loaded_s = time.monotonic() - begin
    params = Params()
    times = []
    for utterance in islice(prepare(TEXT, voice.frontend, params=params), 1):
        stream = voice.synthesizer.open(utterance, params)
        last = False
        while not last and len(times) < STEPS:
            begin = time.perf_counter()
            (piece,) = voice.synthesizer.step([stream])
            times.append((time.perf_counter() - begin) * 1e3)
            last = piece.last
        voice.synthesizer.close(stream)
    require(len(times) > 5, f"speech ended after {len(times)} steps")
    voice.close()
    return {"load_s": round(loaded_s, 2), "steps": len(times), "step_ms": round(median(times), 3)}
