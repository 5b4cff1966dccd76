"""The TensorRT half of a ChatTTS bundle: networks of the standard dialect, plans, and proof of their numbers.

CLI process only, on the machine that will run the bundle. TensorRT chooses kernels when it builds, so what a
plan computes is known only afterwards: both plans are run on some sentences beside fp32 networks on ONNX
Runtime, and a build whose figures are beyond the thresholds is refused. Neighbours: `build.py` calls;
`compiler/trt.py` builds, `agreement.py` compares.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edged.bundle import EngineFile, File, TensorRT
from edged.compiler import trt
from edged.compiler.chattts import agreement, reading
from edged.compiler.chattts.checkpoint import Checkpoint
from edged.compiler.chattts.gpt import build_gpt
from edged.compiler.chattts.options import PROMPT_PIECE, Options
from edged.compiler.chattts.past import in_place
from edged.compiler.chattts.quantize import Sensitivity
from edged.compiler.chattts.thresholds import TENSORRT
from edged.compiler.chattts.vocoder import build_vocoder
from edged.compiler.clocks import clocks
from edged.compiler.graph import Interface
from edged.compiler.parts import Progress, engine_entry, file_entry, within
from edged.compiler.runners import OrtRunner
from edged.compiler.trt_report import summary
from edged.engine.plugins import load_plugin
from edged.engine.preflight import Found
from edged.precision import judge
from edged.voices.chattts.windows import CHUNKS, FIRST_AHEAD, LONGEST

NETWORKS = ".networks"  # folder inside the unfinished bundle, gone before it is finished
PLUGIN = "plugin"  # name of its entry among the bundle's data


@dataclass(frozen=True)
class Plans:
    """What a manifest lists of them."""

    engines: list[EngineFile]
    beside: list[File]
    record: TensorRT


@dataclass(frozen=True)
class Network:
    """An ONNX file on its way to a plan. interface: outputs of what is kept share their inputs' memory;
    profiles: the ranges of its dynamic dimensions."""

    name: str
    path: Path
    interface: Interface
    profiles: Sequence[trt.Dims]


def networks(
    source: Checkpoint,
    folder: Path,
    options: Options,
    progress: Progress,
    *,
    plugin: bool = False,
    sensitivity: Sensitivity | None = None,
) -> list[Network]:
    """Writes what TensorRT parses: the GPT and the vocoder."""
    half, fixed = options.precision != "fp32", (options.positions,) * 3
    gpt = build_gpt(
        source,
        folder / "gpt.onnx",
        dialect="plugged" if plugin else "standard",
        precision=options.precision,
        overrides=options.overrides,
        positions=options.positions,
        slots=options.slots,
        prompt=PROMPT_PIECE,
        kv=options.kv,
        half=half,
        sensitivity=sensitivity,
        progress=within(progress, 0.0, 0.8),
    )
    precision, keep = options.vocoder()
    vocoder = build_vocoder(
        source,
        folder / "vocoder.onnx",
        dialect="standard",
        precision=precision,
        half=half,
        keep=keep,
        steps=LONGEST,
        tracks=options.slots,
        progress=within(progress, 0.8, 1.0),
    )
    # Tactics are chosen for the shapes that a listener waits for: a whole piece of a prompt, a step of one
    # utterance, the first window of sound.
    prompt = {"B": (1, 1, 1), "S": (1, PROMPT_PIECE, PROMPT_PIECE), "P": fixed}
    step = {"B": (1, 1, options.slots), "S": (1, 1, 1), "P": fixed}
    window = {"steps": (1, CHUNKS[0] + FIRST_AHEAD, LONGEST), "row": (1, 1, 1)}
    return [
        Network("gpt", folder / "gpt.onnx", _shared(gpt), (prompt, step)),
        Network("vocoder", folder / "vocoder.onnx", _shared(vocoder), (window,)),
    ]


def _shared(interface: Interface) -> Interface:
    return Interface(interface.inputs, [in_place(spec) for spec in interface.outputs])


def build(
    root: Path,
    source: Checkpoint,
    options: Options,
    found: Found,
    builder: trt.PlanBuilder,
    progress: Progress,
    *,
    plugin: str = "",
    sensitivity: Sensitivity | None = None,
) -> Plans:
    """Fills the unfinished bundle `root`. found: this machine; plugin: file of the library, "" for none.

    Raises `PlanFailed`, and `BundleInaccurate`.
    """
    beside = []
    if plugin:
        load_plugin(Path(plugin))
        shutil.copyfile(plugin, root / "engines/plugin.so")
        beside.append(file_entry(root, PLUGIN, "engines/plugin.so"))
    folder = root / NETWORKS
    folder.mkdir()
    made = networks(
        source, folder, options, within(progress, 0.0, 0.1), plugin=bool(plugin), sensitivity=sensitivity
    )
    for number, network in enumerate(made):
        stretch = within(progress, 0.1 + 0.3 * number, 0.4 + 0.3 * number)
        builder.build(network.path, root / f"engines/{network.name}.plan", network.profiles, stretch)
    engines = {network.name: builder.load(root / f"engines/{network.name}.plan") for network in made}
    measured = _measure(source, folder, builder, made, engines, within(progress, 0.7, 1.0))
    judge("the new engines", measured, TENSORRT[options.precision])
    layers = {name: summary(builder.layers(engine)) for name, engine in engines.items()}
    (root / "data/layers.json").write_text(json.dumps(layers, indent=1) + "\n", "utf-8")
    beside.append(file_entry(root, "layers", "data/layers.json"))
    shutil.rmtree(folder)
    entries = [
        engine_entry(
            root,
            network.name,
            f"engines/{network.name}.plan",
            network.interface.inputs,
            network.interface.outputs,
        )
        for network in made
    ]
    record = TensorRT(
        version=builder.version,
        capability=found.capability,
        cuda=found.cuda,
        device=found.device,
        device_mb=round(sum(map(_device_bytes, entries, engines.values())) / 1e6, 1),
        plugin=PLUGIN if plugin else "",
        clocks=clocks(),
        measured=measured,
    )
    return Plans(entries, beside, record)


def _device_bytes(entry: EngineFile, engine: Any) -> int:
    """Weights, activations of one context, and all tensors; those that share memory count once."""
    tensors = sum(t.spec().nbytes for t in (*entry.inputs, *entry.outputs) if not t.alias)
    return entry.bytes + int(engine.device_memory_size_v2) + tensors


def _measure(
    source: Checkpoint,
    folder: Path,
    builder: trt.PlanBuilder,
    made: Sequence[Network],
    engines: Mapping[str, Any],
    progress: Progress,
) -> dict[str, float]:
    """Figures of the plans against the fp32 networks of ONNX Runtime's dialect."""
    prompts = reading.golden(source)
    positions = max(map(len, prompts)) + agreement.STEPS
    expected = reference(source, folder, positions, within(progress, 0.0, 0.3))
    try:
        gpt, vocoder = (
            builder.runner(engines[network.name], network.interface, network.path, network.profiles)
            for network in made
        )
        return agreement.compare(
            expected,
            agreement.Build(gpt, vocoder),
            prompts,
            code_head(source),
            PROMPT_PIECE,
            within(progress, 0.3, 1.0),
        )
    finally:
        expected.gpt.close()
        builder.close()


def reference(source: Checkpoint, folder: Path, positions: int, progress: Progress) -> agreement.Build:
    """Both networks as fp32 on the CPU."""
    gpt, vocoder = folder / "reference-gpt.onnx", folder / "reference-vocoder.onnx"
    made = build_gpt(
        source, gpt, positions=positions, slots=1, prompt=PROMPT_PIECE, progress=within(progress, 0.0, 0.8)
    )
    sound = build_vocoder(source, vocoder, steps=LONGEST, progress=within(progress, 0.8, 1.0))
    return agreement.Build(OrtRunner(gpt, made), OrtRunner(vocoder, sound))


def code_head(source: Checkpoint) -> NDArray[np.float32]:
    """[hidden, codebooks * codes]."""
    books = range(source.sizes.codebooks)
    matrices = [source.tensor("embed", f"head_code.{n}.weight") for n in books]
    head: NDArray[np.float32] = np.concatenate(matrices).T
    return head
