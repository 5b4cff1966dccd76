"""The first look at a text: what can be spoken is kept, what has no sound is counted, the rest refused.

A pure function, linear in the text, called on the thread that received it before a job is made, so that
a client learns at once why nothing would be heard. Neighbours: the server above, frontends after it.
Reading numbers, units and abbreviations is the frontends' work.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from edged.errors import EmptyText, UnspeakableText, UnsupportedText

# The first word of a character's Unicode name says its script; that is all the standard library knows.
_SCRIPTS: dict[str, tuple[str, ...]] = {
    "en": ("LATIN",),
    "zh": ("LATIN", "CJK", "BOPOMOFO"),
}
_LINE_BREAKS = frozenset("\n\x0b\x0c\x85\u2028\u2029")
_SYMBOLS_WITH_SOUND = frozenset("+=<>~|±×÷≤≥≈≠−√∞°©®™℃℉№`^∶∼⌀")
_SQUARED_UNITS = ("\u3371", "\u33df")  # ㎡ and its like, which readers of Chinese know
# Greek letters that stand alone are signs, of units above all; a Greek word is another language.
_GREEK = re.compile(r"(?<![\u0370-\u03ff])[\u0391-\u03a9\u03b1-\u03c9\u00b5\u2126](?![\u0370-\u03ff])")
_GREEK_WORD = re.compile(r"[\u0370-\u03ff]{2}")
_MARKS = 8  # combining marks on one letter; no language has more
_NAMED_AT_MOST = 5  # characters in the message of a refusal

_KEEP, _SPACE, _DROP, _FOREIGN = range(4)


@dataclass(frozen=True, slots=True)
class Checked:
    """A text ready for a frontend; `skipped` counts the characters left out of it."""

    text: str
    skipped: int


def check(text: str, languages: Sequence[str]) -> Checked:
    """Cleans a text for a voice of these languages (BCP 47 tags; "*" or an unknown one: any script).

    Raises `EmptyText`, `UnspeakableText` or `UnsupportedText`.
    """
    scripts = _scripts(languages)
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    length = len(text)
    if not text.isascii():
        text = _without_towers(text)
    skipped = length - len(text)
    text = unicodedata.normalize("NFC", text)
    seen: dict[str, tuple[int, str]] = {}  # a text has few different characters
    if scripts and not _GREEK_WORD.search(text):  # the readers of languages know the signs
        seen.update((letter, (_KEEP, letter)) for letter in _GREEK.findall(text))
    kept: list[str] = []
    foreign: list[str] = []
    for character in text:
        verdict = seen.get(character)
        if verdict is None:
            verdict = seen[character] = _judge(character, scripts)
            if verdict[0] == _FOREIGN:
                foreign.append(character)
        action, replacement = verdict
        kept.append(replacement)
        skipped += action in (_SPACE, _DROP)
    if foreign:
        named = " ".join(foreign[:_NAMED_AT_MOST]) + (" ..." if len(foreign) > _NAMED_AT_MOST else "")
        raise UnsupportedText(f"the voice speaks {', '.join(languages)}, not: {named}")
    if not any(map(str.isalnum, seen)):
        visible = any(c.isprintable() and not c.isspace() for c in seen)
        if visible:
            raise UnspeakableText("the text has no letter and no digit")
        raise EmptyText("the text is empty")
    return Checked("".join(kept).strip(), skipped)


def _without_towers(text: str) -> str:
    """Cuts piles of combining marks: their canonical order takes time that grows with the square."""
    kept = []
    marks = 0
    for character in text:
        marks = marks + 1 if unicodedata.combining(character) else 0
        if marks <= _MARKS:
            kept.append(character)
    return "".join(kept)


def _scripts(languages: Sequence[str]) -> tuple[str, ...]:
    """Allowed first words of character names; empty allows every script."""
    allowed: list[str] = []
    for language in languages:
        known = _SCRIPTS.get(language.partition("-")[0].lower())
        if known is None:
            return ()
        allowed += known
    return tuple(allowed)


def _judge(character: str, scripts: tuple[str, ...]) -> tuple[int, str]:
    """What becomes of a character: (action, what stands in its place)."""
    if " " <= character <= "~":
        return _KEEP, character
    if character in _LINE_BREAKS:
        return _KEEP, "\n"
    if character.isspace():
        return _KEEP, " "
    kind = unicodedata.category(character)
    if kind[0] == "L":
        return _letter(character, kind, scripts)
    if kind in ("So", "Sm", "Sk"):
        return _symbol(character, scripts)
    if kind in ("Cf", "Me") or "\ufe00" <= character <= "\ufe0f":
        return _DROP, ""  # invisible within a word: bidi marks, soft hyphens, emoji selectors
    if kind[0] == "C":
        return _SPACE, " "
    return _KEEP, character


def _symbol(character: str, scripts: tuple[str, ...]) -> tuple[int, str]:
    """Signs that readers have words for; full-width ones as the usual ones."""
    usual = unicodedata.normalize("NFKC", character) if character >= "\uff00" else character
    if usual.isascii() or usual in _SYMBOLS_WITH_SOUND:
        return _KEEP, usual
    if "CJK" in scripts and _SQUARED_UNITS[0] <= character <= _SQUARED_UNITS[1]:
        return _KEEP, character
    return _SPACE, " "


def _letter(character: str, kind: str, scripts: tuple[str, ...]) -> tuple[int, str]:
    if not scripts or unicodedata.name(character, "").startswith(scripts):
        return _KEEP, character
    plain = unicodedata.normalize("NFKC", character)  # full-width and mathematical letters
    if plain != character and all(unicodedata.name(c, "").startswith(scripts) for c in plain if c.isalpha()):
        return _KEEP, plain
    if kind == "Lm":
        return _DROP, ""  # modifier letters belong to no one script and have no sound of their own
    return _FOREIGN, ""
