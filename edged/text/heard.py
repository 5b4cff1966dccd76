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


class Parts:
    """The items of a passage, cut where its language changes, to be taken from its beginning on.

    Linear in items and runs, however many times some are taken.
    """

    def __init__(self, items: Iterable[Words | Tag], runs: Iterable[Run]) -> None:
        self._parts = deque(_cut(items, runs))

    def until(self, place: int) -> Iterator[Part]:
        """Takes what stands before a place; what sounds as a client said goes with where it begins."""
        while self._parts and self._parts[0][2] < place:
            item, language, at = self._parts.popleft()
            if isinstance(item, Words) and not whole(item) and at + len(item.text) > place:
                self._parts.appendleft((replace(item, text=item.text[place - at :]), language, place))
                item = replace(item, text=item.text[: place - at])
            yield item, language, at

    def rest(self) -> list[Words | Tag]:
        return [item for item, _, _ in self._parts]


def _cut(items: Iterable[Words | Tag], runs: Iterable[Run]) -> Iterator[Part]:
    """runs cover the text."""
    coming = iter(runs)
    _, last, language = next(coming, (0, 0, ""))
    at = 0
    for item in items:
        begin, at = at, at + len(seen(item))
        while last <= begin < at:
            _, last, language = next(coming, (begin, at, language))
        if isinstance(item, Tag) or whole(item):
            yield item, language, begin
            continue
        low = begin
        while low < at:
            high = min(last, at)
            yield replace(item, text=item.text[low - begin : high - begin]), language, low
            low = high
            if low == last and low < at:
                _, last, language = next(coming, (low, at, language))


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
