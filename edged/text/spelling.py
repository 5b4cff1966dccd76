"""English digits one by one: what is said where no reader of English is loaded. Pure, linear.

No number is lost to a voice that has learned words only. Neighbours: `runs.py`.
"""

from __future__ import annotations

import re
import unicodedata

from edged.text.span import Options, Span

_NAMES = "zero one two three four five six seven eight nine".split()
_PLACE = re.compile(r"(?<=\d)\.(?=\d)|[^\W_a-zA-Z]")


class Spelling:
    """Implements `Reader` for English, as far as it goes."""

    def spans(self, text: str, _: Options) -> list[Span]:
        return [
            Span(match.start(), match.end(), said, "decimal" if said == "point" else "cardinal")
            for match in _PLACE.finditer(text)
            if (said := _said(match.group()))
        ]


def _said(character: str) -> str:
    if character == ".":
        return "point"
    digit = unicodedata.digit(character, None)
    if digit is not None:
        return _NAMES[digit]
    amount = unicodedata.numeric(character, None)
    if amount is not None and character < "\u3000":
        return " ".join("point" if c == "." else _NAMES[int(c)] for c in f"{amount:g}" if c in "0123456789.")
    if "\u0370" <= character <= "\u03ff" and len(unicodedata.name(character, "").split()) == 4:
        return unicodedata.name(character).rpartition(" ")[2].lower()
    return {"\u00b5": "micro", "\u2126": "ohm"}.get(character, "")
