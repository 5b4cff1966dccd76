"""Numbers that count or measure: signs, ranges, units, percentages, powers. Pure.

One pattern finds a number with what may belong to it; what follows it decides what it is. The rules of dates,
codes and money come before. Neighbours: `numbers.py`, `units.py`, `measures.py`.
"""

from __future__ import annotations

import re

from edged.text.chinese import measures, units
from edged.text.chinese.numbers import call_digits, cardinal, digits, number
from edged.text.chinese.rule import MASK, Rule, Scene, whole
from edged.text.span import Span

NUMBER = r"(?:\d{1,3}(?:,\d{3}){1,6}(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)"
_QUANTITY = re.compile(
    rf"(?<![\d.])(?P<sign>\+/-|[-+±~≈])?\s?(?P<a>{NUMBER})"
    rf"(?:\s?(?P<sep>[-~]|至|到)\s?(?P<bsign>(?<!-)[-+])?(?P<b>{NUMBER}))?(?P<scale>\s?[%‰])?"
)
_GROUPED = re.compile(  # 12 000; one group only where noughts or a colon tell
    r"(?<![\d.A-Za-z])(?<![\dA-Za-z] )(?P<sign>[-+±~≈])?(?P<a>\d{1,3}(?:(?: \d{3}){2,4}| \d00|"
    r"(?<=:\d) \d{3}|(?<=: \d) \d{3}"
    r"|(?<=:\d\d) \d{3}|(?<=: \d\d) \d{3}))(?P<sep>(?!))?(?P<bsign>(?!))?(?P<b>(?!))?(?P<scale>(?!))?"
    r"(?![\d.]| \d)"
)
_ANY_DIGITS = re.compile(r"\d+")
_POWER = re.compile(
    rf"(?<![\d.A-Za-z])({NUMBER})(?:\^\(?([-+]?\d{{1,4}})\)?|([⁻⁺]?[⁰¹²³⁴-⁹]{{1,4}}))(?![\d.])"
)
_SCIENTIFIC = re.compile(rf"(?<![\d.A-Za-z])(-)?({NUMBER})[eE]([-+]?\d{{1,3}})(?![\dA-Za-z]|\.\d)")
_TIMES = re.compile(rf"(?<![\d.A-Za-z])({NUMBER})((?:\s?[x×*X]\s?{NUMBER}){{1,4}})(?![\d.])")
_CURRENT = re.compile(
    rf"(?<![A-Za-z])(AC|DC)\s?(?P<a>{NUMBER})(?:\s?([-~])\s?(?P<b>{NUMBER}))?\s?(?P<u>[kmM]?[VA])"
    rf"(?![A-Za-z0-9])"
)
_CURRENT_AFTER = re.compile(r"\s?(AC|DC)(?![A-Za-z0-9])")
_DIAMETER = re.compile(rf"(?<![A-Za-z])[ΦØø]\s?({NUMBER})(?![\d.])")
_RATE = re.compile(r"/(10{1,3})\s?(?=[A-Za-zμ])")
_CURRENTS = {"AC": "交流", "DC": "直流"}
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
_SIGNS = {"-": "负", "+": "正", "±": "正负", "+/-": "正负", "~": "约", "≈": "约"}
_SCALES = {"%": "百分之", "‰": "千分之"}
_OPENING = "(（[【，,。;；:：=<>≤≥≠!！?？、/\"'|"
_COUNTED_BEFORE = re.compile(rf"[\d{MASK}]\s?[\u4e00-\u9fff]{{1,3}}$")
_MONEY_AFTER = re.compile(r"\s?[百千万亿]{0,2}(?:元|块|角|美元|美金|欧元|英镑|日元|港元|港币|人民币)")
SCORE_BEFORE = re.compile(r"(?:比分|胜|负|平|领先|击败|战胜|总分|得分|结果|赢|输)\D{0,4}$")
_QUOTED = 200  # characters before a mark of inches that are searched for a quotation
_LONG = 8  # digits: longer numbers that count nothing are numbers of things


def _said(written: str, scene: Scene, measured: bool = False) -> str:
    if scene.options.digits == "digits" and written.isdigit():
        return digits(written)
    return number(written, measured=measured)


def _quantity(match: re.Match[str], scene: Scene) -> Span:
    masked = match.string
    start, end = match.span()
    sign, a, separator, b = match["sign"], match["a"], match["sep"], match["b"]
    before = masked[max(0, start - 6) : start]
    if sign and not stands(sign, before, spaced=match.start("a") - start > len(sign)):
        start, sign = match.start("a"), None
    elif not sign:
        start = match.start("a")
    if match["scale"]:
        return Span(start, end, _scaled(match, sign, scene), "percent")
    unit = unit_of(scene, masked, end)
    counted = unit is not None or measures.follows(masked, match.start("a"), end)
    long_name = len(a) >= _LONG and a.isdigit() and not counted and not separator
    said = call_digits(a) if long_name else _said(a, scene, counted and not sign)
    kind = "identifier" if long_name else "decimal" if "." in a else "cardinal"
    if sign:
        said, kind = _SIGNS[sign] + said, "negative" if sign == "-" else "math"
    if b:
        other = _said(b, scene, counted and not match["bsign"])
        said += _between(match, scene) + (_SIGNS[match["bsign"]] if match["bsign"] else "") + other
        kind = "range"
    if unit is not None:
        return _with_rate(start, said, unit, masked)
    if _MONEY_AFTER.match(masked, end):
        kind = "money"
    return Span(start, end, said, kind)


