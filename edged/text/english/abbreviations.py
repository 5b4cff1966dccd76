"""Abbreviations and Roman numerals: how they are said in English."""

from __future__ import annotations

import re

from edged.text.english.rule import Reading, Rule, Say, rule
from edged.text.points import kept

# always with their point; the point stays where it ends a sentence
_POINTED = {
    "Mr.": "Mister", "Mrs.": "Missus", "Ms.": "Miz", "Prof.": "Professor", "Sgt.": "Sergeant",
    "Lt.": "Lieutenant", "Capt.": "Captain", "Col.": "Colonel", "Gen.": "General", "Gov.": "Governor",
    "Sen.": "Senator", "Rep.": "Representative", "Hon.": "Honorable", "Jr.": "Junior", "Sr.": "Senior",
    "Inc.": "Incorporated", "Ltd.": "Limited", "Corp.": "Corporation", "Co.": "Company",
    "Bros.": "Brothers", "Dept.": "Department", "dept.": "department", "Assn.": "Association",
    "Ave.": "Avenue", "Blvd.": "Boulevard", "Rd.": "Road", "Hwy.": "Highway", "Apt.": "Apartment",
    "Bldg.": "Building", "etc.": "et cetera", "e.g.": "for example", "E.g.": "For example",
    "i.e.": "that is", "I.e.": "That is", "vs.": "versus", "approx.": "approximately",
    "Approx.": "Approximately", "max.": "maximum", "Max.": "Maximum", "min.": "minimum",
    "Min.": "Minimum", "temp.": "temperature", "Temp.": "Temperature", "est.": "estimated",
    "Est.": "Established", "cont.": "continued", "incl.": "including", "excl.": "excluding",
    "resp.": "respectively", "misc.": "miscellaneous", "dia.": "diameter", "qty.": "quantity",
    "Qty.": "Quantity", "avg.": "average", "Avg.": "Average", "ext.": "extension", "Ext.": "Extension",
    "tel.": "telephone", "Tel.": "Telephone", "ref.": "reference", "Ref.": "Reference",
    "Attn.": "Attention", "a.m.": "A M", "p.m.": "P M", "A.M.": "A M", "P.M.": "P M", "Nos.": "Numbers",
    "nos.": "numbers", "op.": "operation", "cf.": "compare", "et al.": "and others", "Mt.": "Mount",
    "Ft.": "Fort", "No.:": "Number:", "mfg.": "manufacturing", "Mfg.": "Manufacturing",
    "Mfr.": "Manufacturer", "hrs.": "hours", "hr.": "hour", "mins.": "minutes", "sec.": "seconds",
    "lbs.": "pounds", "ft.": "feet", "yds.": "yards",
}  # fmt: skip
# with or without a point, before a number or a single letter
_BEFORE_NUMBER = {
    "Rev": "Revision", "rev": "revision", "Fig": "Figure", "fig": "figure", "Figs": "Figures",
    "Sec": "Section", "Sect": "Section", "Ch": "Chapter", "ch": "chapter", "Vol": "Volume", "vol": "volume",
    "Eq": "Equation", "No": "Number", "no": "number", "Nr": "Number",
    "Art": "Article", "pp": "pages", "p": "page", "App": "Appendix",
    "Tab": "Table", "Ver": "Version", "ver": "version", "Mk": "Mark", "Pos": "Position",
    "pos": "position", "Stn": "Station", "Bldg": "Building", "Rm": "Room", "Ste": "Suite",
    "Flt": "Flight", "Nos": "Numbers", "nos": "numbers", "Pt": "Part", "ca": "about",
    "approx": "approximately", "Qty": "Quantity", "qty": "quantity",
}  # fmt: skip
_VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}
_NUMERAL = r"(?=[IVXLCDM])M{0,3}(?:CM|CD|D?C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})"
_PARTS = (
    "Chapter|Part|Section|Phase|Class|Type|Stage|Level|Zone|Volume|Act|Scene|Figure|Table|Article|Title|Category|Mark|Mk|Group|"
    "War|Grade|Division|Book|Appendix|Annex|Unit|Generation|Tier|Schedule|Factor|Apollo|Bowl|Line|Plant|Hall|Building|Series|Version"
)
_RULERS = (
    "Henry|Louis|Charles|George|Edward|James|William|Elizabeth|Richard|Philip|Frederick|Napoleon|Pius"
    "|John Paul|Benedict|Leo|"
    "Gregory|Paul|Nicholas|Alexander|Catherine|Peter|Ferdinand|Francis|Otto|Felipe|Carl|Gustav|Harald|Christian|Innocent|Clement|Ramses"
)


