"""Dates, years, decades, weekdays: how they are said in English. American: April fifteenth."""

from __future__ import annotations

import re

from edged.text.english import words
from edged.text.english.rule import Reading, Rule, Say, rule
from edged.text.points import kept

MONTHS = ("January February March April May June July August September October November December").split()
_NUMBER_OF = {name.lower()[:3]: number for number, name in enumerate(MONTHS, 1)}
_MONTH = (
    r"(?P<month>January|February|March|April|May|June|July|August|September|October|November|December"
    r"|(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\b\.?)"
)
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
_DAY_OF = {name[:3]: name for name in DAYS} | {"Tues": "Tuesday", "Thur": "Thursday", "Thurs": "Thursday"}
SHORT_DAY = "Mon|Tues?|Wed|Thu(?:rs?)?|Fri|Sat|Sun"


def date(year: int | None, month: int, day: int | None, say: Say) -> str | None:
    """A date in words; None where there is no such day."""
    if not 1 <= month <= 12 or (day is not None and not 1 <= day <= 31):
        return None
    said = MONTHS[month - 1]
    if day is not None:
        said = f"the {say.ordinal(day)} of {said}" if say.british else f"{said} {say.ordinal(day)}"
    if year is None:
        return said
    return f"{said}{', ' if day is not None else ' '}{words.year(year, say.british)}"


def _reading(said: str | None) -> Reading | None:
    return Reading("date", said) if said else None


def _year_first(match: re.Match[str], say: Say) -> Reading | None:
    return _reading(date(int(match[1]), int(match[3]), int(match[4]), say))


def _full_year(text: str) -> int:
    number = int(text)
    return number if len(text) == 4 else number + (2000 if number < 70 else 1900)


def _year_last(match: re.Match[str], say: Say) -> Reading | None:
    """04/05/2026 in the order of the options, unless only the other one is a date; 15.04.2026 day first."""
    first, mark, second, last = int(match[1]), match[2], int(match[3]), match[4]
    if say.options.date_order == "ymd" and len(last) == 2 and mark != ".":
        return _reading(date(_full_year(match[1].zfill(2)), second, int(last), say))
    day_first = mark == "." or say.options.date_order == "dmy"
    day, month = (first, second) if day_first else (second, first)
    if month > 12:
        day, month = month, day
    return _reading(date(_full_year(last), month, day, say))


def _month(match: re.Match[str]) -> int:
    return _NUMBER_OF[match["month"][:3].lower()]


def _month_day(match: re.Match[str], say: Say) -> Reading | None:
    year = int(match["year"]) if match["year"] else None
    return _reading(date(year, _month(match), int(match["day"]), say))


def _day_month(match: re.Match[str], say: Say) -> Reading | None:
    day = int(match["day"])
    if not 1 <= day <= 31:
        return None
    said = f"the {say.ordinal(day)} of {MONTHS[_month(match) - 1]}"
    if match["year"]:
        return _reading(f"{said}, {words.year(int(match['year']), say.british)}")
    return _reading(said + kept(match.string, match.end()))


def _month_year(match: re.Match[str], say: Say) -> Reading | None:
    return _reading(date(int(match["year"]), _month(match), None, say))


def _months(match: re.Match[str], say: Say) -> Reading:
    """Jan-Mar 2026."""
    first, last = (MONTHS[_NUMBER_OF[match[name][:3].lower()] - 1] for name in ("month", "until"))
    year = f" {words.year(int(match['year']), say.british)}" if match["year"] else ""
    return Reading("range", f"{first} to {last}{year}")


def _week_of(match: re.Match[str], say: Say) -> Reading:
    year = words.year(int(match["year"]), say.british)
    return Reading("date", f"{say.cardinal(int(match['week']))}, {year}")


def _fiscal(match: re.Match[str], say: Say) -> Reading:
    return Reading("date", f"F Y {words.year(int(match[1]), say.british)}")


def _slashed(match: re.Match[str], say: Say) -> Reading | None:
    """12/2027: a month of a year."""
    return _reading(date(int(match["year"]), int(match["m"]), None, say))


def _month_days(match: re.Match[str], say: Say) -> Reading | None:
    """Dec 24-26."""
    first, last = int(match["day"]), int(match["last"])
    if not 1 <= first < last <= 31:
        return None
    year = f", {words.year(int(match['year']), say.british)}" if match["year"] else ""
    month = MONTHS[_month(match) - 1]
    return Reading("range", f"{month} {say.ordinal(first)} to {say.ordinal(last)}{year}")


def _year(match: re.Match[str], say: Say) -> Reading:
    return Reading("date", words.year(int(match["it"]), say.british))


def _years(match: re.Match[str], say: Say) -> Reading | None:
    first, second = match[1], match[2]
    if len(second) == 2:
        second = first[:2] + second
    if int(second) <= int(first):
        return None
    return Reading(
        "range", f"{words.year(int(first), say.british)} to {words.year(int(second), say.british)}"
    )


def _decade(match: re.Match[str], say: Say) -> Reading:
    return Reading("date", words.decade(int(match[1])))


