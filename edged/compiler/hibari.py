"""Builds the `hibari` bundle from the installed hibari-tts package: English, voice `heart`.

CLI process only. The package's one network is cut at its length regulator (`cut.py`), so that every
output's shape is known before a run; its dictionaries become one SQLite file (`tables.py`), which the
daemon opens in a millisecond instead of parsing JSON for 0.7 s into 98 MB of objects.
"""

from __future__ import annotations

import json
from importlib.metadata import distribution
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from edged.bundle import FORMAT, Licence, Manifest, VoiceInfo
from edged.bundle_write import building
from edged.compiler import cut, tables
from edged.compiler.parts import Progress, engine_entry, file_entry, finish, need, provenance
from edged.engine.api import TensorSpec
from edged.engine.ort import optimize
from edged.voices.hibari.dsp import BINS
from edged.voices.hibari.synth import FRAMES_A_STEP

PACKAGE = "hibari-tts"
TEXT = "The quick brown fox jumps over the lazy dog."
MAX_SYMBOLS = 320  # longest utterance, pads included: about 20 s at speed 1
MAX_FRAMES = 1_840  # of 12.5 ms: 23 s; even, because the decoder makes two frames a step
SPECTRA = 5 * BINS  # values a frame: lh, theta, ln, lr, phi

# Where the package's network is cut: its names on the left, ours on the right.
FEATURES = {"/Transpose_22_output_0": "text", "/Transpose_55_output_0": "prosody"}
DURATIONS = {"/Cast_32_output_0": "durations"}
INDEX = {"/ReduceSum_1_output_0": "index"}
HEAD = {"/head/Add_output_0": "spectra", "f0": "f0"}


def build(
    out: Path,
    progress: Progress,
    *,
    max_symbols: Annotated[int, Meta(ge=16, le=4_000)] = MAX_SYMBOLS,
    max_frames: Annotated[int, Meta(ge=200, le=20_000)] = MAX_FRAMES,
) -> Path:
    purpose = "building the built-in English voice"
    onnx = need("onnx", "voice-en", purpose)
    assets = Path(need("hibari", "voice-en", purpose).__file__).parent / "assets"
    package = distribution(PACKAGE)

    with building(out) as root:
        progress("model", 0.05)
        (root / "engines").mkdir()
        (root / "data").mkdir()
        model = onnx.load_model_from_string((assets / "hibari.onnx").read_bytes())
        encoder = cut.cut(model, {"ids": "ids", "speed": "speed"}, FEATURES | DURATIONS)
        decoder = cut.cut(model, FEATURES | INDEX, HEAD)
        width = {ours: cut.channels(model, theirs) for theirs, ours in FEATURES.items()}
        words = (assets / "oov.onnx").read_bytes()
        for name, network in (("encoder", encoder), ("decoder", decoder), ("oov", words)):
            optimize(network, root / f"engines/{name}.onnx")

        progress("word lists", 0.25)
        oov = json.loads((assets / "oov.json").read_text("utf-8"))
        tables.write(root / "data/tables.sqlite", assets, oov)

        progress("licences", 0.6)
        for name in ("LICENSE", "NOTICE"):
            (root / name).write_text(package.read_text(f"licenses/{name}") or "", "utf-8")

        features = [TensorSpec(name, "float32", (1, width[name], max_symbols)) for name in FEATURES.values()]
        letters = int(oov["maxlen"])
        manifest = Manifest(
            format=FORMAT,
            name="hibari",
            version=package.version,
            family="hibari",
            backend="onnxruntime",
            precision="int8 (dynamic)",
            sample_rate=24_000,
            voices=(
                VoiceInfo(
                    name="heart", languages=("en",), description="American English, female", gender="female"
                ),
            ),
            engines=(
                engine_entry(
                    root,
                    "encoder",
                    "engines/encoder.onnx",
                    [TensorSpec("ids", "int64", (1, max_symbols)), TensorSpec("speed", "float32", (1,))],
                    [*features, TensorSpec("durations", "int64", (max_symbols,))],
                ),
                engine_entry(
                    root,
                    "decoder",
                    "engines/decoder.onnx",
                    [*features, TensorSpec("index", "int64", (max_frames // FRAMES_A_STEP,))],
                    [
                        TensorSpec("spectra", "float32", (1, max_frames, SPECTRA)),
                        TensorSpec("f0", "float32", (1, max_frames)),
                    ],
                ),
                engine_entry(
                    root,
                    "oov",
                    "engines/oov.onnx",
                    [TensorSpec("chars", "int64", (1, letters))],
                    [TensorSpec("ids", "int64", (1, int(oov["slots"]) * letters))],
                ),
            ),
            data=(file_entry(root, "tables", "data/tables.sqlite"),),
            limits={"max_symbols": max_symbols, "max_frames": max_frames, "max_letters": letters},
            licence=Licence(code="Apache-2.0", weights="Apache-2.0"),
            provenance=provenance(PACKAGE, "onnx", source=f"PyPI {PACKAGE}"),
        )
        progress("trial run", 0.7)
        # Another CPU rounds int8 products differently: a duration may differ by a frame here and there.
        finish(root, manifest, TEXT, within_s=0.25, within_db=3.0)
        progress("moving into place", 0.95)
    progress("done", 1.0)
    return out
