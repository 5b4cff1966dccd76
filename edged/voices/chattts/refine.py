"""The refine stage: the model rewrites a sentence as it would be said, with pauses and laughter in it.

Engine thread only. `synth.py` reads the prompts and says what comes out; here words are drawn, and it is
decided which of them may stand in a code prompt. Neighbours: `generator.py` runs the rows, `tokens.py` knows
the vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from edged.voices.chattts.data import Sampling
from edged.voices.chattts.generator import Generator, prompt_rows
from edged.voices.chattts.tokens import WORD
from edged.voices.chattts.utterance import ChatUtterance

# How words are drawn, as published. What a request says about sampling is about the sounds.
WORDS = Sampling(temperature=0.7, top_p=0.7, top_k=20, penalty=1.0)
MOST_WORDS = 384  # draws for one sentence, as published
UNENDED = "a refined sentence found no ending and was cut off"
SHORTENED = "a refined sentence was longer than the voice can say at once and was cut off"
UNREFINED = "refining gave nothing to say for a sentence: it is said as it was written"


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """kinds: what may stand in a text, by token id (see `Tokens.kinds`).

    most: tokens of a text in a code prompt. written: tokens as people read them.
    """

    kinds: NDArray[np.uint8]
    most: int
    written: Callable[[Sequence[int]], str]


@dataclass(slots=True, eq=False)
class Refinement:
    """The text of one utterance in the making. rows: its prompt as the network reads it; limit: draws that
    it may take."""

    utterance: ChatUtterance
    rows: tuple[NDArray[np.int64], NDArray[np.int64]]
    limit: int
    shown: bool
    drawn: int = 0
    words: list[int] = field(default_factory=list)  # of those drawn, the ones that may stand in a text
    warning: str = ""
    text: str = ""  # what was made of it, where it is to be shown


class Row(Protocol):
    """What the stage looks at of an utterance in a row of the generator."""

    row: int
    noise: np.random.Generator
    refinement: Refinement | None


R = TypeVar("R", bound=Row)


class Refiner:
    """Draws the words of rows."""

    def __init__(self, generator: Generator, vocabulary: Vocabulary) -> None:
        self._generator = generator
        self._vocabulary = vocabulary
        self._nobody: NDArray[np.float32] = np.zeros(generator.hidden_size, np.float32)
        self._no_codes: NDArray[np.int64] = np.zeros((0, generator.codebooks), np.int64)

    def begin(self, row: int, utterance: ChatUtterance, shown: bool) -> Refinement:
        """Makes a row ready to read the refine prompt."""
        ids, text = prompt_rows(utterance.refine, self._no_codes, self._generator.codebooks)
        limit = min(MOST_WORDS, self._generator.positions - len(ids))
        self._generator.seat(row, self._nobody, WORDS)
        return Refinement(utterance, (ids, text), limit, shown)

    def step(self, streams: Sequence[R]) -> list[R]:
        """One word for each; those whose sentence is over."""
        for stream in streams:
            self._generator.draw(stream.row, stream.noise, ban_end=False)
        rows = [stream.row for stream in streams]
        self._generator.refine(min(rows), max(rows) + 1)
        return [stream for stream in streams if self.take(stream, fed=True)]

    def take(self, stream: Row, fed: bool) -> bool:
        """The word just drawn for a row; True when the sentence is over."""
        refinement, row = stream.refinement, stream.row
        if refinement is None or self._generator.ended[row]:
            return True
        kinds, word = self._vocabulary.kinds, int(self._generator.codes[row, 0])
        refinement.drawn += 1
        if word < len(kinds) and kinds[word]:
            if len(refinement.words) >= self._vocabulary.most:
                refinement.warning = SHORTENED
                return True
            refinement.words.append(word)
        if refinement.drawn >= refinement.limit:
            refinement.warning = UNENDED
            return True
        self._generator.accept_word(row, fed)
        return False

    def finish(self, refinement: Refinement) -> tuple[int, ...]:
        """The code prompt, with the refined text in the place of the written one if there is any."""
        spoken, kinds = refinement.utterance, self._vocabulary.kinds
        prompt, (first, end) = spoken.symbols, spoken.text
        words = refinement.words
        if not any(kinds[word] == WORD for word in words):
            words = list(prompt[first:end])
            refinement.warning = UNREFINED
        if refinement.shown:
            refinement.text = self._vocabulary.written(words)
        return (*prompt[:first], *words, *prompt[end:])
