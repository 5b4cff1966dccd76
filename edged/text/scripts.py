"""What a character is to a voice: kept, left out for a reason, or of a writing that it does not speak.

Owns the classification by Unicode name and category, which is all that the standard library knows. Pure data
and one small class, any thread. Neighbours: `check` asks it, character by character.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from edged.text import shapes
from edged.text.document import primary

# The first word of a character's Unicode name says its script.
_SCRIPTS: dict[str, tuple[str, ...]] = {
    "en": ("LATIN",),
    "zh": ("LATIN", "CJK", "BOPOMOFO"),
}
_READ = frozenset(_SCRIPTS)  # languages with a reader, which knows signs and emoji
_LINE_BREAKS = frozenset("\n\x0b\x0c\x85\u2028\u2029")
# Signs that the readers have words for; a test asks them. Those of a voice without a reader are all of them.
_SIGNS = {
    "en": frozenset(
        "°±×÷©®™¬˚⁄⁺⁻℃℉№℠←↑→↓↔⇒∂∆∇∈∏∑−∓∕∙√∝∞∫∶≅≈≠≡≤≥≪≫⋅⌀ⒶⒷⒸⒹⒺⒻⒼⒽⒾⒿⓀⓁⓂⓃⓄⓅⓆⓇⓈⓉⓊⓋⓌⓍⓎⓏⓐⓑⓒⓓⓔⓕⓖⓗⓘⓙⓚⓛⓜⓝⓞⓟⓠⓡⓢⓣⓤⓥⓦⓧⓨⓩ"
    ),
    "zh": frozenset("°±×÷©®™⁄℃℉№→−∕√∞∶∼≈≠≤≥⌀"),
}
_SQUARED_UNITS = ("\u3371", "\u33df")  # ㎡ and its like
_BIDIRECTIONAL = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")

MANY_MARKS = "a combining mark too many"
EMOJI = "an emoji without a sound"
NAMELESS = "an emoji without a name"
_CONTROLS = {
    "Cc": "a control character",
    "Cs": "an unpaired surrogate",
    "Co": "a private-use character",
    "Cn": "an unassigned character",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What stands in a character's place; why it is left out, "" where it is not; whether it is foreign."""

    text: str
    why: str = ""
    foreign: bool = False


_FOREIGN = Verdict("", foreign=True)


class Judge:
    """Judges for a voice of these languages (BCP 47 tags; "*" or an unknown one: any script).

    known: characters with a sound of their own, whatever they are: single Greek letters, the lexicon's signs.
    """

    def __init__(self, languages: Sequence[str], known: frozenset[str] = frozenset()) -> None:
        self.languages = tuple(languages)
        self._known = known
        names = list(map(primary, languages))
        self._any = not all(name in _SCRIPTS for name in names)
        self._scripts = () if self._any else tuple(script for name in names for script in _SCRIPTS[name])
        self._signs = frozenset[str]().union(*(_SIGNS[name] for name in (_SIGNS if self._any else names)))
        self.names_emoji = not _READ.isdisjoint(names)
        self._seen: dict[str, Verdict] = {}  # a text has few different characters

    def of(self, character: str) -> Verdict:
        verdict = self._seen.get(character)
        if verdict is None:
            verdict = self._seen[character] = self._judge(character)
        return verdict

    def _judge(self, character: str) -> Verdict:
        if " " <= character <= "~" or character in self._known:
            return Verdict(character)
        if character in _LINE_BREAKS:
            return Verdict("\n")
        if character.isspace():
            return Verdict(" ")
        category = unicodedata.category(character)
        if category[0] == "L":
            return self._letter(character, category)
        if category in ("So", "Sm", "Sk"):
            return self._symbol(character)
        if category == "Cf" or "\ufe00" <= character <= "\ufe0f":  # within a word, so nothing is in its place
            bidirectional = character in _BIDIRECTIONAL
            return Verdict("", "a bidirectional control" if bidirectional else "an invisible character")
        if category == "Me":
            return Verdict("", "an enclosing mark")
        if category[0] == "C":
            return Verdict(" ", _CONTROLS[category])
        return Verdict(character)

    def _symbol(self, character: str) -> Verdict:
        """Signs that readers have words for; full-width ones as the usual ones."""
        usual = unicodedata.normalize("NFKC", character) if character >= "\uff00" else character
        if usual.isascii() or usual in self._signs:
            return Verdict(usual)
        if self._scripts and _SQUARED_UNITS[0] <= character <= _SQUARED_UNITS[1]:
            return Verdict(character)
        return Verdict(" ", EMOJI if shapes.is_emoji(character) else "a symbol without a sound")

    def _letter(self, character: str, category: str) -> Verdict:
        scripts = self._scripts
        if not scripts or unicodedata.name(character, "").startswith(scripts):
            return Verdict(character)
        plain = unicodedata.normalize("NFKC", character)  # full-width and mathematical letters
        letters = (c for c in plain if c.isalpha())
        if plain != character and all(unicodedata.name(c, "").startswith(scripts) for c in letters):
            return Verdict(plain)
        if category == "Lm":
            return Verdict("", "a modifier letter")  # of no one script, and without a sound of its own
        return _FOREIGN
