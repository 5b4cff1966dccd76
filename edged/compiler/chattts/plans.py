"""The TensorRT half of a ChatTTS bundle: networks of the standard dialect, plans, and proof of their numbers.

CLI process only, on the machine that will run the bundle. TensorRT chooses kernels when it builds, so what a
plan computes is known only afterwards: both plans are run on some sentences, by the engines of the daemon,
beside fp32 networks on ONNX Runtime, and a build whose figures are beyond the thresholds is refused.
Neighbours: `build.py` calls; `compiler/trt.py` builds, `agreement.py` compares.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edged import settings
from edged.bundle import EngineFile, File, TensorRT
from edged.compiler import trt
from edged.compiler.chattts import agreement, reading
from edged.compiler.chattts.checkpoint import Checkpoint
from edged.compiler.chattts.gpt import build_gpt
from edged.compiler.chattts.options import PROMPT_PIECE, Options
from edged.compiler.chattts.past import in_place
from edged.compiler.chattts.quantize import Sensitivity
from edged.compiler.chattts.teach import STEPS
from edged.compiler.chattts.thresholds import TENSORRT
from edged.compiler.chattts.vocoder import build_vocoder
from edged.compiler.clocks import clocks
from edged.compiler.graph import Interface
from edged.compiler.parts import Progress, engine_entry, file_entry, within
from edged.compiler.trt_report import summary
from edged.engine import select
from edged.engine.buffers import Arena
from edged.engine.plugins import load_plugin
from edged.engine.preflight import Found
from edged.engine.request import Request
from edged.precision import judge
from edged.voices.chattts.voice import kept
from edged.voices.chattts.windows import CHUNKS, FIRST_AHEAD, LONGEST

NETWORKS = ".networks"  # folder inside the unfinished bundle, gone before it is finished
PLUGIN = "plugin"  # name of its entry among the bundle's data


@dataclass(frozen=True)
class Plans:
    """What a manifest lists of them. What they take on the device is known once the voice was opened."""

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
    library, stretch = Path(plugin) if plugin else None, within(progress, 0.7, 1.0)
    measured = _measure(source, root, made, options.positions, library, stretch)
    judge("the new engines", measured, TENSORRT[options.precision])
    layers = {each.name: summary(builder.layers(root / f"engines/{each.name}.plan")) for each in made}
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
        device_mb=0.0,
        plugin=PLUGIN if plugin else "",
        clocks=clocks(),
        measured=measured,
    )
    return Plans(entries, beside, record)


def _measure(
    source: Checkpoint,
    root: Path,
    made: Sequence[Network],
    most: int,
    plugin: Path | None,
    progress: Progress,
) -> dict[str, float]:
    """Figures of the plans against the fp32 networks of ONNX Runtime's dialect. most: positions of the cache,
    in which the prompts are cut short to leave room for the steps."""
    prompts = [prompt[: most - STEPS] for prompt in reading.golden(source)]
    positions = max(map(len, prompts)) + STEPS
    expected = reference(source, root / NETWORKS, positions, within(progress, 0.0, 0.3))
    try:
        plans = [replace(request(each, root / f"engines/{each.name}.plan"), plugin=plugin) for each in made]
        built = opened(plans, select.TENSORRT)
        try:
            stretch = within(progress, 0.3, 1.0)
            return agreement.compare(expected, built, prompts, code_head(source), PROMPT_PIECE, stretch)
        finally:
            built.close()
    finally:
        expected.close()


def reference(source: Checkpoint, folder: Path, positions: int, progress: Progress) -> agreement.Build:
    """Both networks as fp32 on the CPU."""
    gpt, vocoder = folder / "reference-gpt.onnx", folder / "reference-vocoder.onnx"
    made = build_gpt(
        source, gpt, positions=positions, slots=1, prompt=PROMPT_PIECE, progress=within(progress, 0.0, 0.8)
    )
    sound = build_vocoder(source, vocoder, steps=LONGEST, progress=within(progress, 0.8, 1.0))
    both = [Network(path.stem, path, _shared(made), ()) for path, made in ((gpt, made), (vocoder, sound))]
    return opened([request(each, each.path) for each in both], select.BACKENDS[0])


def request(network: Network, path: Path) -> Request:
    """For an engine whose results the host sees. path: of the file to run."""
    inputs, outputs = network.interface.inputs, network.interface.outputs
    return Request(network.name, path, inputs, outputs, resident=kept((*inputs, *outputs)))


def opened(requests: Sequence[Request], backend: str) -> agreement.Build:
    """Engines of a GPT and of a vocoder as the daemon opens them."""
    return agreement.Build(*select.open_engines(requests, backend, Arena(), settings.Engine()))


def code_head(source: Checkpoint) -> NDArray[np.float32]:
    """[hidden, codebooks * codes]."""
    books = range(source.sizes.codebooks)
    matrices = [source.tensor("embed", f"head_code.{n}.weight") for n in books]
    head: NDArray[np.float32] = np.concatenate(matrices).T
    return head
