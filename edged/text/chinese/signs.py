"""Signs, marks and single characters that have words: mathematics, Greek, Roman numerals, markup.

Pure. Neighbours: `reader.py` puts the markup first and the signs last.
"""

from __future__ import annotations

import re
import unicodedata

from edged.text.chinese import units
from edged.text.chinese.numbers import cardinal, digits, value
from edged.text.chinese.rule import MASK, Rule, Scene, whole
from edged.text.shapes import referenced
from edged.text.span import Span

_TAGS = "a b i u s p br hr div span strong em small sub sup font center ul ol li table tr td th img h[1-6]"
_TAG = re.compile(rf"</?(?:{'|'.join(_TAGS.split())})(?:\s[^<>]{{0,200}})?/?>", re.IGNORECASE)
_ENTITY = re.compile(r"&(?:nbsp|amp|lt|gt|quot|apos|#\d{1,7}|#x[0-9A-Fa-f]{1,6});")
_ENTITIES = {"amp": "和", "lt": "小于", "gt": "大于"}
_EMPHASIS = re.compile(r"\*{2,3}|__|~~|`{1,3}|(?m:^[ \t]{0,3}(?:#{1,6}|[-*+]|>)[ \t]+)")
_TOPIC = re.compile(r"(?<![\w#&])#(?=[^\W\d_])")
_GREEK_NAMES = """
阿尔法 贝塔 伽马 德尔塔 艾普西隆 泽塔 伊塔 西塔 约塔 卡帕 兰姆达 缪 纽 克西 奥密克戎 派 柔 西格马 陶
宇普西隆 斐 希 普西 欧米伽
""".split()
_GREEK = {
    letter: name
    for alphabet in ("αβγδεζηθικλμνξοπρστυφχψω", "ΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣΤΥΦΧΨΩ")
    for letter, name in zip(alphabet, _GREEK_NAMES, strict=True)
} | {"ς": "西格马"}
_GREEK_LETTER = re.compile(
    r"(?<![\u0370-\u03ff])[\u0391-\u03a1\u03a3-\u03a9\u03b1-\u03c9](?![\u0370-\u03ff])"
)
_ROMAN_WORD = re.compile(
    r"(?:(?<=第)|(?<![A-Za-z0-9]))(?=[IVX])(?:X{0,2})(?:IX|IV|V?I{0,3})(?=\s?[级类期区段章部卷])|(?<![A-Za-z0-9])(?=[IVX]{2})X{0,2}(?:IX|IV|V?I{0,3})(?=\s?型)|(?<=第)(?=[IVX])X{0,2}(?:IX|IV|V?I{0,3})(?!\s?[A-Za-z0-9])"
)
_ROMAN_NAME = re.compile(
    r"(?<![A-Za-z])(?:Phase|Class|Type|Part|Chapter|Section|Stage|Level|Zone|Category|Grade|Group|Mark|Line|Unit|Version)\s"
    r"(?P<it>(?=[IVX])X{0,2}(?:IX|IV|V?I{0,3}))(?![A-Za-z0-9'])"
)
_NUMERAL = re.compile(r"[^\x00-\x7f\u3000-\u3020\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff01-\uff0f]")
_SQUARE = re.compile(r"(?<=[A-Za-z)）\u4e00-\u9fff])[²³]")
_SIGNS = {
    "<=": "小于等于",
    ">=": "大于等于",
    "!=": "不等于",
    "==": "等于",
    "=>": "到",
    "->": "到",
    "+/-": "正负",
    "=": "等于",
    "≠": "不等于",
    "≈": "约等于",
    "≤": "小于等于",
    "≥": "大于等于",
    "<": "小于",
    ">": "大于",
    "+": "加",
    "±": "正负",
    "×": "乘",
    "÷": "除以",
    "√": "根号",
    "∞": "无穷大",
    "%": "百分号",
    "‰": "千分号",
    "&": "和",
    "@": "艾特",
    "#": "井号",
    "°": "度",
    "℃": "摄氏度",
    "℉": "华氏度",
    "€": "欧元",
    "£": "英镑",
    "¥": "元",
    "$": "美元",
    "№": "号",
    "→": "到",
    "^": "的次方",
}
_SILENT = "©®™"
_SIGN = re.compile("|".join(map(re.escape, sorted(_SIGNS, key=len, reverse=True))) + f"|[{_SILENT}]")
_UPTO = re.compile(rf"(?<=[\w%℃]|{MASK})\s?~\s?(?=[\w]|{MASK})|~")
_HYPHEN_UPTO = re.compile(rf"(?<=[\u4e00-\u9fff%]|{MASK})\s?-\s?(?={MASK})")
_PER = re.compile(rf"(?<=[元角分块克斤吨升米件个台次瓶人天时{MASK}])/(?=[A-Za-zμ\u4e00-\u9fff])")
_SQUARED_UNIT = re.compile("[\u3371-\u33df]")
_STROKE = re.compile(r"/+")
_TIMES = re.compile(rf"(?<={MASK})\s?\*\s?(?={MASK})|\*+")


