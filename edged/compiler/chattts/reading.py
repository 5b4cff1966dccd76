"""The sentences of a build as prompts: token ids that the network reads.

Build time only. Neighbours: `sentences.py` has the texts; `build.py` calibrates with the first kind,
`plans.py` proves its numbers with the second.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from edged.compiler.chattts import sentences
from edged.compiler.chattts.checkpoint import Checkpoint
from edged.voices.chattts.prompts import PLAIN_SPEED, code_prompt
from edged.voices.chattts.tokens import Tokens

TOKENS = 24  # of each sentence of the calibration


def calibration(source: Checkpoint, *, speaker: bool = True) -> NDArray[np.int64]:
    """[sentences, tokens]: all of the same length, the shorter ones repeated."""
    tokens = Tokens(source.tokenizer_file)
    prompts = []
    for text in sentences.CALIBRATION:
        ids = _ids(tokens, text)
        ids = (ids * -(-TOKENS // len(ids)))[:TOKENS]
        prompts.append(code_prompt(tokens, ids, speaker=speaker, speed=PLAIN_SPEED))
    return np.array(prompts, np.int64)


def golden(source: Checkpoint) -> list[tuple[int, ...]]:
    """Those whose figures count."""
    tokens = Tokens(source.tokenizer_file)
    texts = [_ids(tokens, text) for text in sentences.VERIFICATION]
    return [code_prompt(tokens, ids, speaker=False, speed=PLAIN_SPEED) for ids in texts]


def _ids(tokens: Tokens, text: str) -> tuple[int, ...]:
    """A tokenizer of a test model may know none of the words."""
    return tokens.speech(text).ids or (tokens.control("uv_break"),)