def _with_rate(start: int, said: str, unit: units.Unit, masked: str) -> Span:
    """20L/100km: per so many of the other unit."""
    rate = _RATE.match(masked, unit.end)
    other = units.read(masked, rate.end(), spaced=False) if rate else None
    if rate is None or other is None:
        return Span(start, unit.end, said + unit.name, "unit")
    return Span(start, other.end, f"{said}{unit.name}每{cardinal(rate[1])}{other.name}", "unit")


def stands(sign: str, before: str, spaced: bool) -> bool:
    """Whether a sign belongs to the number after it alone, not to what stands before it as well.

    spaced: a blank stands between the sign and the number, as it does where the sign joins two.
    """
    left = before.rstrip()
    last = left[-1:]
    if sign in ("±", "+/-") or not last or last in _OPENING:
        return True
    if "\u4e00" <= last <= "\u9fff":
        return _COUNTED_BEFORE.search(left) is None
    return len(left) < len(before) and not spaced and sign != "~"


def _between(match: re.Match[str], scene: Scene) -> str:
    separator = match["sep"]
    if separator in "至到":
        return str(separator)
    if separator == "-":
        after = scene.after(match.end())
        if after.lstrip()[:1] == "=":
            return "减"
        if SCORE_BEFORE.search(scene.before(match.start())):
            return "比"
    return "到"


def unit_of(scene: Scene, masked: str, end: int) -> units.Unit | None:
    """The unit of a number that ends at `end`, with its kind of current."""
    if masked.startswith('"', end) and scene.view.count('"', max(0, end - _QUOTED), end) % 2 == 0:
        return units.Unit(end + 1, "英寸")  # else it closes a quotation
    spaced = masked.startswith(" ", end)
    unit = units.read(masked, end + spaced, spaced)
    if unit is None:
        return None
    current = _CURRENT_AFTER.match(masked, unit.end)
    return units.Unit(current.end(), unit.name + _CURRENTS[current[1]]) if current else unit


def _scaled(match: re.Match[str], sign: str | None, scene: Scene) -> str:
    """5%: 百分之五; 100% is 百分之百."""
    scale = _SCALES[match["scale"].strip()]
    a, b = match["a"], match["b"]
    said = _SIGNS[sign] if sign else ""
    said += scale + ("百" if a == "100" and scale == "百分之" else number(a))
    if b:
        between = match["sep"] if match["sep"] in "至到" else "到"
        said += between + (_SIGNS[match["bsign"]] if match["bsign"] else "")
        said += scale + ("百" if b == "100" and scale == "百分之" else number(b))
    return said


def _exponent(written: str) -> str:
    return f"{'负' if written[0] == '-' else ''}{cardinal(written.lstrip('+-'))}次方"


def _power(match: re.Match[str], _: Scene) -> Span | None:
    exponent = match[2] or match[3].translate(_SUPERSCRIPTS)
    if not exponent.lstrip("+-"):
        return None
    return whole(match, f"{number(match[1])}的{_exponent(exponent)}", "math")


def _scientific(match: re.Match[str], _: Scene) -> Span:
    sign = "负" if match[1] else ""
    return whole(match, f"{sign}{number(match[2])}乘十的{_exponent(match[3])}", "math")


def _times(match: re.Match[str], scene: Scene) -> Span:
    factors = [match[1], *re.findall(NUMBER, match[2])]
    said = "乘".join(number(factor) for factor in factors)
    unit = unit_of(scene, match.string, match.end())
    end, name = (match.end(), "") if unit is None else (unit.end, unit.name)
    return Span(match.start(), end, said + name, "math" if unit is None else "unit")


def _current(match: re.Match[str], scene: Scene) -> Span:
    said = _CURRENTS[match[1]] + number(match["a"], measured=True)
    if match["b"]:
        said += f"到{number(match['b'], measured=True)}"
    unit = units.read(match.string, match.start("u"), False)
    return whole(match, said + (unit.name if unit else ""), "unit")


def _diameter(match: re.Match[str], scene: Scene) -> Span:
    unit = unit_of(scene, match.string, match.end())
    end, name = (match.end(), "") if unit is None else (unit.end, unit.name)
    named = scene.before(match.start(), 2) == "直径"
    return Span(match.start(), end, f"{'' if named else '直径'}{number(match[1])}{name}", "unit")


def _rest(match: re.Match[str], _: Scene) -> Span:
    return whole(match, cardinal(match.group()), "cardinal")


# Before codes, which would take their letters, and after them.
EARLY = (Rule(_CURRENT, _current, "C"), Rule(_SCIENTIFIC, _scientific, "eE"))
RULES = (
    Rule(_GROUPED, _quantity, " "),
    Rule(_POWER, _power, "^⁰¹²³⁴⁵⁶⁷⁸⁹"),
    Rule(_TIMES, _times, "x×*X"),
    Rule(_DIAMETER, _diameter, "ΦØø"),
    Rule(_QUANTITY, _quantity),
    Rule(_ANY_DIGITS, _rest),
)
