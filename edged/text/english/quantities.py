"""Numbers with what belongs to them: signs, ranges, dimensions, units."""

from __future__ import annotations

import re
from typing import NamedTuple

from edged.text.english import labels, units, words
from edged.text.english.rule import Reading, Rule, Say, rule
from edged.text.points import kept

N = (
    r"(?:\d{1,3}(?:\.\d{3}){1,4},\d{1,2}(?!\d)|(?:\d{1,3}(?:,\d{3}){1,5}(?!\d)|\d{1,18})(?:\.\d{1,18})?"
    r"|\.\d{1,18})"
)
SIGN = r"(?:(?P<sign>\+/-|[±∓]|(?<![\w)\]%°.\ufdd0])[-+−–]|−) ?)?"
_NEXT = r"(?:\+/-|[±+−-])?"
_NOUN_NEXT = re.compile(r" [a-z]{3,}")
_LETTER = re.compile(r" ?[A-Za-z](?![A-Za-z])")
SIGNS = {
    "-": "minus ", "−": "minus ", "–": "minus ", "+": "plus ", "±": "plus or minus ",
    "+/-": "plus or minus ", "∓": "minus or plus ",
}  # fmt: skip
_LONG_WORDS = re.compile(
    r"^ (?:long|wide|deep|high|thick|tall|diameter|pipe|bore|x|by|of|or less|max|min)\b|^ ?(?:$|[^\s\w])"
)


class _Part(NamedTuple):
    """A number as written, with its sign."""

    sign: str
    figures: str

    def spoken(self, say: Say) -> str:
        return SIGNS.get(self.sign, "") + say.number(self.figures)

    @property
    def single(self) -> bool:
        return self.figures == "1" and self.sign not in ("±", "+/-")


def unit_after(match: re.Match[str]) -> tuple[units.Found, bool] | None:
    """The unit after a number, and whether a hyphen joins them, as in 5-mm drill."""
    text, at = match.string, match.end()
    gap = text[at : at + 1]
    if gap == "-" and text[at + 1 : at + 2] in '"°%/':
        return None
    if gap == '"' and text.count('"', max(0, at - 200), at) % 2:  # it closes a quotation
        return None
    start = at + 1 if gap in (" ", "-") and gap else at
    found = units.parse(text, start)
    if found is None or (gap and gap in " -" and text[start] in '"/'):
        return None
    symbol = text[start : found.end]
    if labels.is_labelled(match) and _LETTER.match(text, at):
        return None
    if symbol in units.SPACED and gap != " ":
        return None
    if start == at and len(symbol) == 1 and _CODE_GOES_ON.match(text, found.end):
        return None
    if symbol == "in":
        if text[found.end : found.end + 1] == ".":
            point = text[found.end + 1 : found.end + 2] == " " and not kept(text, found.end + 1)
            return found._replace(end=found.end + point), gap == "-"
        if not _LONG_WORDS.match(text[found.end : found.end + 12]):
            return None
    if start == at and len(symbol) == 1 and symbol.isalpha() and labels.is_in_a_code(match):  # P-101A
        return None
    noun = _NOUN_NEXT.match(text, found.end) and not labels.is_shelved(match)
    if gap == "-" and len(symbol) == 1 and symbol.isupper() and not noun:  # a 5-A fuse, but lot 77-A
        return None
    if gap == "-" and len(symbol) == 1 and _GOES_ON.match(text, found.end):  # 12-A-3
        return None
    if gap == "-" and symbol.islower() and symbol in ("a", "d", "t", "in", "s"):
        return None
    return found, gap == "-"


def _parts(match: re.Match[str]) -> list[_Part]:
    found = [_Part(match["sign"] or "", match["first"])]
    for name in ("second", "third"):
        text = match[name]
        if text:
            figures = text.lstrip("+-−±/ ")
            found.append(_Part(text[: len(text) - len(figures)].strip(), figures))
    return found


def _with_unit(match: re.Match[str], say: Say) -> Reading | None:
    parts = _parts(match)
    after = unit_after(match)
    if after is None:
        bare = (
            match["by"] is None
            or match["first"] == "0"
            or match.string[match.end() : match.end() + 1].isalnum()
        )
        return None if bare else Reading(*_joined(match, parts, say))
    unit, joined = after
    kind, said = _joined(match, parts, say)
    single = (
        joined
        or _THING_NEXT.match(match.string, unit.end) is not None
        or (parts[-1].single and len(parts) == 1)
    )
    end = unit.end
    if further := _further(match.string, end, say):
        name = unit.one if single else unit.many
        return Reading("math" if further.times else "unit", f"{said} {name} {further.spoken}", further.end)
    if kind in ("cardinal", "decimal", "negative"):
        kind = "percent" if "percent" in unit.many or "mille" in unit.many else "unit"
        more = _TO_SAME.match(match.string, end)
        again = units.parse(match.string, more.end()) if more else None
        if more and again and again.many == unit.many:
            second = _Part(more["sign"].strip() if more["sign"] else "", more["number"])
            return Reading("range", f"{said} to {second.spoken(say)} {unit.many}", again.end)
    return Reading(kind, f"{said} {unit.one if single else unit.many}", end)


class _Further(NamedTuple):
    """What follows a quantity as a part of it. times: a dimension, as in 6 mm x 40 mm, not 3 L/100 km."""

    spoken: str
    end: int
    times: bool


def _further(text: str, at: int, say: Say) -> _Further | None:
    said = ""
    times = False
    for _ in range(3):
        more = _MORE.match(text, at)
        found = units.parse(text, more.end()) if more else None
        if more is None or found is None:
            break
        times = more["by"] is not None
        said += f" {'by' if times else 'per'} {say.number(more['number'])} {found.many}"
        at = found.end
    return _Further(said[1:], at, times) if said else None


