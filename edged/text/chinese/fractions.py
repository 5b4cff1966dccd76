"""Two numbers in one sign: fractions, progress, ratios, scores, angles, threads in inches. Pure.

Neighbours: `quantities` knows the units; `reader.py` puts these rules before those of plain numbers.
"""

from __future__ import annotations

import re
from unicodedata import numeric

from edged.text.chinese import units
from edged.text.chinese.numbers import cardinal, fraction, number, value
from edged.text.chinese.quantities import SCORE_BEFORE, stands, unit_of
from edged.text.chinese.rule import Rule, Scene, whole
from edged.text.span import Span

_WHOLE = r"(?:\d{1,3}(?:,\d{3}){1,3}|\d{1,7})"
_FRACTION = re.compile(
    rf"(?<![\d/.A-Za-z])(?P<sign>-)?(?:(?P<w>\d{{1,3}})[ ])?(?P<n>{_WHOLE})/(?P<d>{_WHOLE})(?![\d/]|[.,]\d)"
)
_VULGAR = re.compile(r"(?<![\d.,])(\d{1,3})([¼½¾⅐-⅞])")
_RATIO = re.compile(
    r"(?<![\d.])(?<!\d:)\d{1,6}(?:\.\d{1,4})?(?:\s?:\s?\d{1,7}(?:\.\d{1,4})?){1,4}(?![\d:]|\.\d)"
)
_DASH_SCORE = re.compile(r"(?<![\d.-])(\d{1,3})-(\d{1,3})(?![\d.-])")
_WINNER_BEFORE = re.compile(r"(?:比分|战胜|击败|领先|以)\D{0,2}$")
_STEP_BEFORE = re.compile(r"(?:步骤|页码|重试|尝试|工步)[为是：:\s]{0,2}$")
_MANY = 100  # more than what a fraction has
_AROUND_THE_CLOCK = re.compile(r"(?<![\d/.])24/7(?![\d/.])")
_ANGLE = re.compile(r"(?<![\d.])(\d{1,3})°\s?(\d{1,2}(?:\.\d{1,4})?)['′](?:\s?(\d{1,2}(?:\.\d{1,4})?)[\"″])?")
_INCH_THREAD = re.compile(r"(?<![\d/.])(\d{1,2})/([1-9]\d?)\"\s?-\s?(\d{1,2})(?![\d./\"A-Za-z])")


def _fraction(match: re.Match[str], scene: Scene) -> Span | None:
    above, below = (match[name].replace(",", "") for name in "nd")
    if not int(below):
        return None
    start = match.start("n") if match["w"] is None else match.start("w")
    if scene.after(match.end()).lstrip()[:1] == "=" and not match["w"] and not match["sign"]:
        return whole(match, f"{cardinal(above)}除以{cardinal(below)}", "math")
    said = fraction(above, below)
    if not match["w"] and not match["sign"] and _is_progress(match, scene, int(above), int(below)):
        return whole(match, f"{cardinal(above)}，共{cardinal(below)}", "fraction")
    if match["w"]:
        said = f"{cardinal(match['w'])}又{said}"
    if match["sign"] and stands("-", scene.before(match.start(), 6), spaced=False):
        return whole(match, f"负{said}", "fraction")
    unit = unit_of(scene, match.string, match.end())
    return Span(start, unit.end if unit else match.end(), said + (unit.name if unit else ""), "fraction")


def _is_progress(match: re.Match[str], scene: Scene, above: int, below: int) -> bool:
    """1204/1250: so many of so many."""
    if _STEP_BEFORE.search(scene.before(match.start())):
        return above <= below
    many = _MANY <= above <= below
    return many or ("," in match["d"] and above <= below)


def _around_the_clock(match: re.Match[str], _: Scene) -> Span:
    return whole(match, "七乘二十四小时", "identifier")


def _inch_thread(match: re.Match[str], _: Scene) -> Span:
    """1/4"-20: a diameter, and threads to the inch."""
    return whole(match, f"{fraction(match[1], match[2])}英寸杠{cardinal(match[3])}", "identifier")


def _angle(match: re.Match[str], _: Scene) -> Span:
    """31°18'20"."""
    said = f"{cardinal(match[1])}度{number(match[2])}分" + (f"{number(match[3])}秒" if match[3] else "")
    return whole(match, said, "unit")


def _vulgar(match: re.Match[str], _: Scene) -> Span:
    return whole(match, f"{cardinal(match[1])}又{value(numeric(match[2]))}", "fraction")


def _ratio(match: re.Match[str], scene: Scene) -> Span:
    parts = [number(part.strip()) for part in match.group().split(":")]
    kind = "score" if SCORE_BEFORE.search(scene.before(match.start())) else "ratio"
    return whole(match, "比".join(parts), kind)


def _dash_score(match: re.Match[str], scene: Scene) -> Span | None:
    won = _WINNER_BEFORE.search(scene.before(match.start()))
    if not won or units.read(scene.view, match.end(), spaced=False):
        return None
    return whole(match, f"{cardinal(match[1])}比{cardinal(match[2])}", "score")


RULES = (
    Rule(_VULGAR, _vulgar, "¼½¾⅐⅑⅒⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"),
    Rule(_AROUND_THE_CLOCK, _around_the_clock, "/"),
    Rule(_ANGLE, _angle, "°"),
    Rule(_INCH_THREAD, _inch_thread, '"'),
    Rule(_FRACTION, _fraction, "/"),
    Rule(_RATIO, _ratio, ":"),
    Rule(_DASH_SCORE, _dash_score, "-"),
)
