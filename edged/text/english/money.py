"""Amounts of money: how they are said in English."""

from __future__ import annotations

import re

from edged.text.english import units
from edged.text.english.rule import Reading, Rule, Say, rule

# sign or code -> (one, many, one hundredth, many hundredths); "" where there are none in use
_CURRENCIES: dict[str, tuple[str, str, str, str]] = {
    "$": ("dollar", "dollars", "cent", "cents"),
    "US$": ("U S dollar", "U S dollars", "cent", "cents"),
    "USD": ("U S dollar", "U S dollars", "cent", "cents"),
    "C$": ("Canadian dollar", "Canadian dollars", "cent", "cents"),
    "CA$": ("Canadian dollar", "Canadian dollars", "cent", "cents"),
    "CAD": ("Canadian dollar", "Canadian dollars", "cent", "cents"),
    "A$": ("Australian dollar", "Australian dollars", "cent", "cents"),
    "AUD": ("Australian dollar", "Australian dollars", "cent", "cents"),
    "HK$": ("Hong Kong dollar", "Hong Kong dollars", "cent", "cents"),
    "£": ("pound", "pounds", "penny", "pence"),
    "GBP": ("British pound", "British pounds", "penny", "pence"),
    "€": ("euro", "euros", "cent", "cents"),
    "EUR": ("euro", "euros", "cent", "cents"),
    "CHF": ("Swiss franc", "Swiss francs", "centime", "centimes"),
    "¥": ("yen", "yen", "", ""),
    "JPY": ("yen", "yen", "", ""),
    "CN¥": ("yuan", "yuan", "", ""),
    "CNY": ("yuan", "yuan", "", ""),
    "RMB": ("yuan", "yuan", "", ""),
    "₹": ("rupee", "rupees", "paisa", "paise"),
    "INR": ("rupee", "rupees", "paisa", "paise"),
    "₩": ("won", "won", "", ""),
    "KRW": ("won", "won", "", ""),
    "₽": ("ruble", "rubles", "kopeck", "kopecks"),
    "₺": ("lira", "lira", "", ""),
    "₿": ("bitcoin", "bitcoins", "", ""),
    "SEK": ("Swedish krona", "Swedish kronor", "", ""),
}
_SCALES = {
    "k": "thousand", "K": "thousand", "m": "million", "M": "million", "mn": "million", "MM": "million",
    "bn": "billion", "b": "billion", "B": "billion", "tn": "trillion", "T": "trillion",
}  # fmt: skip


def amount(number: str, scale: str | None, currency: str, say: Say) -> str:
    """5.30 dollars -> five dollars and thirty cents; 1.5 million -> one point five million dollars."""
    one, many, small, smalls = _CURRENCIES[currency]
    if number.rfind(",") > number.rfind(".") >= 0:  # 1.234,56 as in Europe
        number = number.translate(str.maketrans(",.", ".,"))
    plain = number.replace(",", "")
    if scale:
        return f"{say.number(plain)} {_SCALES.get(scale, scale)} {many}"
    whole, _, part = plain.partition(".")
    if not part or not int(part):
        if part and len(part) != 2:
            return f"{say.number(plain)} {many}"
        return f"{say.number(whole or '0')} {one if whole.lstrip('0') == '1' else many}"
    if len(part) != 2 or not small:
        return f"{say.number(plain)} {many}"
    cents = f"{say.cardinal(int(part))} {small if int(part) == 1 else smalls}"
    if not whole.strip("0"):
        return cents
    return f"{say.number(whole)} {one if whole == '1' else many} and {cents}"


def _money(match: re.Match[str], say: Say) -> Reading:
    minus = "minus " if match["sign"] else ""
    currency = match["cur"]
    if match["second"]:
        many = _CURRENCIES[currency][1]
        scale = f" {_SCALES.get(match['scale'], match['scale'])}" if match["scale"] else ""
        said = f"{say.number(match['first'])} to {say.number(match['second'])}{scale} {many}"
        return Reading("range", minus + said)
    said = minus + amount(match["first"], match["scale"], currency, say)
    if match["per"] is None:
        return Reading("money", said)
    unit = units.parse(match.string, match.start("per"))
    return Reading("money", f"{said} {unit.one}", unit.end) if unit else Reading("money", f"{said} per")


def _cents(match: re.Match[str], say: Say) -> Reading:
    return Reading("money", f"{say.number(match[1])} {'cent' if match[1] == '1' else 'cents'}")


_N = r"(?:\d{1,3}(?:\.\d{3}){1,4},\d{2}|(?:\d{1,3}(?:,\d{3}){1,5}|\d{1,18})(?:\.\d{1,12})?)"
_SIGNS = "|".join(sorted(map(re.escape, _CURRENCIES), key=len, reverse=True))
_SCALE = (
    r"(?: ?(?P<scale>(?:hundred|thousand|million|billion|trillion|bn|mn|tn|MM|[kKmMbBT])(?![A-Za-z0-9])))?"
)
_SIGN = r"(?P<sign>(?<![\w.])[-−] ?)?"

RULES: list[Rule] = [
    rule(
        rf"{_SIGN}(?<![A-Za-z$])(?P<cur>{_SIGNS}) ?(?P<first>{_N})(?:[-–](?:(?P=cur))?"
        rf"(?P<second>{_N}))?(?![\d]|[.,]\d)"
        rf"{_SCALE}(?P<per>/(?=[A-Za-z]))?",
        _money,
    ),
    rule(
        rf"{_SIGN}(?<![\w.,])(?P<first>{_N})(?:[-–](?P<second>{_N}))?(?![\d]|[.,]\d){_SCALE} ?"
        rf"(?P<cur>{_SIGNS})(?![A-Za-z\d])"
        r"(?P<per>/(?=[A-Za-z]))?",
        _money,
    ),
    rule(rf"(?<![\w.,])({_N}) ?¢", _cents),
]
