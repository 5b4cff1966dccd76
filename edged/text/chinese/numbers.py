"""Numbers to Chinese words. Pure; every function takes ASCII digits.

两 stands before 千, 万 and 亿 at the head of a number and before measure words; 二 everywhere else. 零 is
said once for any run of zeros inside a number. Neighbours: every reader of this package.
"""

from __future__ import annotations

from fractions import Fraction

DIGITS = "零一二三四五六七八九"
_SCALES = ((10**8, "亿"), (10**4, "万"), (1000, "千"), (100, "百"), (10, "十"))
LONGEST = 16  # digits that have a name; longer numbers are read digit by digit
_BY_ONE = str.maketrans("0123456789", DIGITS)
_BY_ONE_ON_THE_WIRE = str.maketrans("0123456789", "零幺二三四五六七八九")


def digits(number: str) -> str:
    """Digit by digit, as in years and after the point."""
    return number.translate(_BY_ONE)


def call_digits(number: str) -> str:
    """Digit by digit as in telephone numbers: 幺 for 1, so that it is not taken for 七."""
    return number.translate(_BY_ONE_ON_THE_WIRE)


def cardinal(number: str) -> str:
    """A whole number. One that is written with a zero before it, or is too long, is read by its digits."""
    if len(number) > LONGEST or (len(number) > 1 and number[0] == "0"):
        return digits(number)
    said = _words(int(number)) or DIGITS[0]
    return _head(said.removeprefix("一") if said.startswith("一十") else said)


def _words(value: int) -> str:
    """Up to 10**16 - 1; nothing for 0."""
    for scale, name in _SCALES:
        if value >= scale:
            above, below = divmod(value, scale)
            gap = DIGITS[0] if 0 < below < scale // 10 else ""
            return _words(above) + name + gap + _words(below)
    return DIGITS[value] if value else ""


def _head(said: str) -> str:
    return "两" + said[1:] if len(said) > 1 and said[0] == "二" and said[1] in "千万亿" else said


def number(written: str, *, measured: bool = False) -> str:
    """Whole or decimal, unsigned, with or without commas between thousands.

    measured: a measure word or a unit follows, before which 2 is 两.
    """
    whole, point, part = written.replace(",", "").replace(" ", "").partition(".")
    if measured and not point and whole == "2":
        return "两"
    said = cardinal(whole or "0")
    return f"{said}点{digits(part)}" if point else said


def fraction(above: str, below: str) -> str:
    """below 分之 above."""
    return f"{cardinal(below)}分之{cardinal(above)}"


def value(amount: float) -> str:
    """The value of a character that is a number by itself, such as ½ or ⑫."""
    exact = Fraction(amount).limit_denominator(1000)
    sign = "负" if exact < 0 else ""
    exact = abs(exact)
    whole, rest = divmod(exact.numerator, exact.denominator)
    if not rest:
        return sign + cardinal(str(whole))
    part = fraction(str(rest), str(exact.denominator))
    return f"{sign}{cardinal(str(whole))}又{part}" if whole else sign + part
