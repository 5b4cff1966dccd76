"""A ChatTTS bundle whose plans are stand-ins, and the same networks as a bundle for ONNX Runtime."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import numpy as np

from edged.bundle import Bundle, EngineFile
from edged.compiler.chattts.checkpoint import Checkpoint
from edged.compiler.chattts.gpt import build_gpt
from edged.compiler.chattts.options import PROMPT_PIECE
from edged.compiler.chattts.past import in_place
from edged.compiler.chattts.vocoder import build_vocoder
from edged.compiler.graph import Interface
from edged.compiler.parts import engine_entry
from edged.engine.api import Shape, TensorSpec
from edged.voices.chattts import speakers
from edged.voices.chattts.windows import LONGEST
from tests.bundles import build_chattts

POSITIONS, SLOTS = 512, 3
SPEAKERS = ("anna", "bert")
Range = tuple[Shape, Shape]


def onnx_bundle(folder: Path, checkpoint: Path) -> Bundle:
    """The networks in standard operators, run by ONNX Runtime."""
    noise = np.random.default_rng(3)
    codes = [f"{name}={speakers.encode_speaker(noise.normal(0, 1, 64))}" for name in SPEAKERS]
    build_chattts(folder, checkpoint, speakers=codes, positions=POSITIONS, slots=SLOTS, no_native=True)
    manifest = Bundle.load(folder, verify=False).manifest
    with Checkpoint.open(checkpoint) as source:
        gpt = build_gpt(
            source,
            folder / "engines/gpt.onnx",
            dialect="standard",
            positions=POSITIONS,
            slots=SLOTS,
            prompt=PROMPT_PIECE,
        )
        vocoder = build_vocoder(
            source, folder / "engines/vocoder.onnx", dialect="standard", steps=LONGEST, tracks=SLOTS
        )
    entries = tuple(_entry(folder, name, made) for name, made in (("gpt", gpt), ("vocoder", vocoder)))
    return Bundle(folder, msgspec.structs.replace(manifest, engines=entries))


def plan_bundle(folder: Path, onnx: Bundle) -> Bundle:
    """The same with plans instead; the folder is a copy."""
    from tests.trt.standin import write_plan

    shutil.copytree(onnx.path / "data", folder / "data")
    (folder / "engines").mkdir()
    entries = []
    for entry in onnx.manifest.engines:
        plan = folder / f"engines/{entry.name}.plan"
        inputs = [tensor.spec() for tensor in entry.inputs]
        host = [spec.name for spec in inputs if spec.name == "lead"]  # its value is a place in a tensor
        write_plan(plan, onnx.path / entry.file, ranges(entry.name, inputs), host)
        entries.append(msgspec.structs.replace(entry, file=f"engines/{plan.name}", bytes=plan.stat().st_size))
    manifest = msgspec.structs.replace(onnx.manifest, backend="tensorrt", engines=tuple(entries))
    return Bundle(folder, manifest)


def ranges(name: str, inputs: list[TensorSpec]) -> list[dict[str, Range]]:
    """Profiles as the compiler makes them: a piece of one row's prompt, a step of some rows; any window."""
    return [{spec.name: _range(name, spec, profile) for spec in inputs} for profile in _PROFILES[name]]


_PROFILES = {"gpt": ("prompt", "step"), "vocoder": ("window",)}


def _range(engine: str, spec: TensorSpec, profile: str) -> Range:
    least, most = list(spec.shape), list(spec.shape)
    if engine == "vocoder":
        least[0] = most[0] = 1
        if spec.name == "hidden":
            least[1] = 1
    elif spec.name != "refine":
        least[0] = 1
        if profile == "prompt":
            most[0] = 1
        if spec.name in ("ids", "text"):
            least[1] = 1
            most[1] = spec.shape[1] if profile == "prompt" else 1
    return tuple(least), tuple(most)


def _entry(folder: Path, name: str, made: Interface) -> EngineFile:
    outputs = [in_place(spec) for spec in made.outputs]
    return engine_entry(folder, name, f"engines/{name}.onnx", list(made.inputs), outputs)
