"""Stretches of a text that are read otherwise than they are written, and how they are put into it.

Types and one pure function, shared by all languages. Text thread (and the CLI). Neighbours: the readers of
a language (`english`, `chinese`) find spans; frontends apply them; an explanation of a reading lists them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from edged.text.document import Language

KINDS = frozenset(
    """cardinal ordinal decimal negative fraction percent range score ratio date time money telephone
    identifier version ip mac url email roman unit math acronym hashtag emoji width markup abbreviation
    traditional lexicon""".split()
)
_CLINGING = ".,;:!?"  # marks that a word follows after a space
_EAST_ASIAN = "\u2e80"  # from here on scripts put no spaces between words


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch [start, end) of a text that is read otherwise than it is written.

    spoken: in words of the language, "" where the stretch has no sound; kind: one of `KINDS`.
    """

    start: int
    end: int
    spoken: str
    kind: str


@dataclass(frozen=True, slots=True)
class Options:
    """How a text is read.

    emoji: without a sound, or by name; digits: "digits" reads plain numbers one digit at a time;
    date_order: of dates in figures whose order their own form does not show. numbers: the language of
    numbers, whatever stands around them; language: of a text that does not show its own ("": the voice's).
    """

    emoji: Literal["skip", "name"] = "skip"
    digits: Literal["auto", "digits"] = "auto"
    date_order: Literal["mdy", "dmy", "ymd"] = "mdy"
    numbers: Literal["auto", "zh", "en"] = "auto"
    language: Language | Literal[""] = ""


def apply(text: str, spans: Sequence[Span]) -> str:
    """The text as it is spoken. spans: ascending, not overlapping.

    A space is added where two words would run together; East Asian scripts need none.
    """
    return "".join(gap + said for _, _, gap, said in pieces(text, spans))


def then(text: str, first: Sequence[Span], second: Sequence[Span]) -> list[Span]:
    """The spans of two readings one after the other: `second` is of what `first` makes of the text."""
    places: list[tuple[int, int, int, int]] = []  # start and end, in the text and in what is said
    said: list[str] = []
    at = 0
    for start, end, gap, out in pieces(text, first):
        places.append((start, end, at + len(gap), at + len(gap) + len(out)))
        said += (gap, out)
        at = places[-1][3]
    spoken = "".join(said)
    kinds = {span.start: span.kind for span in first}
    ranges = [(begin, stop, kinds[start]) for start, _, begin, stop in places if start in kinds]
    ranges += [(span.start, span.end, span.kind) for span in second]
    found: list[Span] = []
    place = reading = 0
    for begin, stop, kind in _merged(sorted(ranges, key=lambda r: r[:2])):
        silent = begin == stop  # left out by the first reading
        while places[place][2] < begin if silent else places[place][3] <= begin:
            place += 1
        start = _origin(places[place], begin, kinds, False)
        while place + 1 < len(places) and places[place + 1][2] < stop:
            place += 1
        end = _origin(places[place], stop, kinds, True)
        inner: list[Span] = []
        while reading < len(second) and second[reading].end <= stop:
            span = second[reading]
            inner.append(Span(span.start - begin, span.end - begin, span.spoken, span.kind))
            reading += 1
        found.append(Span(start, end, apply(spoken[begin:stop], inner), kind))
        if silent:
            place += 1
    return found


def settled(text: str, read: Callable[[str], list[Span]], passes: int) -> list[Span]:
    """The spans of a reading that is read again until it has nothing more to read, at most `passes` times:
    what a word stood against, such as the end of an address, can be a word of its own afterwards."""
    spans = read(text)
    for _ in range(passes if spans else 0):
        again = read(apply(text, spans))
        if not again:
            break
        spans = then(text, spans, again)
    return spans


def _merged(ranges: list[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """Ranges that overlap become one, of the first one's kind."""
    merged: list[tuple[int, int, str]] = []
    for begin, stop, kind in ranges:
        if merged and begin < merged[-1][1]:
            before = merged.pop()
            begin, stop, kind = before[0], max(stop, before[1]), before[2]
        merged.append((begin, stop, kind))
    return merged


def _origin(place: tuple[int, int, int, int], at: int, kinds: dict[int, str], ends: bool) -> int:
    """Where in the text a position of what is said comes from."""
    start, end, begin, stop = place
    if start in kinds:
        return end if ends else start
    return start + min(max(at, begin), stop) - begin


def pieces(text: str, spans: Sequence[Span]) -> Iterator[tuple[int, int, str, str]]:
    """Read and unread stretches in order: start, end, the space before it if any, what is said (""
    where a reader left it out)."""
    last = ""  # the last character so far
    at = 0
    cut = False  # something was left out here
    for span in [*spans, None]:
        stretches = [
            (at, span.start if span else len(text), None),
            (span.start, span.end, span) if span else None,
        ]
        for stretch in filter(None, stretches):
            start, end, read = stretch
            said = read.spoken if read else text[start:end]
            if said:
                yield start, end, " " if start and last and _touch(last, said, cut) else "", said
                last, cut = said[-1], False
            elif read:
                yield start, end, "", ""
                cut = True
        at = span.end if span else at


def _touch(last: str, piece: str, cut: bool) -> bool:
    """Whether a space must part them. After a cut also marks are parted: e, .g must not become e.g."""
    first = piece[0]
    if last >= _EAST_ASIAN or first >= _EAST_ASIAN or last.isspace() or first.isspace():
        return False
    if first.isalnum():
        return last.isalnum() or cut or last in _CLINGING
    inner = len(piece) > 1 and not piece[1].isspace()
    return inner and (cut or (first in _CLINGING and piece[1].isalnum()))