def _pointed(match: re.Match[str], say: Say) -> Reading:
    return Reading("abbreviation", _POINTED[match[0]] + kept(match.string, match.end()))


def _before_number(match: re.Match[str], say: Say) -> Reading | None:
    """The letter of Rev. C belongs to it: no article, no Roman numeral."""
    short = match[0].partition(" ")[0].rstrip(".")
    letter = match.groupdict().get("letter")
    if short.lower() == "no" and letter in ("I", "A"):
        return None  # an answer, and a new sentence
    return Reading("abbreviation", f"{_BEFORE_NUMBER[short]} {letter}" if letter else _BEFORE_NUMBER[short])


def _doctor(match: re.Match[str], say: Say) -> Reading:
    return Reading("abbreviation", "Doctor")


def _saint(match: re.Match[str], say: Say) -> Reading:
    if kept(match.string, match.end()):  # Main St. The next one
        return Reading("abbreviation", "Street.")
    return Reading("abbreviation", "Saint")


def _road(match: re.Match[str], say: Say) -> Reading:
    return Reading(
        "abbreviation",
        ("Street" if match["it"].startswith("St") else "Drive") + kept(match.string, match.end()),
    )


def _versus(match: re.Match[str], say: Say) -> Reading:
    return Reading("abbreviation", "versus")


def roman(numeral: str) -> int:
    """The value of a well-formed numeral of capitals."""
    total = 0
    for character, following in zip(numeral, [*numeral[1:], ""], strict=True):
        value = _VALUES[character]
        total += -value if following and _VALUES[following] > value else value
    return total


def _part(match: re.Match[str], say: Say) -> Reading | None:
    numeral = match["it"]
    if not numeral or numeral in "LCDM":
        return None
    return Reading("roman", say.cardinal(roman(numeral)))


def _ruler(match: re.Match[str], say: Say) -> Reading | None:
    return Reading("roman", f"the {say.ordinal(roman(match['it']))}") if match["it"] else None


def _alone(match: re.Match[str], say: Say) -> Reading | None:
    return Reading("roman", say.cardinal(roman(match["it"])))


def _either(entries: dict[str, str]) -> str:
    return "|".join(map(re.escape, sorted(entries, key=len, reverse=True)))


_NEXT_NUMBER = r"(?= ?[\d\ufdd0#])"
RULES: list[Rule] = [
    rule(
        rf"(?<!\w)(?:{_either(_BEFORE_NUMBER)})\.(?: (?P<letter>[A-Z])(?![\w'.-])|{_NEXT_NUMBER})",
        _before_number,
        digits=False,
    ),
    rule(
        r"(?<!\w)(?:Rev|rev|Fig|Vol|Ver|ver|Sec|Ch|Mk|Pos|Rm|Qty|qty|approx|ca)(?= [\d\ufdd0])",
        _before_number,
    ),
    rule(r"(?<!\w)(?:Rev) (?P<letter>[A-Z])(?![\w'.-])", _before_number, digits=False),
    rule(r"(?<!\w)(?P<it>Dr\.?)(?= [A-Z])", _doctor, digits=False),
    rule(r"(?<!\w)(?P<it>St\.)(?= [A-Z])", _saint, digits=False),
    rule(r"(?<=[a-z\ufdd0] )(?P<it>(?:St|Dr)\.)(?! [A-Z])", _road, digits=False),
    rule(rf"(?<![\w.])(?:{_either(_POINTED)})(?!\w)", _pointed, digits=False),
    rule(r"(?<!\w)vs(?![\w.])", _versus, digits=False),
]
ROMANS: list[Rule] = [
    rule(rf"(?<!\w)(?:{_PARTS})s? (?P<it>{_NUMERAL})(?![\w'’]|[.-]\w)(?! [A-Z](?!\w))", _part, digits=False),
    rule(rf"(?<!\w)(?:{_RULERS}) (?P<it>{_NUMERAL})(?![\w'’]|[.-]\w)", _ruler, digits=False),
    rule(r"(?<=\w )(?P<it>(?=[IVX]{2})X{0,3}(?:IX|IV|V?I{0,3}))(?![\w'’-]|\.\w)", _alone, digits=False),
]
