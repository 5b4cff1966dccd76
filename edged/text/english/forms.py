"""Numbers of a special form: fractions, powers of ten, feet, ordinals, groups and lists of figures."""

from __future__ import annotations

import re
import unicodedata

from edged.text.english import words
from edged.text.english.labels import is_labelled
from edged.text.english.quantities import AFTER, BEFORE, SIGN, SIGNS, N, unit_after
from edged.text.english.rule import Reading, Rule, Say, rule

_HIGH = "[⁺⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,4}"
_MANY = 100  # parts, more than a fraction usually has
_GLYPHS = "½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅐⅛⅜⅝⅞⅑⅒"


def _grouped(match: re.Match[str], say: Say) -> Reading | None:
    """10 000 rpm: figures in groups of three with spaces; of one group only where a unit or noughts tell."""
    after = unit_after(match)
    if is_labelled(match):
        return None
    if after is None:
        one = match["first"].count(" ") == 1
        told = match["first"].endswith("00") or match.string[: match.start()].endswith(": ")
        if one and not told:
            return None
        return Reading(
            "cardinal", SIGNS.get(match["sign"] or "", "") + say.number(match["first"].replace(" ", ""))
        )
    sign = SIGNS.get(match["sign"] or "", "")
    return Reading(
        "unit", f"{sign}{say.number(match['first'].replace(' ', ''))} {after[0].many}", after[0].end
    )


def _fraction(match: re.Match[str], say: Say) -> Reading | None:
    ratio = unicodedata.normalize("NFKC", match["ratio"]).replace("\u2044", "/").replace(",", "")
    top, bottom = map(int, ratio.split("/"))
    if bottom == 0 or (match["whole"] and top >= bottom):
        return None
    whole = match["whole"]
    said = words.fraction(top, bottom, say.british)
    if not whole and 1 < top <= bottom and bottom >= _MANY and "over" in said:  # 1204/1250: so far
        if _is_years(match["ratio"]):
            return None
        said = f"{say.cardinal(top)} of {say.cardinal(bottom)}"
    after = unit_after(match)
    if after and top >= 10 and bottom % 10 == 0 and "of" not in said:  # 50/60 Hz
        return Reading(
            "range", f"{say.cardinal(top)} slash {say.cardinal(bottom)} {after[0].many}", after[0].end
        )
    if whole:
        if said.startswith("one ") and "over" not in said:
            said = "a" + said[3:]
        said = f"{say.number(whole)} and {'an' + said[1:] if said.startswith('a eigh') else said}"
    said = SIGNS.get(match["sign"] or "", "") + said
    if after is None:
        return Reading("fraction", said)
    unit, joined = after
    name = unit.one if joined or not whole else unit.many
    return Reading("fraction", f"{said} {name}", unit.end)


def _is_years(ratio: str) -> bool:
    """2025/2026."""
    return re.fullmatch(r"(?:19|20)\d\d/(?:19|20)\d\d", ratio) is not None


def _inch_thread(match: re.Match[str], say: Say) -> Reading:
    """1/4"-20: a diameter in inches and threads to the inch."""
    top, bottom = int(match["top"]), int(match["bottom"])
    size = words.fraction(top, bottom, say.british) if bottom else "zero"
    whole = f"{say.number(match['whole'])} and " if match["whole"] else ""
    return Reading("identifier", f"{whole}{size} inch, {say.number(match['pitch'])}")


def _step(match: re.Match[str], say: Say) -> Reading:
    """Step 4/7."""
    return Reading("fraction", f"{say.number(match['first'])} of {say.number(match['second'])}")


def _angle(match: re.Match[str], say: Say) -> Reading:
    """31°18'20"."""
    names = zip(match.groups(), ("degree", "minute", "second"), strict=True)
    said = [f"{say.number(n)} {name}{'' if n.lstrip('0') == '1' else 's'}" for n, name in names if n]
    return Reading("unit", " ".join(said))


def _feet(match: re.Match[str], say: Say) -> Reading:
    feet, inches = match["feet"], match["inches"]
    said = f"{say.number(feet)} {'foot' if feet == '1' else 'feet'}"
    if inches:
        said += f" {say.number(inches)} {'inch' if inches == '1' else 'inches'}"
    return Reading("unit", said)


def _ordinal(match: re.Match[str], say: Say) -> Reading:
    figures = match["it"].replace(",", "")
    return Reading("ordinal", say.ordinal(int(figures[:-2])))


