"""Text to tone symbols. Text thread; its utterances go to `synth.py` through the job.

Symbol 0 is silence, 1..PITCHES are pitches of a scale. Letters and digits get a pitch, everything
else is a rest, so that a listener hears words and pauses.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from edged.job import Params, Utterance

PITCHES = 21  # three octaves of seven steps
PARAGRAPH_PAUSE_S = 0.3

# A sentence: up to its end mark (with closing quotes), or to the end of the line.
_SENTENCE = re.compile(r"[^.!?…。！？\n]*[.!?…。！？]+[\"'”’)\]]*|[^.!?…。！？\n]+|\n+")


def symbol(character: str) -> int:
    """The pitch of a character: neighbours in the alphabet are neighbours in the scale."""
    if not character.isalnum():
        return 0
    return 1 + ord(character.casefold()[0]) % PITCHES


class ToneFrontend:
    """Cuts text into sentences, and a sentence that is too long at spaces or anywhere."""

    def __init__(self, max_symbols: int) -> None:
        self._max = max_symbols

    def utterances(self, text: str, params: Params) -> Iterator[Utterance]:
        index = 0
        held: Utterance | None = None  # one behind, because a blank line lengthens the pause before it
        for match in _SENTENCE.finditer(text):
            sentence = match.group()
            if sentence[0] == "\n":
                if held is not None and len(sentence) > 1:
                    held = Utterance(held.index, held.symbols, PARAGRAPH_PAUSE_S / params.speed)
                continue
            for part in self._cut(" ".join(sentence.split())):
                symbols = tuple(symbol(c) for c in part)
                if not any(symbols):
                    continue
                if held is not None:
                    yield held
                held = Utterance(index, symbols)
                index += 1
        if held is not None:
            yield held

    def _cut(self, sentence: str) -> Iterator[str]:
        start = 0
        while len(sentence) - start > self._max:
            space = sentence.rfind(" ", start + 1, start + self._max)
            end = space if space > 0 else start + self._max
            yield sentence[start:end]
            start = end + 1 if space > 0 else end
        if start < len(sentence):
            yield sentence[start:]
