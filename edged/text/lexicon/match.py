"""Finds the entries of a lexicon in a text. Linear in the text: words are looked up, patterns are bounded.

A lexicon is made once, at start or on reload, and only read afterwards: one object may serve any thread.
Neighbours: `read` makes it, `compiled` knows its patterns, `reading` asks it before the readers of the
languages, so that what an entry says is not read by their rules first.

Letters are compared in one form (`fold`: full-width, other apostrophes), traditional characters as written:
a caller that has the text in simplified ones, character for character, may pass that.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from edged.errors import Problem
from edged.text.fold import fold
from edged.text.lexicon.compiled import Patterns, expanded, lower
from edged.text.lexicon.entries import Entry, Match

# Letters of scripts that put blanks between words, their marks, and digits.
_LETTERS = "0-9A-Za-z_\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02af\u0300-\u1fff"
# A word does not begin or end inside another one; can't is one word, Anna's are two.
_START = re.compile(rf"(?![{_LETTERS}])|(?<![{_LETTERS}])")
_END = re.compile(rf"(?<![{_LETTERS}])|(?![{_LETTERS}]|'[tT](?![{_LETTERS}]))")
_CONTRACTED = re.compile(rf"(?<=[{_LETTERS}]')")
_CONTRACTED_LETTERS = 2  # 's, 't, 'll


@dataclass(frozen=True, slots=True)
class _Words:
    """The words that begin with one character: their lengths, longest first, and their entries by text."""

    lengths: tuple[int, ...]
    entries: dict[str, tuple[Entry, ...]]


class Lexicon:
    """Entries, ready to be found. notes: of entries that stand, what one should know about them; signs:
    characters that are no letters, and that a whole entry is made of, so that they have a sound."""

    def __init__(self, entries: Iterable[Entry] = (), notes: Iterable[Problem] = ()) -> None:
        """entries: of those for the same word, the later one is used."""
        self.entries = tuple(entries)
        self.notes = tuple(notes)
        self.signs = _signs(self.entries)
        later_first = list(reversed(self.entries))
        ranked = sorted(later_first, key=_rank)  # stable
        self._words = _by_first([entry for entry in ranked if entry.word])
        self._patterns = Patterns([entry for entry in ranked if entry.pattern])

    def matches(self, text: str, language: str, voice: str) -> list[Match]:
        """What entries say otherwise, ascending: at each place the longest, and none inside another.

        language: zh or en, of the stretch that the text is, "" where it is not known. voice: by name.
        """
        found: list[Match] = []
        if not self.entries:
            return found
        folded = fold(text)
        lowered = lower(folded)
        at = 0
        while at < len(text):
            match = self._at(text, folded, lowered, at, language, voice)
            if match is not None:
                found.append(match)
            at = match.end if match is not None else at + 1
        return found

    def _at(self, text: str, folded: str, lowered: str, at: int, language: str, voice: str) -> Match | None:
        if not _START.match(folded, at):
            return None
        best: Match | None = None
        words = self._words.get(lowered[at])
        for entry, end in _words_at(words, folded, lowered, at) if words else ():
            if _holds(entry, language, voice):
                best = Match(at, end, entry.say or text[at:end], entry.phonemes, entry.language)
                break
        for item in self._patterns.may_begin(folded, lowered, at):
            if not _holds(item.entry, language, voice):
                continue
            fit = item.regex.match(folded, at)
            longer = fit is not None and fit.end() > (best.end if best else at)
            if fit is not None and longer and _END.match(folded, fit.end()):
                said = text[at : fit.end()] if item.entry.phonemes else expanded(item, fit, text)
                best = Match(at, fit.end(), said, item.entry.phonemes, item.entry.language)
        return best


def _words_at(words: _Words, folded: str, lowered: str, at: int) -> Iterator[tuple[Entry, int]]:
    """Longest first, and of the same words the more special entries first."""
    for length in words.lengths:
        end = at + length
        entries = words.entries.get(lowered[at:end], ())
        if not entries or end > len(folded) or not _END.match(folded, end):
            continue
        if length <= _CONTRACTED_LETTERS and _CONTRACTED.match(folded, at):
            continue
        for entry in entries:
            if not entry.exact or folded[at:end] == entry.word:
                yield entry, end


def _rank(entry: Entry) -> tuple[bool, bool, bool]:
    """An entry for some voices, for exact capitals, or for one language comes before one without."""
    return not entry.voices, not entry.exact, not entry.bound


def _holds(entry: Entry, language: str, voice: str) -> bool:
    if entry.voices and voice not in entry.voices:
        return False
    return not entry.bound or not language or language == entry.language


def _signs(entries: Iterable[Entry]) -> frozenset[str]:
    words = (entry.word for entry in entries if entry.word and not any(map(str.isalnum, entry.word)))
    return frozenset(character for word in words for character in word if not character.isspace())


def _by_first(entries: list[Entry]) -> dict[str, _Words]:
    grouped: dict[str, dict[str, tuple[Entry, ...]]] = {}
    for entry in entries:
        key = lower(entry.word)
        group = grouped.setdefault(key[0], {})
        group[key] = (*group.get(key, ()), entry)
    return {
        first: _Words(tuple(sorted({len(key) for key in group}, reverse=True)), group)
        for first, group in grouped.items()
    }
