"""Folds a text, character for character, into the forms that reading rules look for.

Language-free and pure. Full-width forms become ASCII, digits of every script become ASCII digits, the many
spaces, hyphens and apostrophes become one each. Nothing is added or removed: positions stay. Neighbours:
readers match on the folded text and report stretches of the original.
"""

from __future__ import annotations

import unicodedata

_SAME: dict[str, str] = {
    **dict.fromkeys("\u2010\u2011\ufe63", "-"),  # hyphens; dashes are kept, they mean ranges and pauses
    **dict.fromkeys("\u2018\u2019\u02bc", "'"),
    **dict.fromkeys("\u201c\u201d", '"'),
    "\u03bc": "\u00b5",  # mu is micro
    "\u2126": "\u03a9",  # ohm is omega
    "\u212a": "K",
    "\u212b": "\u00c5",
    "\u2044": "/",
    "\u2215": "/",
    "\u2236": ":",
    "\u22c5": "\u00b7",
    "\u2219": "\u00b7",
    "\u2032": "'",
    "\u2033": '"',
    "\u02da": "\u00b0",
    "\u00ba": "\u00b0",
    **dict(zip("₀₁₂₃₄₅₆₇₈₉", "0123456789", strict=True)),  # CO₂
}


def fold(text: str) -> str:
    """As long as the text, with one plain form for each meaning."""
    if text.isascii():
        return text
    table = {ord(c): plain for c in set(text) if c > "\x7f" and (plain := _plain(c)) != c}
    return text.translate(table) if table else text


def _plain(character: str) -> str:
    if character in _SAME:
        return _SAME[character]
    if "\uff01" <= character <= "\uff5e":
        return chr(ord(character) - 0xFEE0)
    if character.isspace():
        return "\n" if character in "\x85\u2028\u2029" else " "
    category = unicodedata.category(character)
    if category == "Nd":
        return str(unicodedata.digit(character))
    if category == "Ll" or category == "Lu":  # letters of mathematical alphabets
        plain = unicodedata.normalize("NFKC", character) if character >= "\U0001d400" else character
        return plain if len(plain) == 1 and plain.isascii() else character
    return character
