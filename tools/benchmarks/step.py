"""Times one decoder step of a ChatTTS bundle: `Generator` alone, without a daemon. A script for `turns`.

A step here is what the daemon's engine thread does for one code: the noise, the network with its sampling,
and taking the code. A turn runs `rows` utterances in step from a past of 40 tokens to one of 200.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import THREADS
from benchmarks.turns import answer
from edged import settings
from edged.bundle import Bundle
from edged.engine import pages
from edged.engine.buffers import Arena
from edged.voices.chattts.data import Sampling
from edged.voices.chattts.generator import Generator
from edged.voices.chattts.voice import engine

FIRST, LAST = 40, 200  # tokens in the cache before the first and the last step that is timed


class Steps:
    def __init__(self, path: Path) -> None:
        bundle = Bundle.load(path, verify=False)
        self.network = engine(bundle, "gpt", settings.Engine(threads=THREADS), Arena())
        self.generator = Generator(self.network, bundle.limit("prompt_piece"))
        self.generator.warm_up()
        pages.collapse()  # as the daemon does
        self.noise = np.random.default_rng(1)
        self.count = 0

    def __call__(self, rows: int) -> dict[str, Any]:
        """{"ms": [...]}, a value a step."""
        for row in range(rows):
            self._prompt(row)
        spent = []
        for step in range(LAST - FIRST):
            begin = time.perf_counter()
            for row in range(rows):
                self.generator.draw(row, self.noise, True)
            self.generator.step(0, rows)
            for row in range(rows):
                self.generator.accept(row, step + 1, True)
            spent.append((time.perf_counter() - begin) * 1e3)
        return {"ms": spent}

    def _prompt(self, row: int) -> None:
        generator = self.generator
        generator.seat(row, np.zeros(generator.hidden_size, np.float32), Sampling())
        ids = self.noise.integers(100, 400, (FIRST, 1)).repeat(generator.codebooks, 1)
        text, read = np.ones(FIRST, np.int64), 0
        while read < FIRST:
            generator.draw(row, self.noise, True)
            read += generator.prompt(row, ids[read:], text[read:])
        generator.accept(row, 0, False)


def prepare(arguments: Sequence[str]) -> tuple[dict[str, Any], Steps]:
    (path,) = arguments
    steps = Steps(Path(path))
    return {"rows": steps.generator.rows}, steps


if __name__ == "__main__":
    answer(prepare)
