"""Where in a text something is wrong, as people count: lines and columns from 1, in characters.

Pure, any thread. Neighbours: the parsers of the markups.
"""

from __future__ import annotations

import re

from edged.errors import BadMarkup

_LINE_END = re.compile(r"\r\n|\r|\n")
_NAME_CHARS = 40


def bad_markup(text: str, at: int, what: str, hint: str = "") -> BadMarkup:
    """The error for what stands at the index `at`. hint: "" for the usual one."""
    return BadMarkup(placed(text, at, what), hint or None)


def placed(text: str, at: int, what: str) -> str:
    """A message about what stands at the index `at`."""
    before = _LINE_END.split(text[: max(at, 0)])
    return f"line {len(before)}, column {len(before[-1]) + 1}: {what}"


def short(name: str) -> str:
    """A name from a request, short enough for a message."""
    return name if len(name) <= _NAME_CHARS else name[:_NAME_CHARS] + "..."
