"""Stretches of a text that are read otherwise than written, whatever the language. Leaf module, pure.

Neighbours: the readers of the languages make spans, `runs.py` joins them, frontends apply them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

KINDS = (
    "cardinal",
    "ordinal",
    "decimal",
    "negative",
    "fraction",
    "percent",
    "range",
    "score",
    "ratio",
    "date",
    "time",
    "money",
    "telephone",
    "identifier",
    "version",
    "ip",
    "mac",
    "url",
    "email",
    "roman",
    "unit",
    "math",
    "acronym",
    "hashtag",
    "emoji",
    "width",
    "markup",
    "abbreviation",
    "traditional",
)
_FIRST_OF_EAST = "\u2e80"  # from here on scripts that are written without spaces


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch [start, end) of a text that is read otherwise than it is written.

    spoken: in words of the language, "" where nothing is said; kind: one of `KINDS`.
    """

    start: int
    end: int
    spoken: str
    kind: str


@dataclass(frozen=True, slots=True)
class Options:
    """How what can be read in several ways is read.

    digits: "digits" reads every whole number digit by digit; date_order: of 04/05/2026.
    """

    emoji: Literal["skip", "name"] = "skip"
    digits: Literal["auto", "digits"] = "auto"
    date_order: Literal["mdy", "dmy", "ymd"] = "mdy"


def apply(text: str, spans: Sequence[Span]) -> str:
    """The text as it is said. spans: ascending, not overlapping.

    Spaces are added where words of a script that has spaces would run together.
    """
    made: list[str] = []
    last = ""  # the last character so far
    place = 0
    for span in spans:
        for part in (text[place : span.start], span.spoken):
            if part:
                made.append(" " + part if _together(last, part[0]) else part)
                last = part[-1]
        place = span.end
    rest = text[place:]
    if rest:
        made.append(" " + rest if _together(last, rest[0]) else rest)
    return "".join(made)


def _together(left: str, right: str) -> bool:
    return left.isalnum() and right.isalnum() and max(left, right) < _FIRST_OF_EAST
