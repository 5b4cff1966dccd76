"""The English reader: finds in a text what is read otherwise than it is written. Text thread (and the CLI).

Owns the order of the rules; they are in the modules beside it, by what they read. Neighbours: frontends put
the spans into the text with `edged.text.span.apply`. A pure function of text and options; any thread.
"""

from __future__ import annotations

import re

from edged.text.english import (
    abbreviations,
    addresses,
    calendar,
    clock,
    forms,
    identifiers,
    letters,
    money,
    quantities,
    short_dates,
    signs,
)
from edged.text.english.rule import Rule, Say, find
from edged.text.fold import fold
from edged.text.span import Options, Span, settled

# Whole shapes before their parts, and what a word before it names before what only looks like a number.
_RULES: list[Rule] = [
    *signs.MARKUP,
    *signs.EMOJI,
    *addresses.RULES,
    *identifiers.FIRST,
    *letters.RULES_FIRST,
    *short_dates.RULES,
    *calendar.RULES,
    *clock.RULES,
    *money.RULES,
    *addresses.VERSIONS,
    *identifiers.THREADS,
    *signs.SIGNS_FIRST,
    *forms.RULES,
    *quantities.FIRST,
    *signs.HASHTAGS,
    *identifiers.CODES,
    *quantities.PLAIN,
    *quantities.LAST,
    *signs.FIGURES,
    *signs.LAST,
    *abbreviations.RULES,
    *abbreviations.ROMANS,
    *letters.RULES,
]


# A word that touched a figure (St.5) stands free once the figure is a word, and is read then.
_PASSES = 4
_RUN = re.compile(r"\w+|[^\w\s]+|\s+")


class English:
    """Reads English text. british: "and" in numbers, and dates with the day first in speech."""

    def __init__(self, british: bool = False) -> None:
        self._british = british

    def spans(self, text: str, options: Options) -> list[Span]:
        """Stretches in the order of the text, not overlapping. Linear in the text; raises for no text."""
        return settled(text, lambda part: self._once(part, options), _PASSES)

    def _once(self, text: str, options: Options) -> list[Span]:
        folded = fold(text)
        spans = find(folded, _RULES, Say(options, self._british))
        return spans if folded is text else _with_folded(text, folded, spans)


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
    for run in _RUN.finditer(folded, start, end):
        begin, stop = run.span()
        if any(map(_is_form, text[begin:stop])):
            found.append(Span(begin, stop, run[0], "width"))
    return found


def _is_form(character: str) -> bool:
    return "\uff01" <= character <= "\uff5e" or character >= "\U0001d400" or character == "\u3000"
