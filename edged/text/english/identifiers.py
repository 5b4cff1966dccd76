"""Telephone, serial and part numbers, codes: read so that a listener can write them down."""

from __future__ import annotations

import re

from edged.text.english import words
from edged.text.english.letters import is_spelled, letters
from edged.text.english.quantities import N
from edged.text.english.rule import Reading, Rule, Say, rule

_FROM_TO = re.compile(r"([A-Z]{1,2})(\d{1,4})-\1(\d{1,4})")  # V1-V4
_RUN = re.compile(r"[A-Za-z]+|\d+|[-/._]")
_MARKS = {"-": "dash", "/": "slash", ".": "dot", "_": "underscore"}
_SEVERAL = re.compile(r"(,? (?:and|or) |, ?| ?/ ?)(?=\d{3})")
_FEWEST = 7  # digits of a telephone number with its country
_THOUSANDS = re.compile(r"\+\d{1,3}(?: \d{3}){1,2}")


def exact(code: str) -> str:
    """Every character: A1B2-00417 -> A one B two dash zero zero four one seven."""
    return " ".join(_MARKS.get(run) or words.spell(run) for run in _RUN.findall(code))


def figures(text: str, say: Say) -> str:
    """Figures of a short code: up to two, and round hundreds, as a number; else digit by digit."""
    plain = len(text) <= 2 or (len(text) <= 4 and text.endswith("00"))
    if text == "0" or (plain and text[0] != "0"):
        return say.cardinal(int(text))
    return words.digits(text)


def short(code: str, say: Say) -> str:
    """IP67 -> I P sixty-seven; RS-485 -> R S four eight five; H2O -> H two O."""
    said = []
    runs = _RUN.findall(code)
    for at, run in enumerate(runs):
        if run[0].isdigit():
            said.append(figures(run, say))
        elif run not in _MARKS:
            said.append(letters(run))
        elif run != "-" or (runs[at - 1].isdigit() and "".join(runs[at + 1 : at + 2]).isdigit()):
            said.append(_MARKS[run])  # a hyphen is heard only where it parts figures
    return " ".join(said)


def _is_serial(code: str) -> bool:
    """Long, of capitals and digits, or with figures that start with zeros: nothing in it is a word."""
    runs = re.findall(r"[A-Za-z]+|\d+", code)
    if any(len(run) > 1 and not run.isupper() and not run.isdigit() for run in runs):
        return False
    if len(runs) == 2 and len(runs[0]) > 3 and not is_spelled(runs[0]) and runs[0].isalpha():
        return False  # COVID-19
    if any(run[0] == "0" and len(run) > 1 for run in runs):
        return True
    return sum(map(len, runs)) >= 7 or len(runs) > 4


def _code(match: re.Match[str], say: Say) -> Reading | None:
    code = match[0]
    if ends := _FROM_TO.fullmatch(code):
        letter = letters(ends[1])
        first, second = figures(ends[2], say), figures(ends[3], say)
        return Reading("range", f"{letter} {first} to {letter} {second}")
    if not any(c.isdigit() for c in code) or not any(c.isalpha() for c in code):
        return None
    return Reading("identifier", exact(code) if _is_serial(code) else short(code, say))


def _pointed(match: re.Match[str], say: Say) -> Reading:
    """Letters before a number with a point: PM2.5, Y-3.2; of an axis the hyphen is a sign."""
    minus = "minus " if match["joint"] == "-" and match[1] in "XYZxyz" else ""
    return Reading("identifier", f"{letters(match[1])} {minus}{say.number(match['figures'])}")


def _lettered(match: re.Match[str], say: Say) -> Reading:
    """A number with a point before letters that are no unit: 2.1a, 23.4C."""
    return Reading(
        "identifier", f"{' point '.join(map(say.number, match[1].split('.')))} {words.spell(match[2])}"
    )


def _named(match: re.Match[str], say: Say) -> Reading | None:
    """What follows serial number, part number and the like: every character."""
    code = match["it"]
    count = sum(c.isdigit() for c in code)
    if count == 0 or (code.isdigit() and count < 3):
        return None
    return Reading("identifier", exact(code))


def _perhaps_named(match: re.Match[str], say: Say) -> Reading | None:
    """Error 404, order 4821, job #8841; but order 500 pieces."""
    said = words.digits(match["it"])
    if match["it"][0] == "#":
        return Reading("identifier", f"number {said}")
    return None if match["it"].endswith("00") else Reading("identifier", said)


def _groups(match: re.Match[str], say: Say) -> Reading | None:
    """123-45-6789: groups of figures that are no sum and no range."""
    return Reading("identifier", exact(match[0]))


