"""Cuts to a length: a text into what is read at once, and ids into what a voice takes.

Pure functions, linear; any thread. Neighbours: `split` says how good a place is; `prepare` and the
frontends of voices cut.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence

from edged.text.split import INSIDE, breaks

_FOLLOWING = 64  # characters behind a block that show whether a sentence ends at its edge
_PARAGRAPH = re.compile(r"(?<=\S)[^\S\r\n]*(?:\r\n|\r(?!\n)|\n)[^\S\r\n]*[\r\n]\s*|(?<=\S)\s*?[\f\u2029]\s*")
_JOINED = 64  # the longest sequence of joined characters that is kept in one
_JOINERS = "\u200d\ufe0e\ufe0f"


def blocks(text: str, most: int = 2000) -> Iterator[tuple[int, int]]:
    """Ranges of at most `most` characters that cover the text, each to be read on its own.

    A block ends with its paragraph; a longer paragraph is cut where it is best (see `cut`).
    """
    most = max(1, most)
    start = 0
    while start < len(text):
        end = _paragraph(text, start, most)
        if end < 0:
            end = len(text) if len(text) - start <= most else _best(text, start, most)
        yield start, end
        start = end


def _paragraph(text: str, start: int, most: int) -> int:
    """Where the paragraph with the blank lines behind it ends, or -1."""
    match = _PARAGRAPH.search(text, start, min(len(text), start + most))
    return match.end() if match else -1


def _best(text: str, start: int, most: int) -> int:
    seen = breaks(text[start : start + most + _FOLLOWING])
    end = start + _place(seen, 0, len(text) - start, most)
    if seen[end - start - 1] == INSIDE:
        for place in range(end, max(start, end - _JOINED), -1):
            if not _is_joined(text[place - 1], text[place]):
                return place
    return end


def _is_joined(before: str, after: str) -> bool:
    """Whether two characters are one for a reader: a letter and its accents, a joined emoji."""
    if unicodedata.combining(after) or after in _JOINERS or before == "\u200d":
        return True
    if "\ud800" <= before <= "\udbff":  # halves of a character, each on its own
        return "\udc00" <= after <= "\udfff"
    return "\U0001f3fb" <= after <= "\U0001f3ff" or (before == "\r" and after == "\n")


def cut(breaks: Sequence[int], limit: int) -> Iterator[tuple[int, int]]:
    """Ranges of at most `limit` ids, at least one, that cover all of them.

    breaks: how good a place after each id is, more is better, 0 is none. A range ends at the best place, the
    last of those; not in its first third while there is another place, nor so near to the end that a scrap
    is left while there is another as good. Where there is no place at all it ends with the limit.
    """
    limit = max(1, limit)
    goodness = bytes(breaks)
    start, total = 0, len(goodness)
    while total - start > limit:
        end = _place(goodness, start, total, limit)
        yield start, end
        start = end
    if start < total:
        yield start, total


def _place(goodness: bytes, start: int, total: int, limit: int) -> int:
    """Where a range ends that begins at `start`; more than `limit` ids are left of `total`."""
    least = start + max(1, limit // 3)
    window = goodness[least - 1 : start + limit]
    best = max(window)
    if best == INSIDE:
        early = goodness[start : least - 1]
        if early and max(early) > INSIDE:
            return start + early.rindex(max(early)) + 1
    end = least + window.rindex(best)
    scrap = least - start  # less than this is one
    if total - end < scrap:
        earlier = window[: max(0, total - scrap - least + 1)]
        if best in earlier:
            return least + earlier.rindex(best)
    return end