def _power(match: re.Match[str], say: Say) -> Reading:
    """1.5e-3, 1.5×10^-3, 10⁻³."""
    mantissa = match["mantissa"] or match["factor"]
    raised = (match["power"] or match["raised"] or match["high"]).translate(
        str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
    )
    sign = "minus " if raised[0] in "-−" else ""
    said = f"ten to the power of {sign}{say.number(raised.lstrip('+-−').lstrip('0') or '0')}"
    if mantissa:
        said = f"{SIGNS.get(match['sign'] or '', '')}{say.number(mantissa)} times {said}"
    after = unit_after(match)
    return Reading("math", f"{said} {after[0].many}", after[0].end) if after else Reading("math", said)


def _listed(match: re.Match[str], say: Say) -> Reading:
    return Reading("cardinal", ", ".join(say.number(part) for part in match[0].split(",")))


def _comma(match: re.Match[str], say: Say) -> Reading:
    """3,5 as in Europe: the comma is said, because it may stand for a point or part two numbers."""
    whole, _, part = match["first"].partition(",")
    said = f"{SIGNS.get(match['sign'] or '', '')}{say.number(whole)} comma {words.digits(part)}"
    after = unit_after(match)
    return Reading("decimal", f"{said} {after[0].many}", after[0].end) if after else Reading("decimal", said)


RULES: list[Rule] = [
    rule(
        r"(?<![\w/.,-])(?:(?P<whole>\d{1,2})[ -])?(?P<top>\d{1,2})/(?P<bottom>[1-9]\d{0,2})\" ?- ?"
        r"(?P<pitch>\d{1,2})(?![\w/.\"-])",
        _inch_thread,
    ),
    rule(
        rf"{SIGN}{BEFORE}(?:(?P<mantissa>{N})[eE](?P<power>[+−-]?\d{{1,4}})|(?:"
        rf"(?P<factor>{N}) ?[×x*·] ?)?10"
        rf"(?:(?:\^|\*\*)\(?(?P<raised>[+−-]?\d{{1,4}})\)?|(?P<high>{_HIGH})))(?![\w.]\w|\w)",
        _power,
    ),
    rule(
        rf"{SIGN}{BEFORE}(?:(?P<whole>\d{{1,9}}) ?)?(?P<ratio>[{_GLYPHS}])",
        _fraction,
        digits=False,
    ),
    rule(
        r"(?<!\w)(?:[Ss]tep|[Pp]age|[Ss]tage|[Aa]ttempt|[Rr]etry|[Ll]ayer|[Ss]lide|[Tt]est) (?P<it>"
        r"(?P<first>\d{1,5})/(?P<second>\d{1,5}))(?![\w/]|[.,]\d|-\d)",
        _step,
    ),
    rule(
        rf"{SIGN}(?<![\w.,/-])(?<!\d:)(?:(?P<whole>\d{{1,6}})[ -])?(?P<ratio>(?:\d{{1,3}}"
        rf"(?:,\d{{3}}){{1,3}}|\d{{1,6}})/(?:\d{{1,3}}(?:,\d{{3}}){{1,3}}|\d{{1,6}}))(?![\w/]"
        rf"|[.,]\d|-\d)",
        _fraction,
    ),
    rule(r"(?<![\w.,])(\d{1,3})° ?(\d{1,2}(?:\.\d{1,4})?)'(?: ?(\d{1,2}(?:\.\d{1,4})?)\")?(?!\w)", _angle),
    rule(r"(?<![\w.,])(?P<feet>\d{1,5})' ?(?:(?P<inches>\d{1,2}(?:\.\d{1,4})?)\")?(?![\w'])", _feet),
    rule(
        r"(?<![\w.,])(?P<it>(?:\d{1,3}(?:,\d{3}){1,5}|\d{1,18})(?:st|nd|rd|th|ST|ND|RD|TH))(?!\w)", _ordinal
    ),
    rule(rf"{SIGN}{BEFORE}(?P<first>\d{{1,3}}(?: \d{{3}}){{1,4}})(?! \d){AFTER}", _grouped),
    rule(rf"{BEFORE}\d{{1,9}}(?:,\d{{1,9}}){{2,9}}(?<!,\d\d\d){AFTER}", _listed),
    rule(rf"{SIGN}{BEFORE}(?P<first>\d{{1,15}},(?:\d{{1,2}}|\d{{4,9}})){AFTER}", _comma),
]
