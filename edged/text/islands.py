"""What is English inside Chinese by its form: a thing with its number, a title with a name.

Patterns over a text as it is written, each bounded; any thread. Neighbours: `runs` asks, for the edges of a
sentence and for what stands inside one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_LABEL_LONG = 64  # characters of a label at the edge of a sentence
_PLACES = (
    "Line|Gate|Room|Door|Zone|Platform|Terminal|Bay|Dock|Exit|Hall|Building|Floor|Level|Station|Cell"
    "|Lane|Track"
    "|Aisle|Rack|Cabinet|Panel|Tank|Pump|Valve|Motor|Robot|Machine|Press|Conveyor|Unit|Section|Area"
    "|Sector|Block"
    "|Channel|Port|Slot|Row|Seat|Bus|Step|Phase|Class|Type"
)
_NAMED = rf"(?<![\w.-])(?:[A-Z][a-z]{{1,15}} )?(?:{_PLACES})s? \d{{1,5}}[A-Z]?(?![\w./%°:-]|,\d| ?[xX×=])"
_LABEL_FIRST = re.compile(
    rf"\s*(?P<it>{_NAMED.replace('/%°:-', '/%°-')}:?|[A-Z][a-z]{{2,15}}(?: [a-z]{{3,15}}){{0,2}}:)(?=\s"
    rf"|[\u4e00-\u9fff])"
)
_LABEL_LAST = re.compile(rf"(?P<it>{_NAMED})(?=[\s。！？!?.，,]*$)")
# What is English by its form wherever it stands.
_MONTHS = "Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec"
ISLAND = re.compile(
    rf"(?<![\w.-])(?:(?:Mr|Mrs|Ms|Dr|Prof)\. ?[A-Z][a-z]{{1,20}}"
    r"|(?:Figs?|Rev|Vol|Sect?|Ch|Ver|Eq|Ref)\. ?(?:\d{1,6}(?:\.\d{1,4})?[A-Z]?|[A-Z])(?![\w.-]\w|\w)"
    rf"|(?:{_MONTHS})\. \d{{1,2}}(?![\w/:.-])"
    r"|[Nn]o\. ?\d{1,6} [a-z]{3,20}(?!\w)"
    r"|[A-Z][A-Za-z]{1,20} (?:Corp|Inc|Ltd|Co)\.(?!\w)"
    rf"|{_NAMED}(?!\s?(?:[个台件次套条]|号))"
    r"|\d{1,6}(?:\.\d{1,4})? (?!(?:bar|rpm|psi|ppm|mmHg|mol|cal|rad|pcs|inch|sec|mph|kgf|atm|bps|var"
    r"|bit|dpi|gal|lbs)\b)[a-z]{3,20}(?![\w/]))"
)


def labels(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """What names a place in English at the edges of a sentence with Han characters."""
    if first := _LABEL_FIRST.match(text, start, min(end, start + _LABEL_LONG)):
        yield first.span("it")
        start = first.end()
    if last := _LABEL_LAST.search(text, max(start, end - _LABEL_LONG), end):
        yield last.span("it")
