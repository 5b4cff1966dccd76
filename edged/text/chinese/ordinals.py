"""Numbers that give a place in a row or name one of many: 第3, 2nd, No. 5, 3#. Pure.

Neighbours: `numbers.py`; `reader.py` puts these rules before those of codes, which would take their signs.
"""

from __future__ import annotations

import re

from edged.text.chinese.numbers import cardinal
from edged.text.chinese.rule import Rule, Scene, whole
from edged.text.span import Span

_ORDINAL = re.compile(r"(?<=第)\s?(\d{1,16})(?:(\s?[-~/、至到])\s?(\d{1,16}))?(?![\d.:])")
_ENGLISH_ORDINAL = re.compile(r"(?<![\dA-Za-z.])(\d{1,4})(?:st|nd|rd|th)(?![A-Za-z0-9])")
_HASH = re.compile(r"#\s?(\d{1,4})(?![\dA-Za-z.])|(?<![\dA-Za-z.])(\d{1,4})#(?!\d)")
_NO = re.compile(r"(?:(?<![A-Za-z])[Nn][OoRr]\.?\s?|№\s?)(\d{1,6})(?![\dA-Za-z.])")
_MULTIPLE = re.compile(r"(?<![\dA-Za-z.])(\d{1,4})\s?[xX×](?=\s?M\d)")


def _ordinal(match: re.Match[str], _: Scene) -> Span:
    said = cardinal(match[1])
    if match[3]:
        joint = match[2].strip()
        said += {"-": "到", "~": "到", "/": "斜杠"}.get(joint, joint) + cardinal(match[3])
    return whole(match, said, "ordinal")


def _english_ordinal(match: re.Match[str], _: Scene) -> Span:
    return whole(match, f"第{cardinal(match[1])}", "ordinal")


def _numbered(match: re.Match[str], _: Scene) -> Span:
    """#3 and 3# are 三号, as is No. 3."""
    said = cardinal(next(filter(None, match.groups())))
    follows = match.string.startswith("号", match.end())
    return whole(match, said if follows else f"{said}号", "ordinal")


def _multiple(match: re.Match[str], _: Scene) -> Span:
    """2x M10x40: so many of them."""
    return whole(match, f"{cardinal(match[1])}乘", "math")


RULES = (
    Rule(_ORDINAL, _ordinal, "第"),
    Rule(_ENGLISH_ORDINAL, _english_ordinal, "tnrd"),
    Rule(_NO, _numbered, "oOrR№"),
    Rule(_HASH, _numbered, "#"),
    Rule(_MULTIPLE, _multiple, "M"),
)
