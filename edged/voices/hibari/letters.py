"""Letters of Latin script that English has not, as those that come nearest. Text thread; pure.

The package's rules pass over a letter that is not in their alphabet. Neighbour: `frontend.py`.
"""

from __future__ import annotations

import unicodedata

_NEAREST = {
    "ł": "l", "ø": "o", "đ": "d", "ð": "th", "þ": "th", "ŋ": "ng", "ĳ": "ij", "ß": "ss", "æ": "ae",
    "œ": "oe", "ı": "i", "ħ": "h", "ŧ": "t", "ĸ": "k", "ſ": "s", "ə": "e", "ɓ": "b", "ɗ": "d", "ɖ": "d",
    "ƒ": "f", "ɠ": "g", "ɣ": "g", "ɛ": "e", "ɔ": "o", "ɩ": "i", "ʋ": "v", "ƙ": "k", "ƴ": "y", "ƥ": "p",
    "ƭ": "t", "ɲ": "ny", "ʒ": "zh", "ʃ": "sh", "ƞ": "n", "ɨ": "i", "ʉ": "u", "ɵ": "o",
}  # fmt: skip


def english(text: str, lost: list[str]) -> str:
    """The text with letters of English alone. lost: gets letters that are like none of these."""
    if text.isascii():
        return text
    table = {}
    for character in set(text):
        if character > "\x7f" and character.isalpha():
            plain = _plain(character)
            table[ord(character)] = plain
            if not plain:
                lost += character * text.count(character)
    return text.translate(table)


def _plain(character: str) -> str:
    parts = unicodedata.normalize("NFKD", character)
    letters = "".join(_letter(c) for c in parts if not unicodedata.combining(c))
    return letters if letters.isascii() else ""


def _letter(character: str) -> str:
    if character.isascii():
        return character
    plain = _NEAREST.get(character.lower(), character)
    return plain.capitalize() if plain != character and character.isupper() else plain
