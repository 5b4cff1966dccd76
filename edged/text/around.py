"""What the lexicon says in a text, put together with what a reader makes of the rest.

Pure; text thread. A reader sees the whole text, with a word of no meaning in the place of each entry: what
stands directly beside one is then read as a designation (the 02 of HMI-02 is no number below zero).
Neighbours: `reading` calls it; `span` has the spans.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from edged.text.span import Span

# What stands for an entry: a word of its script, which is in no table of a reader.
_LATIN, _HAN, _SIGN = "Zaq", "\u3402", "\ufffc"
_IS_HAN = re.compile("[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_STANDS = re.compile(f"{_LATIN}|{_HAN}|{_SIGN}")


def around(text: str, known: Sequence[Span], read: Callable[[str], list[Span]]) -> list[Span]:
    """The spans of a text, those of the lexicon among them. known: these, ascending and apart; read: a
    reader's spans of any text. Linear in the text beside what the reader does."""
    if not known:
        return read(text)
    masked: list[str] = []
    moved: list[tuple[int, int]] = []  # where an entry's word begins and ends
    at = size = 0
    for entry in known:
        word = _word_for(text[entry.start : entry.end])
        masked += (text[at : entry.start], word)
        size += entry.start - at
        moved.append((size, size + len(word)))
        size += len(word)
        at = entry.end
    masked.append(text[at:])
    made: list[Span] = []
    place = 0
    shift = 0  # from the masked text to the text
    for span in read("".join(masked)):
        while place < len(moved) and moved[place][1] <= span.start:
            made.append(known[place])
            shift = known[place].end - moved[place][1]
            place += 1
        first = place
        while place < len(moved) and moved[place][0] < span.end:
            place += 1
        if first == place:
            made.append(replace(span, start=span.start + shift, end=span.end + shift))
            continue
        start = span.start + shift
        shift = known[place - 1].end - moved[place - 1][1]
        made += _parted(span, start, span.end + shift, known[first:place])
    return [*made, *known[place:]]


def _word_for(entry: str) -> str:
    if _IS_HAN.search(entry):
        return _HAN
    return _LATIN if any(map(str.isalnum, entry)) else _SIGN


def _parted(span: Span, start: int, end: int, known: Sequence[Span]) -> Iterator[Span]:
    """A reader's span [start, end) of the text with entries inside, as spans between them. Where the reader
    has not kept the words that stand for them, only the entries are said otherwise than they are written."""
    said = _STANDS.split(span.spoken)
    if len(said) != len(known) + 1:
        yield from known
        return
    for spoken, entry in zip(said, [*known, None], strict=True):
        stop = entry.start if entry else end
        if start < stop and spoken.strip():
            yield Span(start, stop, spoken.strip(), span.kind)
        if entry:
            yield entry
            start = entry.end
