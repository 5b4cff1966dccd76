"""Two builds of the ChatTTS networks, compared on the same prompts with the same noise: figures in numbers.

CLI process only. The engines are those of the daemon, and so are the rows and windows they run in; which
runtime is behind them does not matter. `plans.py` compares TensorRT with ONNX Runtime, a test float16 with
float32 on the CPU. Neighbours: `teach.py` runs the pair and has the measures, `thresholds.py` says what is
near enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edged.compiler.chattts.teach import divergence, snr_db, teach
from edged.compiler.parts import Progress, silent
from edged.engine.api import Engine
from edged.voices.chattts.generator import Generator, prompt_rows
from edged.voices.chattts.sound import whole
from edged.voices.chattts.synth import SpeakerData

Prompt = Sequence[int]  # ids of text tokens


@dataclass(frozen=True)
class Build:
    """The two networks of one build. What they make must be seen by the host; what they keep need not."""

    gpt: Engine
    vocoder: Engine

    def close(self) -> None:
        self.vocoder.close()
        self.gpt.close()


def compare(
    reference: Build,
    built: Build,
    prompts: Sequence[Prompt],
    head: NDArray[np.float32],
    piece: int,
    progress: Progress = silent,
) -> dict[str, float]:
    """Figures by the names of their thresholds.

    head: [hidden, codebooks * codes] of the code head, which makes logits of hidden states; piece: most
    tokens of a prompt in one run.
    """
    pair = Generator(reference.gpt, piece), Generator(built.gpt, piece)
    books = pair[0].codebooks
    nobody = SpeakerData(np.zeros(pair[0].hidden_size, np.float32), np.zeros((0, books), np.int64))
    runs, sounds = [], []
    for number, prompt in enumerate(prompts):
        progress(f"compare {number + 1} of {len(prompts)}", number / len(prompts))
        runs.append(teach(pair, prompt_rows(prompt, nobody.prompt, books), nobody, number))
        hidden = runs[-1][0]
        sounds.append(snr_db(*(whole(build.vocoder, hidden).copy() for build in (reference, built))))
    expected, found, *codes = (np.stack([run[side] for run in runs]) for side in range(4))
    logits = [
        (side.astype(np.float64) @ head).reshape(*side.shape[:2], books, -1) for side in (expected, found)
    ]
    return {
        "min_hidden_snr_db": snr_db(expected, found),
        "max_logit_error": _finite(np.abs(logits[0] - logits[1]).max()),
        "max_kl": _finite(divergence(*logits).mean()),
        "min_token_agreement": float((codes[0] == codes[1]).mean()),
        "min_waveform_snr_db": min(sounds),
    }


def _finite(value: Any) -> float:
    """A figure that JSON can hold, and that no threshold lets pass."""
    return float(value) if np.isfinite(value) else 1e9