def _telephone(match: re.Match[str], say: Say) -> Reading:
    return Reading("telephone", _dialled(match[0]))


def _abroad(match: re.Match[str], say: Say) -> Reading | None:
    """+49 30 123456; but +1250, +12.5 and +1 250 000 are numbers, +1250-1300 is a range."""
    text = match[0]
    parts = re.split(r"[ ()-]+", text.strip(" -"))
    count = sum(map(str.isdigit, text))
    if count < _FEWEST or _THOUSANDS.fullmatch(text) or (len(parts) == 1 and "." in text):
        return None
    if len(parts) > 1 and (sum(map(str.isdigit, parts[0])) > 3 or (len(parts) == 2 and count < _FEWEST + 2)):
        return None
    return Reading("telephone", _dialled(text))


def _dialled(text: str) -> str:
    """Groups with pauses: five five five, zero one nine nine; ext. becomes extension."""
    said = []
    for group in re.findall(r"\+?\d+|ext|x", text):
        if group[0] in "ex":
            said.append("extension")
        else:
            said.append(("plus " if group[0] == "+" else "") + words.digits(group))
    return ", ".join(said).replace("extension, ", "extension ")


def _called(match: re.Match[str], say: Say) -> Reading:
    """One number, or several with what stands between them."""
    parts = _SEVERAL.split(match["it"])
    parts[::2] = map(_dialled, parts[::2])
    parts[1::2] = (" slash " if "/" in joint else f"{joint.rstrip()} " for joint in parts[1::2])
    return Reading("telephone", "".join(parts))


def _thread(match: re.Match[str], say: Say) -> Reading:
    """M12x1.75, and with a length M8x1.25x40."""
    parts = re.split("[x×X]", match["sizes"])
    return Reading("identifier", "M " + " by ".join(say.number(part) for part in parts))


def _plate(match: re.Match[str], say: Say) -> Reading:
    return Reading("identifier", exact(match["it"]))


def _number_sign(match: re.Match[str], say: Say) -> Reading:
    figures = match["number"]
    if "-" in figures:
        return Reading("identifier", f"number {exact(figures)}")
    plain = words.digits(figures) if len(figures) >= 7 else say.number(figures)
    return Reading("identifier", f"number {plain}")


_STRONG = (
    r"S/?N|P/?N|IMEI|VIN|SKU|GTIN|UDI|ISBN|EAN|UPC|MAC|PIN|UUID|[Ss]erial|SERIAL|[Ss]erial (?:[Nn]o|[Nn]umber"
    r"|[Nn]r)|[Pp]art (?:[Nn]o|[Nn]umber)"
    r"|ID|[Aa]ccount|[Tt]racking|[Pp]asscode|[Pp]assword|[Bb]arcode|[Pp]ostcode|[Zz]ip|ZIP|[Ss]erials?"
)
_WEAK = (
    r"[Oo]rder|[Bb]atch|[Ll]ot|[Cc]ode|[Ee]rror|[Ff]ault|[Aa]larm|[Rr]oom|[Ff]light|[Tt]icket|[Cc]ase"
    r"|[Jj]ob|[Tt]ag|[Bb]adge|[Ii]nvoice"
    r"|[Ee]xtension|[Ee]xt|[Rr]eference|[Rr]ef|PO|RMA|UN|[Mm]odel|[Aa]sset|[Ll]ocker|[Tt]rain|[Bb]us"
    r"|[Hh]ighway|[Cc]hannel"
)
_JOINT = r"\.?(?: (?:no\.?|number|nr\.?|code|is))?(?: ?[:=])? ?"
_DIAL = (
    r"[Cc]all|[Dd]ial|[Ee]mergency (?:numbers?|lines?|services?|calls?)|[Tt]el(?:ephone)?|[Pp]hone"
    r"|[Ff]ax|[Mm]obile|[Cc]ell|[Ee]xt(?:ensions?)?|[Pp]ager"
    r"|[Hh]otline"
)

