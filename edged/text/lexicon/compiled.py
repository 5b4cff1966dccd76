"""Patterns of a lexicon, looked up by what they begin with, and what a text can cost at each character.

Made with a lexicon, then only read, by any thread. Neighbours: `pattern` says what an expression is like,
`match` asks which ones may begin at a place, `read` keeps the cost within bounds.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from edged.text.fold import fold
from edged.text.lexicon import pattern as patterns
from edged.text.lexicon.entries import Entry

LITERAL_CHARS = 16  # of what a pattern begins with, to look it up by
ATTEMPT_WAYS = 4  # what it costs to try a pattern at all, in ways to fit it: each takes some 0.2 us
_REFERENCE = re.compile(r"\\([1-9])")
# Makes an alternation go on to what fits a whole word. ASCII alone: classes of more letters take milliseconds
# to compile, and `match` looks at those.
_END = r"(?:(?<!\w)|(?!\w))"
_CACHED = 4_096  # characters


@dataclass(frozen=True, slots=True)
class Pattern:
    """said: texts and numbers of groups in turn, beginning with a text."""

    entry: Entry
    regex: re.Pattern[str]
    first: re.Pattern[str]
    said: tuple[str, ...]


class Patterns:
    """Those of a lexicon, in order of rank."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        by_literal: dict[str, list[Pattern]] = defaultdict(list)
        for entry in entries:
            shape = patterns.shape(entry.pattern)
            by_literal[_key(shape)].append(_compiled(entry, shape))
        self._others = tuple(by_literal.pop("", ()))
        self._by_literal = {literal: tuple(items) for literal, items in by_literal.items()}
        lengths: dict[str, set[int]] = defaultdict(set)
        for literal in by_literal:
            lengths[literal[0]].add(len(literal))
        self._lengths = {first: tuple(found) for first, found in lengths.items()}
        self._beginning: dict[str, tuple[Pattern, ...]] = {}  # of `_others`; grows up to a bound

    def may_begin(self, folded: str, lowered: str, at: int) -> Iterator[Pattern]:
        """The patterns that can fit at a place, as far as its first characters tell."""
        for length in self._lengths.get(lowered[at], ()):
            yield from self._by_literal.get(lowered[at : at + length], ())
        if self._others:
            yield from self._beginning_with(folded[at])

    def _beginning_with(self, character: str) -> tuple[Pattern, ...]:
        known = self._beginning.get(character)
        if known is None:
            known = tuple(item for item in self._others if item.first.match(character))
            if len(self._beginning) < _CACHED:
                self._beginning[character] = known
        return known


class Cost:
    """How many ways there are to fit patterns at one place of a text, at most, as patterns are added."""

    def __init__(self) -> None:
        self._own: dict[str, int] = defaultdict(int)  # of the patterns that begin with just this
        self._beyond: dict[str, int] = defaultdict(int)  # the most of those that begin with more

    def with_one(self, pattern: str) -> int:
        """The cost with one (valid) pattern more."""
        shape = patterns.shape(pattern)
        literal = _key(shape)
        self._own[literal] += shape.ways + ATTEMPT_WAYS
        for length in range(len(literal), 0, -1):
            here, before = literal[:length], literal[: length - 1]
            self._beyond[before] = max(self._beyond[before], self._own[here] + self._beyond[here])
        return self._own[""] + self._beyond[""]


def expanded(item: Pattern, fit: re.Match[str], text: str) -> str:
    """What is said, with the groups as the text has them; a group that took no part is left out."""
    parts = list(item.said)
    for place in range(1, len(parts), 2):
        start, end = fit.span(int(parts[place]))
        parts[place] = text[start:end] if start >= 0 else ""
    return " ".join("".join(parts).split())


def lower(text: str) -> str:
    """Small letters, character for character."""
    if text.isascii():
        return text.lower()
    return "".join(small if len(small := c.lower()) == 1 else c for c in text)


def _key(shape: patterns.Shape) -> str:
    return lower(fold(shape.literal[:LITERAL_CHARS]))


def _compiled(entry: Entry, shape: patterns.Shape) -> Pattern:
    flags = re.ASCII if entry.exact else re.ASCII | re.IGNORECASE
    return Pattern(
        entry,
        re.compile(f"(?:{entry.pattern}){_END}", flags),
        re.compile("|".join(dict.fromkeys(shape.firsts)), flags),
        tuple(_REFERENCE.split(entry.say)),
    )
