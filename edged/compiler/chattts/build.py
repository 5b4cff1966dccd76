"""Builds a `chattts` bundle from a checkpoint: graphs, quantised weights, speakers, licences, a golden voice.

CLI process only. Everything that can be wrong with the arguments is found before the long work. Weights go
through memory one matrix at a time. Neighbours: `gpt.py`, `vocoder.py` and `encoder.py` make the graphs,
`people.py` reads the speakers, `bundle_write.py` puts the finished folder in place in one step.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from edged.bundle import FORMAT, EngineFile, File, Licence, Manifest, TensorRT
from edged.bundle_write import building
from edged.compiler import trt
from edged.compiler.chattts import decoder, licences, people, reading
from edged.compiler.chattts.checkpoint import Checkpoint
from edged.compiler.chattts.options import PROMPT_PIECE, Options, check, check_overrides
from edged.compiler.chattts.past import in_place
from edged.compiler.chattts.thresholds import TENSORRT as TENSORRT_THRESHOLDS
from edged.compiler.chattts.thresholds import THRESHOLDS
from edged.compiler.parts import Progress, engine_entry, file_entry, finish, need, provenance, within
from edged.engine import preflight
from edged.engine.api import TensorSpec
from edged.engine.select import TENSORRT, require
from edged.errors import BadValue
from edged.voices.chattts import data
from edged.voices.chattts.limits import CONTROLS
from edged.voices.chattts.tokens import Tokens
from edged.voices.chattts.voice import DECODER
from edged.voices.chattts.windows import LONGEST

RATE = 24_000
TEXT = "Hello, this is the voice of the machine."
CALIBRATION = ".calibration"  # folder inside the unfinished bundle: a killed build leaves none of it
ENROLL_S = 30  # longest recording for the encoder


def build(
    out: Path,
    progress: Progress,
    *,
    checkpoint: str,
    precision: str = "",
    backend: str = "onnxruntime",
    name: str = "chattts",
    speakers: Sequence[str] = (),
    spk_stat: str = "",
    overrides: Sequence[str] = (),
    with_encoder: bool = False,
    with_codes: bool = False,
    positions: int = 1024,
    slots: int = 4,
    kv: str = "",
    calibrate: bool = False,
    no_native: bool = False,
    timing_cache: str = "",
    workspace: int = 0,
    plugin: str = "",
) -> Path:
    """speakers: NAME=CODE each; spk_stat: file with the statistics of random speakers; overrides:
    PATTERN=PRECISION each, over the names of layers; kv: element type of the key/value cache; calibrate:
    round 4-bit weights by what the fp32 network does with some sentences, which takes minutes;
    no_native: leave out the native decoder. For TensorRT: timing_cache: file of kernel timings (beside the
    bundle by default); workspace: most scratch memory of a layer in MB; plugin: library of
    `deploy/jetson/plugin`."""
    need("onnx", "build", "building a ChatTTS bundle")
    require(backend, "the bundle")
    extras = tuple(n for n, wanted in (("codes", with_codes), ("encoder", with_encoder)) if wanted)
    options = check(precision, overrides, positions, slots, kv, extras, calibrate, backend)
    _check_timing_cache(Path(timing_cache))
    if backend == TENSORRT:
        trt.tensorrt()  # tells early what this machine lacks
    elif timing_cache or workspace or plugin:
        raise BadValue("timing_cache, workspace and plugin are for TensorRT", f"--backend {TENSORRT}")
    limits = trt.Limits()
    if backend == TENSORRT:
        limits = trt.Limits(workspace, Path(timing_cache or f"{out.resolve()}.timings"))
    progress("checkpoint", 0.0)
    with Checkpoint.open(Path(checkpoint)) as source:
        known = people.collect(speakers, spk_stat, source.sizes.hidden)
        people.check_kept(out, known)
        check_overrides(options.overrides, source.sizes.layers)
        Tokens(source.tokenizer_file)  # tells early that the package is absent
        with building(out) as root:
            for folder in ("engines", "data"):
                (root / folder).mkdir()
            engines, beside, record = _engines(
                root, source, options, limits, plugin, within(progress, 0.02, 0.72)
            )
            progress("decoder", 0.72)
            native = not no_native and backend != TENSORRT
            built = decoder.add(root, source, options.positions) if native else []
            beside += [file_entry(root, name, file) for name, file in built]
            progress("data", 0.75)
            shutil.copyfile(source.tokenizer_file, root / "data/tokenizer.json")
            data.write(root / "data/speakers.json", known)
            data.write(root / "data/sampling.json", data.Sampling())
            hashes = source.fingerprint()
            licences.write(root, Path(checkpoint), hashes)
            manifest = _manifest(root, name, options, source, known, engines, beside, hashes, record)
            source.close()
            progress("check", 0.8)
            # Another CPU rounds differently, and one other code changes all that follow: length and level
            # of the golden utterance are a sign of life here, no more. `verify --against` compares numbers.
            finish(root, manifest, TEXT, within_s=4.0, within_db=12.0)
            progress("install", 0.98)
    progress("done", 1.0)
    return out


def _check_timing_cache(file: Path) -> None:
    """It is written after the long work. Raises `BadValue`."""
    if file != Path() and file.is_dir():
        raise BadValue(
            f"the timing cache {file} is a folder", f"name a file: --timing-cache {file / 'kernels.timings'}"
        )
    if not file.absolute().parent.is_dir():
        raise BadValue(
            f"the timing cache {file} cannot be written: there is no folder {file.absolute().parent}",
            "make the folder, or name a file in another one with --timing-cache",
        )


def _engines(
    root: Path, source: Checkpoint, options: Options, limits: trt.Limits, plugin: str, progress: Progress
) -> tuple[list[EngineFile], list[File], TensorRT | None]:
    from edged.compiler.chattts import cache
    from edged.compiler.chattts.encoder import build_encoder
    from edged.compiler.chattts.gpt import build_gpt
    from edged.compiler.chattts.vocoder import build_code_vocoder, build_vocoder

    folder = root / "engines"
    sensitivity = None
    if options.calibrated and options.precision == "int4":
        from edged.compiler.chattts.calibrate import calibrate

        given = reading.calibration(source, speaker=False)
        sensitivity = calibrate(source, given, root / CALIBRATION, progress=within(progress, 0.0, 0.2))
    if options.backend == TENSORRT:
        from edged.compiler.chattts import plans

        stretch = within(progress, 0.2, 1.0)
        builder = trt.PlanBuilder(trt.tensorrt(), limits)
        plan = plans.build(
            root,
            source,
            options,
            preflight.look(),
            builder,
            stretch,
            plugin=plugin,
            sensitivity=sensitivity,
        )
        shutil.rmtree(root / CALIBRATION, ignore_errors=True)
        return plan.engines, plan.beside, plan.record
    gpt = build_gpt(
        source,
        folder / "gpt.onnx",
        precision=options.precision,
        overrides=options.overrides,
        positions=options.positions,
        slots=options.slots,
        prompt=PROMPT_PIECE,
        kv=options.kv,
        sensitivity=sensitivity,
        progress=within(progress, 0.2, 0.65),
    )
    if options.kv == "int8":
        progress("cache", 0.65)
        cache.fit(folder / "gpt.onnx", gpt, list(reading.calibration(source)))
    shutil.rmtree(root / CALIBRATION, ignore_errors=True)
    outputs = [in_place(spec) for spec in gpt.outputs]
    engines = [engine_entry(root, "gpt", "engines/gpt.onnx", list(gpt.inputs), outputs)]
    precision, keep = options.vocoder()
    made = build_vocoder(
        source,
        folder / "vocoder.onnx",
        precision=precision,
        keep=keep,
        steps=LONGEST,
        tracks=options.slots,
        progress=within(progress, 0.7, 0.85),
    )
    engines.append(_entry(root, "vocoder", made.inputs, [in_place(spec) for spec in made.outputs]))
    if "codes" in options.extras:
        made = build_code_vocoder(
            source,
            folder / "codes.onnx",
            precision=precision,
            keep=keep,
            steps=options.max_steps,
            progress=within(progress, 0.85, 0.95),
        )
        engines.append(_entry(root, "codes", made.inputs, made.outputs))
    if "encoder" in options.extras:
        made = build_encoder(
            source,
            folder / "encoder.onnx",
            precision="fp32" if options.precision == "fp32" else "fp16",
            seconds=ENROLL_S,
            progress=within(progress, 0.95, 1.0),
        )
        engines.append(_entry(root, "encoder", made.inputs, made.outputs))
    beside = sorted(file.name for file in folder.glob("*.data"))
    weights = [file_entry(root, file.replace(".onnx.data", "-weights"), f"engines/{file}") for file in beside]
    return engines, weights, None


def _entry(root: Path, name: str, inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec]) -> EngineFile:
    return engine_entry(root, name, f"engines/{name}.onnx", list(inputs), list(outputs))


def _manifest(
    root: Path,
    name: str,
    options: Options,
    source: Checkpoint,
    known: data.Speakers,
    engines: list[EngineFile],
    beside: list[File],
    hashes: dict[str, str],
    record: TensorRT | None,
) -> Manifest:
    sizes = source.sizes
    facts = {f"checkpoint {file}": digest for file, digest in hashes.items()}
    facts["cache"] = options.kv
    levels = [file.name for file in beside if file.name.startswith(DECODER)]
    facts["decoder"] = ", ".join(name.removeprefix(DECODER) for name in levels) or "none"
    facts |= {f"override {pattern}": precision for pattern, precision in options.overrides}
    return Manifest(
        format=FORMAT,
        name=name,
        version="1",
        family="chattts",
        backend=options.backend,
        precision=options.precision,
        sample_rate=RATE,
        voices=tuple(people.info(person) for person in known.voices),
        engines=tuple(engines),
        data=(
            file_entry(root, "tokenizer", "data/tokenizer.json"),
            file_entry(root, "speakers", "data/speakers.json"),
            file_entry(root, "sampling", "data/sampling.json"),
            *beside,
        ),
        limits={
            "max_text": options.max_text,
            "max_steps": options.max_steps,
            "max_prompt": max(options.positions // 2, options.max_text + CONTROLS),
            "prompt_piece": PROMPT_PIECE,
            "hidden": sizes.hidden,
            "codebooks": sizes.codebooks,
            "audio_tokens": sizes.audio_tokens,
        },
        licence=Licence(code="Apache-2.0", weights="CC-BY-NC-4.0"),
        provenance=provenance("onnx", "numpy", "onnxruntime", "tokenizers", **facts),
        thresholds=(TENSORRT_THRESHOLDS if record else THRESHOLDS)[options.precision],
        tensorrt=record,
    )
