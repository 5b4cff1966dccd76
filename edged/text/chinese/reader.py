"""Chinese text as it is said: the spans that are read otherwise than they are written.

Made on the loading thread, then pure: any thread may use it. Linear in the text: every pattern is bounded,
and none is tried twice at a place. Neighbours: the modules of this package have the rules, `runs.py` asks.
"""

from __future__ import annotations

from edged.text.chinese import (
    codes,
    emoji,
    fractions,
    money,
    net,
    ordinals,
    quantities,
    signs,
    telephone,
    times,
)
from edged.text.chinese.rule import Scene, collect
from edged.text.chinese.view import View
from edged.text.span import Options, Span, settled

_RULES = (
    *signs.MARKUP,
    *emoji.RULES,
    *net.RULES,
    *times.RULES,
    *ordinals.RULES,
    *quantities.EARLY,
    *signs.ROMAN,
    *money.RULES,
    *telephone.RULES,
    *codes.RULES,
    *fractions.RULES,
    *quantities.RULES,
    *codes.LETTER_RULES,
    *signs.RULES,
)

_PASSES = 3  # what a first reading leaves beside its words, such as the end of an address, is read again


class Chinese:
    """Reads Mandarin. Raises `MissingExtra` when made without the package for traditional characters."""

    def __init__(self) -> None:
        self._view = View()

    def spans(self, text: str, options: Options) -> list[Span]:
        """Ascending, not overlapping; for any text, whatever its characters."""
        return settled(text, lambda part: self._once(part, options), _PASSES)

    def _once(self, text: str, options: Options) -> list[Span]:
        view = self._view.of(text)
        found = collect(_RULES, Scene(view, options))
        return _with_forms(text, view, found) if view != text else found


def _with_forms(text: str, view: str, found: list[Span]) -> list[Span]:
    """Adds what only has another form: traditional characters, full-width letters."""
    made: list[Span] = []
    place = 0
    for span in (*found, None):
        end = len(text) if span is None else span.start
        while place < end:
            kind = _form(text[place], view[place])
            start = place
            while place < end and _form(text[place], view[place]) == kind:
                place += 1
            if kind:
                made.append(Span(start, place, view[start:place], kind))
        if span is not None:
            made.append(span)
            place = span.end
    return made


def _form(written: str, seen: str) -> str:
    """The kind of a difference that is heard; punctuation is left to the voice."""
    if written == seen:
        return ""
    if seen.isalpha():
        return "traditional" if seen >= "\u3400" else "width"
    return ""