FIRST: list[Rule] = [
    rule(
        rf"(?<![\w-])(?:{_STRONG}){_JOINT}#?(?P<it>[A-Za-z0-9](?:[A-Za-z0-9]|[-/._]"
        rf"(?=[A-Za-z0-9])){{1,47}})(?![\w])",
        _named,
    ),
    rule(
        r"(?<!\w)(?:[Pp]late|[Rr]egistration)(?: (?:[Nn]umber|[Nn]o\.?))?:? (?P<it>[A-Z]{1,3}[- ]"
        r"(?:[A-Z]{1,2} ?)?\d{1,4}[A-Z]{0,3})(?!\w)",
        _plate,
    ),
    rule(
        r"(?<!\w)(?:[Pp]art|[Ii]tem|[Aa]rticle|[Dd]rawing|[Mm]odel|[Tt]ype)s?:? (?P<it>\d{1,6}"
        r"(?:\.\d{1,6}){1,3}-\d{1,6}(?:\.\d{1,6}){0,3})(?![\w/°%-]|[.,]\d| ?[%°]| (?:[kcdmMµ]?[mgVAWΩ]"
        r"|[kM]Pa|bar)(?!\w))",
        _plate,
    ),
    rule(
        r"(?<![\w.,+-])(?:\+?1[ .-]?)?\(\d{3}\)[ .-]?\d{3}[ .-]\d{4}(?:,? ?(?:ext\.?|x) ?\d{1,6})?(?![\w-])"
        r"|(?<![\w.,+-])(?:\+?1[ .-])?\d{3}([ .-])\d{3}\1\d{4}(?:,? ?(?:ext\.?|x) ?\d{1,6})?(?![\w-]|\.\d)"
        r"|(?<![\w.,+-])\d{3}-\d{4}(?:,? ?(?:ext\.?|x) ?\d{1,6})?(?![\w-]|\.\d)",
        _telephone,
    ),
    rule(
        r"(?<![\w+])\+[1-9]\d{0,2}(?:[ .-]?(?:\(0\)|\(\d{1,4}\)|\d{1,5})){2,6}(?![\w-]|\.\d)"
        r"|(?<![\w+])\+[1-9]\d{7,14}(?!\w)",
        _abroad,
    ),
    rule(
        rf"(?<!\w)(?:{_DIAL})(?: (?:us|me|him|her|at|on|numbers?|no\.|is|are))?\.?:? ?(?P<it>\d{{2,5}}"
        rf"(?:[ -]\d{{2,5}}){{1,4}}|\d{{3,15}}(?:(?:, ?| ?/ ?|,? (?:and|or) )\d{{3,15}}(?![\w-]"
        rf"|[.:]\d)){{0,8}})(?![\w-]|[.,:]\d)",
        _called,
    ),
    rule(
        rf"(?<![\w-])(?:[Oo]rder|[Bb]atch|[Ll]ot|[Tt]icket|[Cc]ase|[Jj]ob|[Ii]nvoice|PO|RMA"
        rf"|[Aa]sset){_JOINT}(?P<it>\d{{3,12}}-\d{{1,12}})(?![\w/°%]|[-.,:]\d| ?[%°])",
        _plate,
    ),
    rule(
        rf"(?<![\w-])(?:{_WEAK}){_JOINT}(?P<it>#?\d{{3,18}})(?![\w/°%]|[-.,:]\d| ?[°%])",
        _perhaps_named,
    ),
]
THREADS: list[Rule] = [
    rule(rf"(?<!\w)M(?P<sizes>\d{{1,3}}(?:\.\d)?(?:[x×X]{N}){{1,2}})(?!\w|\.\d)", _thread),
]
CODES: list[Rule] = [
    rule(r"(?<![\w.])([A-Za-z]{1,24})(?P<joint>[-_]?)(?P<figures>\d{1,9}\.\d{1,9})(?!\w|[.-]\d)", _pointed),
    rule(r"(?<![\w.,])((?:\d{1,9}\.){1,4}\d{1,9})([A-Za-z]{1,2})(?![\w']|[.-]\w)", _lettered),
    rule(
        r"(?:(?<![^\WA-Z])(?<![&])(?:#|№ ?)|(?<!\w)[Nn]o\. ?)(?P<number>\d{1,18}(?:-\d{1,12}){0,3})"
        r"(?!\w|[.,]\d)",
        _number_sign,
    ),
    rule(
        r"(?<![^\W_])(?<![\d][.,])[A-Za-z0-9]{1,24}(?:[-_/](?=[A-Za-z0-9-]{0,12}\d)[A-Za-z0-9]{1,24}){0,5}"
        r"(?:-[A-Z]{1,3})?(?![^\W_])",
        _code,
    ),
    rule(
        r"(?<![\w.,-])\d{1,12}(?:-\d{1,12}){2,6}(?![\w-])|(?<![\w.,-])0\d{1,11}-\d{1,12}(?![\w-])|"
        r"(?<![\w.,-])\d{1,12}-0\d{1,11}(?![\w-]|[.,]\d)",
        _groups,
    ),
]