def _joined(match: re.Match[str], parts: list[_Part], say: Say) -> tuple[str, str]:
    """Kind and words of a number, a range or dimensions."""
    spoken = [part.spoken(say) for part in parts]
    if len(parts) == 1:
        sign = parts[0].sign
        if sign in ("-", "−", "–"):
            return "negative", spoken[0]
        if sign:
            return "math", spoken[0]
        return "decimal" if "." in parts[0].figures else "cardinal", spoken[0]
    sum_of_two = len(parts) == 2 and _EQUALS.match(match.string, match.end())
    if match["by"]:
        return "math", (" times " if sum_of_two else " by ").join(spoken)
    if sum_of_two and match["to"].strip() in ("-", "–"):
        return "math", f"{spoken[0]} minus {spoken[1]}"
    if len(parts) == 2 and match["to"].strip() in ("±", "+/-"):
        return "math", f"{spoken[0]} plus or minus {spoken[1]}"
    return "range", " to ".join(spoken)


def _plain(match: re.Match[str], say: Say) -> Reading | None:
    if match["second"] is None and match.string[match.end() : match.end() + 1].isalnum():
        return None
    parts = _parts(match)
    kind, said = _joined(match, parts, say)
    if (
        kind == "range"
        and match["to"] == "-"
        and (_falls(parts) or (labels.is_labelled(match) and _is_place(parts)))
    ):
        return Reading("identifier", f"{parts[0].spoken(say)} dash {parts[1].spoken(say)}")
    if kind == "cardinal":
        figures = match["first"]
        if say.options.digits == "digits":
            return Reading(kind, words.digits(figures))
        if is_identifier(figures):
            return Reading("identifier", words.digits(figures))
    return Reading(kind, said)


def _falls(parts: list[_Part]) -> bool:
    """Whether the second of two plain figures is less than the first: EN 60204-1 is no range."""
    first, second = (part.figures.replace(",", "") for part in parts[:2])
    return first.isdigit() and second.isdigit() and int(second) < int(first) and len(parts) == 2


def _is_place(parts: list[_Part]) -> bool:
    """Room 12-204 is in house 12."""
    first, second = (part.figures for part in parts[:2])
    return len(parts) == 2 and len(first) < len(second) == 3 and second.isdigit() and len(first) < 3


def is_identifier(figures: str) -> bool:
    """Seven figures and more without commas name a thing, unless they are round; so do leading zeros."""
    if len(figures) > 1 and figures[0] == "0" and figures.isdigit():
        return True
    return "," not in figures and len(figures) >= 7 and not figures.endswith("000000")


def _scaled(match: re.Match[str], say: Say) -> Reading | None:
    if labels.is_labelled(match):
        return None
    return Reading("cardinal", f"{say.number(match['first'])} thousand")


def _times(match: re.Match[str], say: Say) -> Reading:
    return Reading("math", f"{say.number(match['first'])} times")


def _unit_alone(match: re.Match[str], say: Say) -> Reading | None:
    found = units.parse(match.string, match.start())
    if found is None or not found.alone:
        return None
    return Reading(
        "unit",
        found.one if _PER.search(match.string, max(0, match.start() - 4), match.start()) else found.many,
        found.end,
    )


_THING_NEXT = re.compile(
    r"(?<=\") (?!(?:long|wide|deep|high|thick|tall|from|and|above|below|with|per|off|too)\b)[a-z]{3,20}\b"
    r"|(?<=A) (?:fuses?|breakers?)\b"
)
_PER = re.compile(r"\bper $")
_GOES_ON = re.compile("-[A-Za-z0-9]")
_MORE = re.compile(rf"(?:/(?=10{{1,3}}(?!\d))|(?P<by> ?[x×] ?))(?P<number>{N}) ?(?=[A-Za-zµ\"])")
_EQUALS = re.compile(" ?=")
_CODE_GOES_ON = re.compile(r"-[A-Z0-9](?!\d{0,9}(?:\.\d{1,9})?[A-Za-zµΩ])")  # 7J-2205, but 5V-10V
BEFORE = r"(?<![\w.,])(?<!\d[:/-])"
AFTER = r"(?!\d|[.,]\d)"
_TO_SAME = re.compile(rf" ?(?:-|–|—|~|\.\.\.?|…) ?(?P<sign>[+−-] ?)?(?P<number>{N}) ?(?=[A-Za-zµ°℃℉%])")
_TO = r"(?: ?(?:[-–—~…]|±|\+/-) ?|\.{2,3}(?! )| \.{2,3} )"
_QUANTITY = (
    rf"{SIGN}{BEFORE}(?P<first>{N})"
    rf"(?:(?:(?P<to>{_TO})|(?P<by> ?[xX×] ?))(?P<second>{_NEXT}{N})(?: ?[xX×] ?(?P<third>{N}))?"
    rf"(?![xX×]\d|[-–/]\w))?{AFTER}"
)

FIRST: list[Rule] = [
    rule(_QUANTITY, _with_unit),
    rule(r"(?<![\w.,])(?<![A-Za-z]-)(?P<first>\d{1,4}(?:\.\d{1,3})?)[kK](?!\w)", _scaled),
    rule(rf"{BEFORE}(?P<first>\d{{1,6}}(?:\.\d{{1,3}})?) ?[x×](?= |$|[.,;!?)](?!\d)|\n)", _times),
]
PLAIN: list[Rule] = [
    rule(_QUANTITY, _plain),
]
LAST: list[Rule] = [rule(r"(?<![\w.,/-])[A-Za-zµΩ°℃℉%\u3371-\u33df]", _unit_alone, digits=False)]
