"""The items of a text between two cuts: what was read and is not spoken yet, and where languages change.

Pure data and functions of the text thread. Neighbour: `passage`, which owns the objects.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Literal

from edged.text.document import Language, Said, Tag, Words
from edged.text.split import Sentence

GROUP = 400  # of sentences that are read at once: to look for all figures takes some milliseconds each time
_HOLD = "\ufffc"  # stands for what has no text of its own where sentences are looked for
Run = tuple[int, int, Language | Literal[""]]
Part = tuple[Words | Tag, Language | Literal[""], int]


class Heard:
    """What was read and is not spoken yet, with its places in the passage."""

    def __init__(self) -> None:
        self._parts: deque[tuple[str, Said, int, int]] = deque()

    def add(self, voice: str, said: Said, start: int, end: int) -> None:
        self._parts.append((voice, said, start, end))

    def until(self, place: int) -> list[tuple[str, Said]]:
        """Takes what stands before a place; what was put into words goes with where it begins."""
        taken: list[tuple[str, Said]] = []
        while self._parts and self._parts[0][2] < place:
            voice, said, _, end = self._parts.popleft()
            if end > place and not said.read and not said.tag:
                cut_at = len(said.text) - (end - place)  # a blank may have been added before it
                self._parts.appendleft((voice, replace(said, text=said.text[cut_at:]), place, end))
                said = replace(said, text=said.text[:cut_at])
            taken.append((voice, said))
        return taken


def whole(words: Words) -> bool:
    """What sounds as a client said is never cut."""
    return bool(words.say_as) or words.phonemes is not None


def seen(item: Words | Tag) -> str:
    """The text in which sentences are looked for."""
    if isinstance(item, Tag):
        return _HOLD
    return _HOLD * max(1, len(item.text)) if whole(item) else item.text


def parts(items: Iterable[Words | Tag], runs: Iterable[Run], start: int, end: int) -> Iterator[Part]:
    """The items of a stretch of their text, cut where the language changes. Linear in items and runs."""
    runs = [run for run in runs if run[1] > start and run[0] < end]
    at = 0
    for item in items:
        begin, at = at, at + len(seen(item))
        if at <= start or begin >= end:
            continue
        if isinstance(item, Tag) or whole(item):
            if begin >= start:
                yield item, next((language for _, last, language in runs if last > begin), ""), begin
            continue
        for first, last, language in runs:
            low, high = max(first, start, begin), min(last, end, at)
            if low < high:
                yield replace(item, text=item.text[low - begin : high - begin]), language, low


def groups(found: Iterable[Sentence], last: bool) -> Iterator[list[Sentence]]:
    """Sentences that are read at once, as many as are short; the first one alone, as somebody waits for it.
    last: the last sentence, too."""
    group: list[Sentence] = []
    limit = 0
    for sentence in found:
        if group and sentence.end - group[0].start > limit:
            yield group
            group, limit = [], GROUP
        group.append(sentence)
    if not last:
        group = group[:-1]
    if group:
        yield group
