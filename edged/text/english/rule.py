"""What a reading rule is, and how a list of them finds the spans of a text. Pure; any thread.

Rules are tried in order, each over the whole text. What a rule has taken is hidden from the rules after
it, so that no two spans overlap. Every pattern is bounded, so one rule takes time linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from edged.text.english import words
from edged.text.span import Options, Span

HELD = "\ufdd0"  # a noncharacter, no letter and no space: stands for each character already taken


@dataclass(frozen=True, slots=True)
class Say:
    """How a number is put into words here: the options of the text and the variant of English."""

    options: Options
    british: bool = False

    def cardinal(self, number: int) -> str:
        return words.cardinal(number, self.british)

    def ordinal(self, number: int) -> str:
        return words.ordinal(number, self.british)

    def number(self, text: str) -> str:
        return words.number(text, self.british)


@dataclass(frozen=True, slots=True)
class Reading:
    """The answer of a rule. end: where the stretch ends if not with the match."""

    kind: str
    spoken: str
    end: int = -1


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern and the function that reads its matches; None leaves a match to the later rules.

    A group named `it` is the stretch that is read; the rest of the match is context. digits: it can match
    only where there is a digit.
    """

    pattern: re.Pattern[str]
    read: Callable[[re.Match[str], Say], Reading | None]
    digits: bool = True


def rule(
    pattern: str, read: Callable[[re.Match[str], Say], Reading | None], *, digits: bool = True, flags: int = 0
) -> Rule:
    return Rule(re.compile(pattern, flags), read, digits)


def find(text: str, rules: Iterable[Rule], say: Say) -> list[Span]:
    """Spans of all rules, in the order of the text. text: folded (see `edged.text.fold`)."""
    spans: list[Span] = []
    with_digits = any("0" <= c <= "9" for c in text)
    for entry in rules:
        if with_digits or not entry.digits:
            text = _take(text, entry, say, spans)
    spans.sort(key=lambda span: span.start)
    return spans


def _take(text: str, entry: Rule, say: Say, spans: list[Span]) -> str:
    """Adds the spans of one rule; returns the text without them, as long as before."""
    kept: list[str] = []
    at = 0
    group = "it" if "it" in entry.pattern.groupindex else 0
    for match in entry.pattern.finditer(text):
        reading = entry.read(match, say)
        if reading is None:
            continue
        start, end = match.span(group)
        end = reading.end if reading.end >= 0 else end
        if start < at:
            continue
        spans.append(Span(start, end, reading.spoken, reading.kind))
        kept += (text[at:start], HELD * (end - start))
        at = end
    if not kept:
        return text
    kept.append(text[at:])
    return "".join(kept)
