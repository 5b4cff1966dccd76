"""What an entry of a lexicon is, and where it was written. Leaf module, frozen data, any thread.

Neighbours: `read` makes entries of files, `match` finds them in texts.
"""

from __future__ import annotations

from dataclasses import dataclass

from edged.text.document import Language, Phonemes


@dataclass(frozen=True, slots=True)
class Place:
    """Where an entry begins; line and column count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Entry:
    """One word, or a pattern for several, and how it is said.

    word, pattern: one of the two, the other is "". exact: capitals count. language: of what is said. bound:
    only in stretches of that language (it was written with the entry); others hold wherever they occur, as
    Latin names do inside Chinese. say: plain words, "" where there are phonemes. voices: () for all.
    """

    word: str
    pattern: str
    exact: bool
    language: Language
    bound: bool
    say: str
    phonemes: Phonemes | None
    voices: tuple[str, ...]
    place: Place


@dataclass(frozen=True, slots=True)
class Match:
    """A stretch [start, end) of a text that an entry says otherwise.

    said: plain words of `language`; of an entry with phonemes the stretch as it is written.
    """

    start: int
    end: int
    said: str
    phonemes: Phonemes | None
    language: Language
