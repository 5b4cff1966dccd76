"""Stretches of a text that are read otherwise than they are written, and how they are put into it.

Types and one pure function, shared by all languages. Text thread (and the CLI). Neighbours: the readers of
a language (`english`, `chinese`) find spans; frontends apply them; an explanation of a reading lists them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

KINDS = frozenset(
    """cardinal ordinal decimal negative fraction percent range score ratio date time money telephone
    identifier version ip mac url email roman unit math acronym hashtag emoji width markup abbreviation
    traditional""".split()
)
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
    date_order: of dates in figures whose order their own form does not show.
    """

    emoji: Literal["skip", "name"] = "skip"
    digits: Literal["auto", "digits"] = "auto"
    date_order: Literal["mdy", "dmy", "ymd"] = "mdy"


def apply(text: str, spans: Sequence[Span]) -> str:
    """The text as it is spoken. spans: ascending, not overlapping.

    A space is added where two words would run together; East Asian scripts need none.
    """
    parts: list[str] = []
    last = ""  # the last character so far
    at = 0
    cut = False  # something was left out here
    for span in spans:
        if span.start > at:
            last = _append(parts, last, text[at : span.start], cut, at != 0)
            cut = False
        if span.spoken:
            last = _append(parts, last, span.spoken, cut, True)
            cut = False
        else:
            cut = True
        at = span.end
    if at < len(text):
        _append(parts, last, text[at:], cut, at != 0)
    return "".join(parts)


def _append(parts: list[str], last: str, piece: str, cut: bool, seam: bool) -> str:
    """Adds a piece, after a space where it needs one; returns the last character."""
    if seam and last and _touch(last, piece, cut):
        parts.append(" ")
    parts.append(piece)
    return piece[-1]


def _touch(last: str, piece: str, cut: bool) -> bool:
    """Whether a space must part them. After a cut also marks are parted: e, .g must not become e.g."""
    first = piece[0]
    if last >= _EAST_ASIAN or first >= _EAST_ASIAN or last.isspace() or first.isspace():
        return False
    if first.isalnum():
        return last.isalnum() or cut or last in _CLINGING
    return cut and len(piece) > 1 and not piece[1].isspace()


_CLINGING = ",;:!?"  # marks that a word follows after a space
