"""Amounts with a currency sign or code. Pure. Neighbours: `numbers.py`, `quantities.py`."""

from __future__ import annotations

import re

from edged.text.chinese.numbers import DIGITS, number
from edged.text.chinese.quantities import NUMBER
from edged.text.chinese.rule import Rule, Scene, whole
from edged.text.span import Span

_CURRENCIES = {
    "¥": "元",
    "￥": "元",
    "RMB": "元",
    "CNY": "元",
    "CN¥": "元",
    "$": "美元",
    "US$": "美元",
    "USD": "美元",
    "€": "欧元",
    "EUR": "欧元",
    "£": "英镑",
    "GBP": "英镑",
    "HK$": "港元",
    "HKD": "港元",
    "NT$": "新台币",
    "TWD": "新台币",
    "JP¥": "日元",
    "JPY": "日元",
    "A$": "澳元",
    "AUD": "澳元",
    "C$": "加元",
    "CAD": "加元",
    "CHF": "瑞士法郎",
    "KRW": "韩元",
    "₩": "韩元",
    "₽": "卢布",
    "SGD": "新加坡元",
}
_BY_LENGTH = "|".join(re.escape(sign) for sign in sorted(_CURRENCIES, key=len, reverse=True))
_BEFORE = re.compile(
    rf"(?<![A-Za-z])(?P<m>-)?(?P<c>{_BY_LENGTH})\s?(?P<n>-)?(?P<a>{NUMBER})(?:\s?[-~]\s?(?:(?P=c))?(?P<b>{NUMBER}))?(?P<s>\s?[千百]?[万亿]|\s?[千百]|[kKMB](?![A-Za-z0-9]))?(?P<w>元)?(?![\d.]\d)"
)
_AFTER = re.compile(
    rf"(?<![\dA-Za-z.,])(?P<a>{NUMBER})(?P<s>\s?[千百]?[万亿])?\s?(?P<c>{_BY_LENGTH})(?![A-Za-z0-9])"
)
_LETTERS = {"k": "千", "K": "千", "M": "百万", "B": "十亿"}
_CODED = frozenset("元")


def _yuan(amount: str) -> str:
    """元, 角 and 分, as an amount of money is read out."""
    whole_part, _, part = amount.replace(",", "").partition(".")
    if not part or len(part) > 2 or part.strip("0") == "":
        return number(whole_part or "0", measured=True) + "元"
    jiao, fen = part[0], part[1:] or "0"
    said = f"{number(whole_part, measured=True)}元" if whole_part.strip("0") else ""
    if jiao != "0":
        said += f"{DIGITS[int(jiao)]}角"
    elif said:
        said += "零"
    return said + (f"{DIGITS[int(fen)]}分" if fen != "0" else "")


def _before(match: re.Match[str], _: Scene) -> Span:
    name = _CURRENCIES[match["c"]]
    scale = (match["s"] or "").strip()
    scale = _LETTERS.get(scale, scale)
    a, b = match["a"], match["b"]
    sign = "负" if match["m"] or match["n"] else ""
    long_part = len(a.partition(".")[2]) > 2
    if name in _CODED and not scale and not b and not long_part:
        said = _yuan(a)
    else:
        measured = not b
        said = number(a, measured=measured) + (f"到{number(b)}" if b else "") + scale + name
    return whole(match, sign + said, "money")


def _after(match: re.Match[str], _: Scene) -> Span:
    scale = (match["s"] or "").strip()
    return whole(match, number(match["a"], measured=True) + scale + _CURRENCIES[match["c"]], "money")


RULES = (Rule(_BEFORE, _before), Rule(_AFTER, _after))
