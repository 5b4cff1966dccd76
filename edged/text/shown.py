"""What of a sentence stands in each of the utterances that it was cut into, for people to read.

Pure; text thread. Frontends change marks and blanks, but no letter: a voice's ids and a text are compared by
how many letters and digits there are up to a place. Neighbours: frontends count, `explain` shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from edged.text.document import Said

_OPENERS = "“‘«([{（「『《〈【〔［｛ "


def letters(text: str) -> list[int]:
    """Letters and digits up to each place of a text, one number more than it has characters."""
    return list(accumulate(map(str.isalnum, text), initial=0))


class Shown:
    """A sentence, with its tags in brackets. Made once a sentence: linear in it."""

    def __init__(self, said: Sequence[Said]) -> None:
        self.text = "".join(part.text or f"[{part.tag}]" for part in said)
        self._behind: list[int] = []  # the place behind each letter
        at = 0
        for part in said:
            self._behind += (at + place for place, c in enumerate(part.text, 1) if c.isalnum())
            at += len(part.text) or len(part.tag) + 2

    def between(self, first: int, last: int) -> str:
        """What stands behind the letter number `first` up to the letter number `last`, with the marks behind
        it."""
        return self.text[self._edge(first) : self._edge(last)]

    def _edge(self, letter: int) -> int:
        """Where the next letter begins, but for what opens before it."""
        if letter <= 0:
            return 0
        if letter >= len(self._behind):
            return len(self.text)
        behind = self._behind[letter - 1]
        between = self.text[behind : self._behind[letter] - 1]
        return behind + len(between.rstrip(_OPENERS))
