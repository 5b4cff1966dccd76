"""English words for numbers, years, digits and letters. Pure functions; any thread."""

from __future__ import annotations

ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
).split()
TENS = "- - twenty thirty forty fifty sixty seventy eighty ninety".split()
SCALES = ["", *(" " + s for s in "thousand million billion trillion quadrillion quintillion".split())]
_SWAPPED = str.maketrans(",.", ".,")
MAX_DIGITS = 3 * len(SCALES)  # longer numbers have no name here and are read digit by digit
ORDINALS = {
    "one": "first",
    "two": "second",
    "three": "third",
    "five": "fifth",
    "eight": "eighth",
    "nine": "ninth",
    "twelve": "twelfth",
}


def digits(figures: str) -> str:
    """Each digit by its name: 417 -> four one seven. Other characters are passed over."""
    return " ".join(ONES[int(c)] for c in figures if "0" <= c <= "9")


def spell(letters: str) -> str:
    """Letters and digits one by one, letters as capitals: a1 -> A one."""
    return " ".join(ONES[int(c)] if "0" <= c <= "9" else c.upper() for c in letters if c.isalnum())


def _below_thousand(number: int, joint: str) -> str:
    hundreds, rest = divmod(number, 100)
    words = f"{ONES[hundreds]} hundred" if hundreds else ""
    if rest:
        tens, ones = divmod(rest, 10)
        tail = ONES[rest] if rest < 20 else TENS[tens] + (f"-{ONES[ones]}" if ones else "")
        words = f"{words}{joint}{tail}" if words else tail
    return words


def cardinal(number: int, british: bool = False) -> str:
    """American: one hundred twenty; British: one hundred and twenty. Up to MAX_DIGITS digits."""
    if number < 0:
        return "minus " + cardinal(-number, british)
    if number == 0:
        return ONES[0]
    if number >= 10**MAX_DIGITS:
        return digits(str(number))
    joint = " and " if british else " "
    groups: list[str] = []
    scale = 0
    rest = number
    while rest:
        rest, group = divmod(rest, 1000)
        if group:
            groups.append(_below_thousand(group, joint) + SCALES[scale])
        scale += 1
    groups.reverse()
    if british and len(groups) > 1 and 0 < number % 1000 < 100:
        groups[-1] = "and " + groups[-1]
    return " ".join(groups)


def ordinal(number: int, british: bool = False) -> str:
    """twenty-third, one hundredth."""
    return ordinal_of(cardinal(number, british))


def ordinal_of(words: str) -> str:
    """The ordinal of a number in words: only its last word changes."""
    cut = max(words.rfind(" "), words.rfind("-")) + 1
    last = words[cut:]
    if last in ORDINALS:
        return words[:cut] + ORDINALS[last]
    return words[:cut] + (last[:-1] + "ieth" if last.endswith("y") else last + "th")


def year(number: int, british: bool = False) -> str:
    """Years in pairs: nineteen ninety-nine, nineteen oh five; 2000 to 2009 as numbers."""
    high, low = divmod(number, 100)
    if not 1000 <= number <= 9999 or (high % 10 == 0 and low < 10):
        return cardinal(number, british)
    tail = "hundred" if low == 0 else f"oh {ONES[low]}" if low < 10 else cardinal(low)
    return f"{cardinal(high)} {tail}"


def decade(number: int) -> str:
    """nineteen nineties, twenty tens; two thousands."""
    words = year(number)
    return words[:-1] + "ies" if words.endswith("y") else words + "s"


def number(text: str, british: bool = False) -> str:
    """A number as written, without its sign: 1,250 | 3.50 | .5 | 00417. Digits after the point one by one.

    What starts with a zero, or is too long to have a name, is read digit by digit.
    """
    if text.rfind(",") > text.rfind(".") >= 0:  # 1.234,56 as in Europe
        text = text.translate(_SWAPPED)
    whole, point, fraction = text.replace(",", "").partition(".")
    if whole == "" or whole == "0":
        words = ONES[0]
    elif whole[0] == "0" or len(whole) > MAX_DIGITS:
        words = digits(whole)
    else:
        words = cardinal(int(whole), british)
    return f"{words} point {digits(fraction)}" if point and fraction else words


def fraction(top: int, bottom: int, british: bool = False) -> str:
    """one half, three quarters, seven sixteenths; twelve over twenty-five where no name is usual."""
    if bottom == 2:
        return f"{cardinal(top, british)} {'half' if top == 1 else 'halves'}"
    if bottom == 4:
        name = "quarter"
    elif 3 <= bottom <= 20 or bottom in (30, 32, 40, 50, 60, 64, 80, 100, 128, 1000):
        name = ordinal(bottom, british).removeprefix("one ")
    else:
        return f"{cardinal(top, british)} over {cardinal(bottom, british)}"
    return f"{cardinal(top, british)} {name}{'' if top == 1 else 's'}"
