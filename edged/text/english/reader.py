"""The English reader: finds in a text what is read otherwise than it is written. Text thread (and the CLI).

Owns the order of the rules; they are in the modules beside it, by what they read. Neighbours: frontends put
the spans into the text with `edged.text.span.apply`. A pure function of text and options; any thread.
"""

from __future__ import annotations

from edged.text.english import (
    abbreviations,
    addresses,
    calendar,
    clock,
    identifiers,
    letters,
    money,
    quantities,
    signs,
)
from edged.text.english.rule import Rule, Say, find
from edged.text.fold import fold
from edged.text.span import Options, Span

# Whole shapes before their parts, and what a word before it names before what only looks like a number.
_RULES: list[Rule] = [
    *signs.MARKUP,
    *signs.EMOJI,
    *addresses.RULES,
    *letters.RULES_FIRST,
    *identifiers.FIRST,
    *calendar.RULES,
    *clock.RULES,
    *money.RULES,
    *addresses.VERSIONS,
    *identifiers.THREADS,
    *quantities.FIRST,
    *identifiers.CODES,
    *signs.HASHTAGS,
    *quantities.PLAIN,
    *abbreviations.RULES,
    *abbreviations.ROMANS,
    *letters.RULES,
    *signs.SIGNS_FIRST,
    *quantities.LAST,
    *signs.LAST,
]


class English:
    """Reads English text. british: "and" in numbers, and dates with the day first in speech."""

    def __init__(self, british: bool = False) -> None:
        self._british = british

    def spans(self, text: str, options: Options) -> list[Span]:
        """Stretches in the order of the text, not overlapping. Linear in the text; raises for no text."""
        folded = fold(text)
        spans = find(folded, _RULES, Say(options, self._british))
        if folded is not text:
            spans = _with_folded(text, folded, spans)
        return spans


def _with_folded(text: str, folded: str, spans: list[Span]) -> list[Span]:
    """Adds a span for each stretch outside the others that only its form makes differ from plain ASCII."""
    found: list[Span] = []
    at = 0
    for span in [*spans, Span(len(text), len(text), "", "width")]:
        found += _forms(text, folded, at, span.start)
        if span.end > span.start:
            found.append(span)
        at = span.end
    return found


def _forms(text: str, folded: str, start: int, end: int) -> list[Span]:
    found: list[Span] = []
    begin = -1
    for index in range(start, end + 1):
        differs = index < end and text[index] != folded[index] and folded[index].isascii()
        if differs and begin < 0:
            begin = index
        elif not differs and begin >= 0:
            found.append(Span(begin, index, folded[begin:index], "width"))
            begin = -1
    return found
