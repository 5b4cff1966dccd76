"""Times the reference ChatTTS package on a checkpoint's weights. A script for `turns`.

A turn speaks one text with the reference's own generator, sampling rules, DVAE decoder and vocoder, and with
a given number of codes: the end token is forbidden until then. Installed by hand, see `live.INSTALL`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.common import THREADS
from benchmarks.turns import answer
from tests.reference import live

RATE = 24_000
TEMPERATURE, TOP_P, TOP_K, PENALTY = 0.3, 0.7, 20, 1.05  # its defaults, as ours


class Forbid:
    """A logits processor that makes one token impossible."""

    def __init__(self, token: int) -> None:
        self.token = token

    def __call__(self, _: Any, scores: Any) -> Any:
        scores[:, self.token] = float("-inf")
        return scores


class Spoken:
    def __init__(self, checkpoint: Path) -> None:
        self.model = live.load(checkpoint)
        from ChatTTS.model.processors import gen_logits

        end = self.model.sizes.audio_tokens
        warpers, processors = gen_logits(end, top_P=TOP_P, top_K=TOP_K, repetition_penalty=PENALTY)
        self.rules = (Forbid(end - 1), *processors, *warpers)

    def __call__(self, text: str, steps: int) -> dict[str, Any]:
        """{"seconds", "audio_s"}"""
        import torch

        model = self.model
        begin = time.perf_counter()
        with torch.inference_mode():
            result = model.generate(
                [f"[Stts][empty_spk][speed_5]{text}[Ptts]"],
                steps=steps,
                processors=self.rules,
                temperature=TEMPERATURE,
            )
            hidden = result.hiddens[0]
            samples = model.samples(model.decoder(hidden[None].permute(0, 2, 1)))
        end = time.perf_counter()
        if len(hidden) != steps:
            raise RuntimeError(f"the reference made {len(hidden)} codes instead of {steps}")
        return {"seconds": end - begin, "audio_s": samples.shape[-1] / RATE}


def prepare(arguments: Sequence[str]) -> tuple[dict[str, Any], Spoken]:
    import torch

    torch.set_num_threads(THREADS)
    (checkpoint,) = arguments
    spoken = Spoken(Path(checkpoint))
    spoken("Ready.", 8)  # warms it up
    return {"versions": {name: version(name) for name in ("chattts", "torch")}}, spoken


if __name__ == "__main__":
    answer(prepare)
