"""The native decoder of a bundle: its builds for this architecture, and where its weights are.

Build time only. Neighbours: `build.py` calls, `edged/compiler/native.py` does it.
"""

from __future__ import annotations

import logging
from pathlib import Path

from edged import native
from edged.compiler.chattts.checkpoint import Checkpoint
from edged.compiler.chattts.heads import TEXT_WIDTH
from edged.compiler.chattts.sampling import WINDOW
from edged.compiler.native import built, compiler, index, wanted
from edged.engine import decoder_index
from edged.engine.decoder_index import Sizes
from edged.log import event as log_event
from edged.voices.chattts.voice import DECODER, DECODER_INDEX

log = logging.getLogger("edged.compiler")


def add(root: Path, source: Checkpoint, positions: int) -> list[tuple[str, str]]:
    """Writes them into the bundle being built: (name, file) of each, none where there can be none."""
    levels, command = native.levels(), compiler()
    if not levels:
        return []
    engines = root / "engines"
    found = index(engines / "gpt.onnx", engines / "gpt.onnx.data", _sizes(source, positions))
    if found is None:  # fp32, or a wide cache
        return []
    if not command:
        text = (
            f"no C compiler ({wanted()}): the bundle speaks with ONNX Runtime only, at about half the speed "
            "(apt install gcc libc6-dev, or name one in CC, and build it again)"
        )
        log_event(log, logging.WARNING, text, code="no_compiler")
        return []
    made = [(DECODER_INDEX, "engines/gpt.decoder")]
    decoder_index.write(root / made[0][1], found)
    for level in levels:
        made.append((f"{DECODER}{level.name}", f"engines/decoder-{level.name}.so"))
        (root / made[-1][1]).write_bytes(built(command, level))
    return made


def _sizes(source: Checkpoint, positions: int) -> Sizes:
    sizes = source.sizes
    return Sizes(
        layers=sizes.layers,
        hidden=sizes.hidden,
        inner=sizes.intermediate,
        heads=sizes.heads,
        width=sizes.head_dim,
        positions=positions,
        codebooks=sizes.codebooks,
        audio_tokens=sizes.audio_tokens,
        text_tokens=sizes.text_tokens,
        text_width=min(TEXT_WIDTH, sizes.text_tokens),
        speaker_token=source.token_id("[spk_emb]"),
        end_text=source.token_id("[Ebreak]"),
        history=WINDOW,
        epsilon=sizes.rms_eps,
    )
