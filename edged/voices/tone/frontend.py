"""Words to tone symbols. Text thread; its utterances go to `synth.py` through the job.

Symbol 0 is silence, 1..PITCHES are pitches of a scale. Letters and digits get a pitch, everything
else is a rest, so that a listener hears words and pauses.
"""

from __future__ import annotations

from collections.abc import Sequence

from edged.job import Params, Utterance
from edged.text.document import Alphabet, Encoded, Said
from edged.text.shown import letters
from edged.text.split import Pauses, breaks

PITCHES = 21  # three octaves of seven steps


def symbol(character: str) -> int:
    """The pitch of a character: neighbours in the alphabet are neighbours in the scale."""
    if not character.isalnum():
        return 0
    return 1 + ord(character.casefold()[0]) % PITCHES


class ToneFrontend:
    """Implements `Frontend`: a symbol a character."""

    alphabets: frozenset[Alphabet] = frozenset()
    tags: frozenset[str] = frozenset()
    pauses = Pauses()

    def __init__(self, max_symbols: int, languages: tuple[str, ...] = ("*",)) -> None:
        self.languages = languages
        self._max = max_symbols

    def encode(self, said: Sequence[Said]) -> Encoded:
        text = " ".join("".join(part.text for part in said).split())
        ids, places = tuple(map(symbol, text)), tuple(breaks(text))
        return Encoded(ids, places, letters=tuple(letters(text)[1:]))

    def limit(self, params: Params) -> int:
        return self._max

    def utterance(self, index: int, ids: Sequence[int], params: Params) -> Utterance | None:
        return Utterance(index, tuple(ids)) if any(ids) else None
