"""Units of measurement in a text: symbols with powers, products and quotients, and how they are said.

The order of "square" and "cubic" follows the SI Brochure. The symbols are in `unit_table.py`.
"""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

from edged.text.english.unit_table import UNITS


class Found(NamedTuple):
    """A unit in a text. end: where it ends; alone: it may stand without a number."""

    one: str
    many: str
    end: int
    alone: bool


SPACED = frozenset("H F K S T C P r d".split())  # only after a space: else a code, as in 5G, 3C
_SQUARES = {one: one for one in ("km", "m", "cm", "mm", "dm", "ft", "in", "yd", "mi", "µm")}
_LETTERS = re.compile(
    r"ft[-·]lbf?|lbf?[-·]ft|in[-·]lbf?|lbf?[-·]in|"
    r"%RH|wt%|vol%|dB\(A\)|° ?[CFK](?![A-Za-z])|[A-Za-zµΩ]{1,6}|[°%‰℃℉\"]"
)
_POWER = re.compile(r"([²³])|\^([23])(?!\d)|([⁻][¹²³])|(?:\^|(?<=min))-([123])(?!\d)|([23])(?![\w.,]|[-–]\d)")
_ALONE = frozenset(
    """kPa MPa GPa mA µA kA kV mV µV kW MW GW mW kWh MWh Wh mAh Hz kHz MHz GHz mm µm nm cm km kg mg µg ms
    µs ns mbar rpm RPM psi kN MΩ kΩ mΩ Ω °C °F ℃ ℉ ml mL dB dBA dBm kbit Mbit Mbps Gbps kbps kVA MVA
    Nm VDC VAC ppm ppb lx lm mol µF nF pF mH µH µm %RH km/h""".split()
)


def parse(text: str, at: int) -> Found | None:
    """The unit that starts at this place: a symbol, with powers, products and quotients of symbols."""
    per = text.startswith("/", at)
    first = _atom(text, at + 1 if per else at, dividing=per)
    if first is None:
        return None
    one, many, end, alone = first
    if per:
        one = many = f"per {one}"
    divided = per
    for _ in range(3):
        mark = text[end : end + 1]
        if not mark or mark not in "/·*":
            break
        part = _atom(text, end + 1, dividing=mark == "/")
        if part is None:
            break
        one, many = (
            (f"{one} per {part.one}", f"{many} per {part.one}")
            if mark == "/"
            else (f"{one} {part.one}", f"{many} {part.one}" if divided else f"{one} {part.many}")
        )
        divided = divided or mark == "/"
        end, alone = part.end, True
    return Found(one, many, end, alone)


def _atom(text: str, at: int, *, dividing: bool) -> Found | None:
    match = _LETTERS.match(text, at)
    if match is None:
        return _squared_symbol(text, at)
    unit = UNITS.get(match[0].replace(" ", ""))
    end = match.end()
    if unit is None:
        return None
    one, many = unit
    alone = match[0] in _ALONE
    power = _POWER.match(text, end)
    if power and (power[5] is None or match[0] in _SQUARES):
        figure = power[1] or power[2] or power[3] or power[4] or power[5]
        end = power.end()
        alone = alone or power[1] is not None or power[3] is not None
        if power[3] or power[4]:
            count = figure[-1].translate(str.maketrans("¹²³", "123"))
            one = many = f"per {_to_the(one, count)}" if count != "1" else f"per {one}"
        else:
            count = "2" if figure in "²2" else "3"
            length = match[0] in _SQUARES
            one = _power(one, count, length, dividing)
            many = _power(many, count, length, dividing)
    follows = text[end : end + 1]
    if follows and (follows.isalnum() or follows in "°µΩ_"):
        return None
    return Found(one, many, end, alone)


def _power(name: str, count: str, length: bool, dividing: bool) -> str:
    if length:
        return f"{'square' if count == '2' else 'cubic'} {name}"
    return _to_the(name, count)


def _to_the(name: str, count: str) -> str:
    return f"{name} {'squared' if count == '2' else 'cubed'}"


def _squared_symbol(text: str, at: int) -> Found | None:
    """One character for a whole unit, as in East Asian type: ㎜, ㎡."""
    if at >= len(text) or not "\u3371" <= text[at] <= "\u33df":
        return None
    plain = unicodedata.normalize("NFKC", text[at]).replace("μ", "µ").replace("∕", "/")
    found = parse(plain, 0)
    if found is None or found.end != len(plain):
        return None
    return Found(found.one, found.many, at + 1, True)
