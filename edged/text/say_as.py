"""What a client says a stretch is (say-as) put into words, or into the form that the readers know it by.

Pure; any thread. What does not fit its kind is left for the readers, which read it as what it looks like:
a listener then still hears all of it. Neighbours: `reading` calls it; numbers are of the languages' packages.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from edged.text.chinese import numbers
from edged.text.chinese import units as chinese_units
from edged.text.document import Language
from edged.text.english import words
from edged.text.english.unit_table import UNITS
from edged.text.fold import fold

_WHOLE = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+|[+-]?\d+")
_NUMBER = re.compile(r"[+-]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+)?")
_ORDINAL = re.compile(r"第?(\d+)(?:st|nd|rd|th|\.)?", re.IGNORECASE)
_FIGURES = re.compile(r"\d+")
_BY_FIGURES = re.compile(r"\d{8}|\d{6}")  # 20261130 and 261130, which have no marks between the parts
_MONTHS = ("January February March April May June July August September October November December").split()
# Signs in what is spelled, by language.
_SIGNS: dict[Language, dict[str, str]] = {
    "en": {
        "-": "dash", ".": "dot", "/": "slash", "\\": "backslash", "_": "underscore", "@": "at", "#": "hash",
        "+": "plus", "*": "star", ":": "colon", "&": "and", "=": "equals", "%": "percent", "$": "dollar",
    },
    "zh": {
        "-": "杠", ".": "点", "/": "斜杠", "\\": "反斜杠", "_": "下划线", "@": "艾特", "#": "井号",
        "+": "加", "*": "星号", ":": "冒号", "&": "和", "=": "等于", "%": "百分号", "$": "美元",
    },
}  # fmt: skip


def put(text: str, kind: str, detail: str, language: Language) -> str:
    """The text as its kind says. kind: one of `edged.text.document.SAY_AS`."""
    made = _KINDS[kind](fold(text).strip(), detail, language)
    return text if made is None else made


def _cardinal(text: str, detail: str, language: Language) -> str | None:
    if not text or not _NUMBER.fullmatch(text) or text in "+-":
        return None
    sign, rest = (text[0], text[1:]) if text[0] in "+-" else ("", text)
    whole, point, part = rest.replace(",", "").partition(".")
    rest = (whole.lstrip("0") or "0") + point + part  # asked for as a quantity: 007 is seven
    if language == "zh":
        return {"-": "负", "+": "正", "": ""}[sign] + numbers.number(rest)
    return {"-": "minus ", "+": "plus ", "": ""}[sign] + words.number(rest)


def _ordinal(text: str, detail: str, language: Language) -> str | None:
    match = _ORDINAL.fullmatch(text.replace(",", ""))
    if match is None:
        return None
    figures = match[1].lstrip("0") or "0"
    if language == "zh":
        return f"第{numbers.cardinal(figures)}"
    return words.ordinal_of(words.number(figures))


def _digits(text: str, detail: str, language: Language) -> str | None:
    if not any(map(str.isdigit, text)):
        return None
    return _one_by_one(text, language, numbers.digits)


def _characters(text: str, detail: str, language: Language) -> str | None:
    return _one_by_one(text, language, numbers.digits) or None


def _telephone(text: str, detail: str, language: Language) -> str | None:
    if not any(map(str.isdigit, text)):
        return None
    groups = re.split(r"[\s().\-/]+", text)
    said = (_one_by_one(group, language, numbers.call_digits) for group in groups if group)
    return ("，" if language == "zh" else ", ").join(said)


def _one_by_one(text: str, language: Language, chinese: Callable[[str], str]) -> str:
    """Digits by their names, letters by theirs, signs by name where they have one."""
    signs = _SIGNS[language]
    said = []
    for character in text:
        if "0" <= character <= "9":
            said.append(chinese(character) if language == "zh" else words.digits(character))
        elif character.isalpha():
            said.append(character.upper())
        elif name := signs.get(character):
            said.append(name)
    return _joined(said, language)


def _joined(said: list[str], language: Language) -> str:
    if language == "en":
        return " ".join(said)
    text = " ".join(said)
    return re.sub(r"(?<=[^\x00-\x7f]) | (?=[^\x00-\x7f])", "", text)


def _date(text: str, detail: str, language: Language) -> str | None:
    figures = _FIGURES.findall(text)
    order = detail or ("ymd" if language == "zh" or (figures and len(figures[0]) == 4) else "mdy")
    if len(figures) == 1 and len(order) == 3 and _BY_FIGURES.fullmatch(figures[0]):
        whole, year = figures[0], len(figures[0]) - 4
        cuts = {"y": year, "m": 2, "d": 2}
        figures, at = [], 0
        for part in order:
            figures.append(whole[at : at + cuts[part]])
            at += cuts[part]
    if len(figures) != len(order):
        return None
    parts = dict(zip(order, figures, strict=True))
    if any(len(figure) > (4 if part == "y" else 2) for part, figure in parts.items()):
        return None
    month, day = int(parts.get("m", "1")), int(parts.get("d", "1"))
    if not 1 <= month <= 12 or not 1 <= day <= 31:
        return None
    if language == "zh":
        names = (("y", "年"), ("m", "月"), ("d", "日"))
        return "".join(
            (numbers.digits(parts[p]) if p == "y" else numbers.cardinal(str(int(parts[p])))) + name
            for p, name in names
            if p in parts
        )
    said = [_MONTHS[month - 1]] if "m" in parts else []
    if "d" in parts:
        said.append(words.ordinal(day))
    if "y" in parts:
        year_said = words.year(int(parts["y"]))
        said.append(f", {year_said}" if said else year_said)
    return " ".join(said).replace(" ,", ",")


def _time(text: str, detail: str, language: Language) -> str | None:
    """Readers know the forms of a clock; 1430 and 14h30 are not among them."""
    match = re.fullmatch(r"(\d{1,2})[h:.]?(\d{2})(?:[m:.]?(\d{2})s?)?\s*([AaPp]\.?[Mm]\.?)?", text)
    if match is None or int(match[1]) > 24 or int(match[2]) > 59:
        return None
    clock = ":".join(part for part in match.groups()[:3] if part)
    return f"{clock} {match[4]}" if match[4] else clock


def _unit(text: str, detail: str, language: Language) -> str | None:
    """A unit alone by its name; with a number before it the readers read both."""
    if any(map(str.isdigit, text[:1])):
        return None
    if language == "en":
        unit = UNITS.get(text)
        return unit.many if unit else None
    unit_read = chinese_units.read(text.replace("µ", "μ"), 0, True)
    return unit_read.name if unit_read and unit_read.end == len(text) else None


_KINDS: dict[str, Callable[[str, str, Language], str | None]] = {
    "cardinal": _cardinal,
    "ordinal": _ordinal,
    "digits": _digits,
    "characters": _characters,
    "date": _date,
    "time": _time,
    "telephone": _telephone,
    "unit": _unit,
}
