"""A text as the rules see it: the same length, but one form for each character.

Full-width and other forms of a character become the usual one, traditional characters simplified ones
(OpenCC, which decides by words: 乾燥 is 干燥, 乾坤 stays). Text thread after loading. Neighbours: `reader.py`
finds spans in the view; places in it are places in the text.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any

from edged.errors import MissingExtra

_SAME = {
    "∶": ":",
    "−": "-",
    "‐": "-",
    "‑": "-",
    "‒": "-",
    "–": "-",
    "—": "-",
    "﹣": "-",
    "〜": "~",
    "∼": "~",
    "•": "·",
    "⋅": "·",
    "∙": "·",
    "✕": "×",
    "⁄": "/",
    "∕": "/",
    "µ": "μ",
    "\u2126": "\u03a9",
    "⌀": "Φ",
    "ϕ": "Φ",
    "φ": "Φ",
    "￥": "¥",
    "＄": "$",
    "“": '"',
    "”": '"',
    "\u00a0": " ",
    "\u3000": " ",
    "\u2009": " ",
    "\u202f": " ",
}
_TABLE = {ord(a): b for a, b in _SAME.items()} | {
    0xFEE0 + n: chr(n) for n in range(0x21, 0x7F) if chr(n) not in "!,.;?()[]"
}
_HAN = re.compile("[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+")
_FULL_POINT = re.compile(r"(?<=\d)[．，](?=\d)")
_LONG_DASH = re.compile("-{2,}")
_OTHER_DIGIT = re.compile(r"[^\W_a-zA-Z0-9\u4e00-\u9fff]")


class View:
    """Makes views. The converter is loaded once and only read afterwards."""

    def __init__(self) -> None:
        try:
            import opencc
        except ImportError as error:
            raise MissingExtra("opencc", "chattts", "Chinese text") from error
        self._converter: Any = opencc.OpenCC("t2s")

    def of(self, text: str) -> str:
        """The view; always as long as the text."""
        seen = text.translate(_TABLE)
        seen = _FULL_POINT.sub(lambda match: "." if match.group() == "．" else match.group(), seen)
        seen = _LONG_DASH.sub(lambda match: "—" * len(match.group()), seen)  # a dash of the sentence
        seen = _OTHER_DIGIT.sub(_digit, seen)
        return _HAN.sub(self._simplified, seen)

    def _simplified(self, match: re.Match[str]) -> str:
        written = match.group()
        simple = str(self._converter.convert(written))
        if simple == written:
            return written
        if len(simple) != len(written):
            simple = "".join(str(self._converter.convert(c))[:1] or c for c in written)
        again = str(self._converter.convert(simple))  # 薴 takes two steps
        return again if len(again) == len(written) else simple


def _digit(match: re.Match[str]) -> str:
    """Decimal digits of every script."""
    character = match.group()
    number = unicodedata.decimal(character, None)
    return character if number is None else str(number)