def _weekdays(match: re.Match[str], say: Say) -> Reading:
    return Reading("range", f"{_DAY_OF[match[1]]} to {_DAY_OF[match[2]]}" + kept(match.string, match.end()))


def _weekday(match: re.Match[str], say: Say) -> Reading:
    return Reading("date", _DAY_OF[match["it"].rstrip(".")])


def _quarter(match: re.Match[str], say: Say) -> Reading:
    return Reading("date", f"Q {words.ONES[int(match[1])]} {words.year(int(match[2]), say.british)}")


def _week(match: re.Match[str], say: Say) -> Reading:
    said = f"week {say.cardinal(int(match[2]))}"
    return Reading("date", f"{said}, {words.year(int(match[1]), say.british)}")


_END = r"(?![\w]|[./-]\d)"
_YEAR_WORDS = (
    "[Ii]n|[Ss]ince|[Uu]ntil|[Bb]y|[Yy]ear|[Dd]uring|[Bb]efore|[Aa]fter|[Ff]rom|[Oo]f|©|[Cc]opyright"
    "|[Ss]pring|[Ss]ummer|[Aa]utumn|[Ff]all|[Ww]inter|[Ee]arly|[Ll]ate|[Mm]id"
)
_NOT_COUNTED = (
    r"(?= ?(?:$|[.,;:!?)\n](?!\d))| (?:the|we|it|was|is|and|or|to|with|a|an|he|she|they|for|when|because"
    r"|at|on)\b)"
)

RULES: list[Rule] = [
    rule(rf"(?<![\w.,/-])(?<!\d:)(\d{{4}})([-/.])(\d{{1,2}})\2(\d{{1,2}})(?=T\d|{_END})", _year_first),
    rule(rf"(?<![\w.,/-])(?<!\d:)(\d{{1,2}})([/.-])(\d{{1,2}})\2(\d{{4}}|\d{{2}}){_END}", _year_last),
    rule(r"(?<![\w.-])(\d{4})-W(\d{2})(?![\w-])", _week),
    rule(
        r"(?<![\w.,/-])(?<!\d:)(?P<m>0?[1-9]|1[0-2])/(?P<year>(?:19|20)\d\d)(?![\w/%°]|[.,]\d|-\d)", _slashed
    ),
    rule(
        rf"(?<!\w){_MONTH} (?P<day>\d{{1,2}}) ?[-–] ?(?P<last>\d{{1,2}})(?![\w:%°/]|[.,]\d|-\d)(?:,? "
        rf"(?P<year>[12]\d{{3}})(?![\w:%]|[.,]\d))?",
        _month_days,
    ),
    rule(
        rf"(?<!\w){_MONTH} (?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?![\w:%°/]|[.,]\d|-\d)(?:,? "
        rf"(?P<year>[12]\d{{3}})(?![\w:%]|[.,]\d))?",
        _month_day,
    ),
    rule(
        rf"(?<![\w.,/-])(?<!\d:)(?:[Tt]he )?(?P<day>\d{{1,2}})(?:st|nd|rd|th)?[ -](?:of )?{_MONTH}(?![\w])"
        r"(?:,?[ -](?P<year>[12]\d{3})(?![\w:%]|[.,]\d))?",
        _day_month,
    ),
    rule(
        rf"(?<!\w){_MONTH} ?[-–] ?{_MONTH.replace('month', 'until')}(?!\w)"
        r"(?: (?P<year>[12]\d{3})(?![\w:%]|[.,]\d))?",
        _months,
        digits=False,
    ),
    rule(r"(?<!\w)[Ww]eek (?P<it>(?P<week>\d{1,2}),? (?P<year>(?:19|20)\d\d))(?![\w:%]|[.,]\d)", _week_of),
    rule(r"(?<!\w)FY ?((?:19|20)\d\d)(?![\w-])", _fiscal),
    rule(rf"(?<!\w){_MONTH},? (?P<year>[12]\d{{3}})(?![\w:%]|[.,]\d)", _month_year),
    rule(r"(?<![\w])Q([1-4])[ /-](\d{4})(?!\w)", _quarter),
    rule(
        r"(?<![\w.,/-])(?<!\d:)((?:1[5-9]|20)\d\d) ?[-–] ?((?:1[5-9]|20)\d\d|\d\d)(?![\w%°/-]|[.,]\d"
        r"| ?[A-Za-z°%])",
        _years,
    ),
    rule(r"(?<![\w.,])((?:1[0-9]|20)\d0)'?s(?!\w)", _decade),
    rule(r"(?<!\w)'([2-9]0)s(?!\w)", _decade),
    rule(rf"(?<!\w)(?:{_YEAR_WORDS}) (?P<it>(?:1[1-9]|20)\d\d)(?!\w|[.,:/]\d|-\d){_NOT_COUNTED}", _year),
    rule(rf"(?<!\w)({SHORT_DAY})\.?[-–]({SHORT_DAY})(?!\w)\.?", _weekdays, digits=False),
    rule(rf"(?<!\w)(?P<it>(?:{SHORT_DAY})\.?)(?=,? ?\ufdd0)", _weekday),
]