def _markup(match: re.Match[str], _: Scene) -> Span:
    name = match.group().strip("&;")
    if name.startswith("#"):  # a figure that is written as a reference is a figure
        return whole(match, digits(referenced(match.group())), "markup")
    return whole(match, _ENTITIES.get(name, ""), "markup")


def _topic(match: re.Match[str], scene: Scene) -> Span:
    return whole(match, "井号", "hashtag")


def _greek(match: re.Match[str], _: Scene) -> Span:
    return whole(match, _GREEK[match.group()], "math")


def _roman(match: re.Match[str], _: Scene) -> Span | None:
    if not match.group():
        return None
    return whole(match, _roman_number(match.group()), "roman")


def _roman_name(match: re.Match[str], _: Scene) -> Span:
    return Span(match.start("it"), match.end("it"), _roman_number(match["it"]), "roman")


def _roman_number(numeral: str) -> str:
    total = 0
    before = 0
    for letter in reversed(numeral):
        worth = {"I": 1, "V": 5, "X": 10}[letter]
        total += worth if worth >= before else -worth
        before = max(before, worth)
    return cardinal(str(total))


def _numeral(match: re.Match[str], _: Scene) -> Span | None:
    """A character that is a number by itself: ①, ½, Ⅳ, ㈢."""
    character = match.group()
    amount = unicodedata.numeric(character, None)
    if amount is None:
        return None
    kind = "roman" if "\u2160" <= character <= "\u2188" else "fraction" if amount % 1 else "cardinal"
    return whole(match, value(amount), kind)


def _square(match: re.Match[str], _: Scene) -> Span:
    return whole(match, "平方" if match.group() == "²" else "立方", "math")


def _sign(match: re.Match[str], _: Scene) -> Span:
    return whole(match, _SIGNS.get(match.group(), ""), "math")


def _upto(match: re.Match[str], _: Scene) -> Span:
    return whole(match, "到" if len(match.group()) > 1 or _inside(match) else "", "range")


def _inside(match: re.Match[str]) -> bool:
    return (
        match.start() > 0
        and match.end() < len(match.string)
        and bool(
            re.match(rf"[\w%℃{MASK}]", match.string[match.start() - 1])
            and re.match(rf"[\w{MASK}]", match.string[match.end()])
        )
    )


def _hyphen(match: re.Match[str], _: Scene) -> Span:
    return whole(match, "到", "range")


def _per(match: re.Match[str], _: Scene) -> Span | None:
    if match.string[match.end()] >= "\u4e00":
        return whole(match, "每", "unit")
    unit = units.read(match.string, match.end(), spaced=False)
    return None if unit is None else Span(match.start(), unit.end, f"每{unit.name}", "unit")


def _squared_unit(match: re.Match[str], _: Scene) -> Span | None:
    """A unit in one character without a number."""
    unit = units.read(match.string, match.start(), spaced=True)
    return None if unit is None else Span(match.start(), unit.end, unit.name, "unit")


def _stroke(match: re.Match[str], _: Scene) -> Span:
    return whole(match, "、", "markup")


def _times(match: re.Match[str], _: Scene) -> Span:
    around = match.string[max(0, match.start() - 1) : match.end() + 1].strip()
    times = around[:1] == MASK and around[-1:] == MASK
    return whole(match, "乘" if times else "", "math" if times else "markup")


MARKUP = (
    Rule(_TAG, _markup, "<"),
    Rule(_ENTITY, _markup, "&"),
    Rule(_EMPHASIS, _markup, "*_~`#-+>"),
)
ROMAN = (Rule(_ROMAN_WORD, _roman, "IVX"), Rule(_ROMAN_NAME, _roman_name, "IVX"))
RULES = (
    Rule(_PER, _per, "/"),
    Rule(_SQUARED_UNIT, _squared_unit),
    Rule(_SQUARE, _square, "²³"),
    Rule(_NUMERAL, _numeral),
    Rule(_HYPHEN_UPTO, _hyphen, "-"),
    Rule(_UPTO, _upto, "~"),
    Rule(_TOPIC, _topic, "#"),
    Rule(_TIMES, _times, "*"),
    Rule(_SIGN, _sign),
    Rule(_GREEK_LETTER, _greek),
    Rule(_STROKE, _stroke, "/"),
)
