"""Unit symbols after a number, read by the rules for compound units of 1984.

A compound unit is named in the order of its symbol; a stroke is 每 and stands once; squares and cubes of
lengths are 平方 and 立方, other powers 二次方 and 三次方. Pure, linear: a symbol has a bounded length.
Neighbours: `unit_names.py` has the table, `quantities.py` asks.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from edged.text.chinese.unit_names import IN_COMPOUNDS, LENGTHS, NAMES

_UNDER_A_STROKE = {"min": "分"}
_AFTER_ANOTHER = {"h": "时"}  # kW·h is 千瓦时
_POWERS = {"²": 2, "2": 2, "^2": 2, "³": 3, "3": 3, "^3": 3, "⁴": 4, "^4": 4}
_NUMERALS = " 一二三四"
_LONGEST = max(map(len, NAMES))
_ATOM = re.compile(r"[A-Za-zμΩ°℃℉′″Å㎀-㏿ℓ]+")
_POWER = re.compile(r"[²³⁴]|\^[234]|[23](?!\d|\.\d|[A-Za-z])")
_JOINT = re.compile(r"[·⋅*.]|/\(?")
_ENDS = re.compile(r"[A-Za-z0-9]|\.\d")
_ATOMS_AT_MOST = 5


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit that was read up to `end`."""

    end: int
    name: str


def read(view: str, start: int, spaced: bool) -> Unit | None:
    """The longest unit at `start`; None where none is or a word goes on. spaced: a blank stands before it."""
    end = start
    name = ""
    atoms = 0
    stroke = False
    best: Unit | None = None
    while atoms < _ATOMS_AT_MOST:
        letters = _ATOM.match(view, end, end + _LONGEST + 1)
        symbol = letters.group() if letters else ""
        known = NAMES if not atoms else IN_COMPOUNDS
        while symbol and symbol not in known:  # 5°C is one symbol, in 30°E the sign is
            symbol = symbol[:-1] if symbol[0] in "°′″℃℉" else ""
        if not symbol or (symbol == "K" and not atoms and not spaced):
            return best
        end += len(symbol)
        short = _UNDER_A_STROKE if stroke else _AFTER_ANOTHER if atoms else {}
        atom = short.get(symbol, known[symbol])
        power = _POWER.match(view, end)
        if power:
            end = power.end()
            atom = _raised(symbol, atom, _POWERS[power.group()])
        name += atom
        atoms += 1
        if not _ENDS.match(view, end) or symbol[-1] in "°′″℃℉":
            best = Unit(end, name)
        joint = _JOINT.match(view, end)
        if not joint or (stroke and joint.group()[0] == "/"):
            return best
        if joint.group()[0] == "/":
            stroke = True
            name += "每"
        end = joint.end()
        if joint.group() == "/(":
            return _bracketed(view, end, name) or best
    return best


def _bracketed(view: str, start: int, name: str) -> Unit | None:
    """The rest of W/(m·K)."""
    end = start
    for _ in range(_ATOMS_AT_MOST):
        letters = _ATOM.match(view, end, end + _LONGEST + 1)
        if not letters or letters.group() not in IN_COMPOUNDS:
            return None
        end = letters.end()
        atom = IN_COMPOUNDS[letters.group()]
        power = _POWER.match(view, end)
        if power:
            end = power.end()
            atom = _raised(letters.group(), atom, _POWERS[power.group()])
        name += atom
        if view.startswith(")", end):
            return Unit(end + 1, name)
        joint = _JOINT.match(view, end)
        if not joint or joint.group()[0] == "/":
            return None
        end = joint.end()
    return None


def _raised(symbol: str, name: str, power: int) -> str:
    if symbol in LENGTHS and power in (2, 3):
        return ("平方" if power == 2 else "立方") + name
    return f"{_NUMERALS[power]}次方{name}"
