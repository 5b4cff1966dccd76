"""Dates of month and day in figures alone: 12/7, where it is not a part of something. Pure; any thread.

Neighbours: `calendar` says them; `reader` puts these rules before those of fractions.
"""

from __future__ import annotations

import re

from edged.text.english.calendar import DAYS, SHORT_DAY, date
from edged.text.english.quantities import unit_after
from edged.text.english.rule import Reading, Rule, Say, rule

_PARTS = (2, 3, 4, 5, 8, 16, 32, 64)  # what is usually cut into so many parts
_FIGURES = r"(?P<m>0?[1-9]|[12]\d|3[01])/(?P<d>0?[1-9]|[12]\d|3[01])"
_END = r"(?![\w]|[.,/-]\d)"
_DAY_WORDS = (
    rf"[Oo]n|[Bb]y|[Dd]ue|[Uu]ntil|[Ss]ince|[Dd]ate|[Dd]eadline|[Dd]elivery|[Ss]tarting|(?:{SHORT_DAY})\\.?,?"
    rf"|(?:{'|'.join(DAYS)}),?"
)


def _short(first: str, second: str, say: Say) -> str | None:
    """12/7 in the order of the options, unless only the other one is a date."""
    month, day = int(first), int(second)
    if say.options.date_order == "dmy":
        month, day = day, month
    return date(None, month, day, say) or date(None, day, month, say)


def _is_part(match: re.Match[str]) -> bool:
    """Whether it is rather a part of something: by 3/4."""
    top, bottom = int(match["m"]), int(match["d"])
    return top < bottom and bottom in _PARTS and not match["time"]


def _told(match: re.Match[str], say: Say) -> Reading | None:
    """Beside a word or a time that makes it a day; after "by" it may be a part."""
    if unit_after(match) is not None or (match[0][:2] in ("by", "By") and _is_part(match)):
        return None
    return _date(_short(match["m"], match["d"], say))


def _improper(match: re.Match[str], say: Say) -> Reading | None:
    """12/7 is no part of anything."""
    if int(match["m"]) <= int(match["d"]) or unit_after(match) is not None:
        return None
    return _date(_short(match["m"], match["d"], say))


def _short_days(match: re.Match[str], say: Say) -> Reading | None:
    """12/1-12/7."""
    ends = [(int(match["m"]), int(match["d"])), (int(match["m2"]), int(match["d2"]))]
    parts = all(top < bottom and bottom in _PARTS for top, bottom in ends)
    first, last = _short(match["m"], match["d"], say), _short(match["m2"], match["d2"], say)
    if parts or not first or not last or unit_after(match) is not None:
        return None
    return Reading("range", f"{first} to {last}")


def _date(said: str | None) -> Reading | None:
    return Reading("date", said) if said else None


RULES: list[Rule] = [
    rule(
        rf"(?<![\w.,/-])(?<!\d[: ]){_FIGURES} ?(?:-|–|to|until"
        rf"|through) ?{_FIGURES.replace('m>', 'm2>').replace('d>', 'd2>')}{_END}",
        _short_days,
    ),
    rule(
        rf"(?<![\w.,/-])(?<!\d[: ])(?:(?:{_DAY_WORDS}):? )(?P<it>{_FIGURES}){_END}(?P<time>,? "
        rf"(?:at )?\d{{1,2}}:\d\d)?(?! ?=)",
        _told,
    ),
    rule(
        rf"(?<![\w.,/-])(?<!\d[: ])(?P<it>{_FIGURES}){_END}(?P<time>,? (?:at )?\d{{1,2}}:\d\d)",
        _told,
    ),
    rule(rf"(?<![\w.,/-])(?<!\d[: ])(?<![=+×÷] ){_FIGURES}{_END}(?! ?[=+×÷\"])", _improper),
]
