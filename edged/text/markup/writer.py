"""Puts a document together, and decides what the blanks of an XML text mean.

Pure, any thread. A run of blanks is one space, and none beside a boundary or at either end; a tag between two
letters is no blank, and blanks on both sides of a tag are one. Neighbour: the parser of SSML.
"""

from __future__ import annotations

import re

from edged.text.document import PLAIN, Boundary, Document, Item, Mark, Pause, Style, Words

_BLANKS = re.compile("[ \t\r\n]+")  # as XML knows them: other spaces are text


def squeezed(text: str) -> str:
    """One space for each run of blanks, none at the ends."""
    return _BLANKS.sub(" ", text).strip(" ")


class Writer:
    """A document in the making: texts of one style become one `Words`."""

    def __init__(self) -> None:
        self._items: list[Item] = []
        self._pieces: list[str] = []  # of the words at the end, which may become longer
        self._style = PLAIN
        self._blank = False  # one was seen and not yet written
        self._begun = False  # there are words since the last boundary

    def text(self, data: str, style: Style) -> None:
        """More text, as it stands in the document."""
        data = _BLANKS.sub(" ", data)
        said = data.strip(" ")
        self._blank = self._blank or data.startswith(" ")
        if not said:
            return
        same = bool(self._pieces) and self._style == style
        if self._parted() and (same or not self._cling()):
            said = f" {said}"
        if not same:
            self._close()
            self._style = style
        self._pieces.append(said)
        self._blank, self._begun = data.endswith(" "), True

    def words(self, words: Words) -> None:
        """A stretch that is not spoken as it is written; it stays on its own."""
        if self._parted() and not self._cling():
            self._items.append(Words(" ", words.style))
        self._close()
        self._items.append(words)
        self._blank, self._begun = False, True

    def put(self, item: Pause | Mark) -> None:
        self._close()
        self._items.append(item)

    def boundary(self, boundary: Boundary) -> None:
        """Where boundaries meet, a paragraph's outdoes a sentence's; before all else there is none."""
        self._close()
        self._blank = self._begun = False
        last = self._items[-1] if self._items else None
        if isinstance(last, Boundary):
            if boundary.kind == "paragraph":
                self._items[-1] = boundary
        elif last is not None:
            self._items.append(boundary)

    def document(self) -> Document:
        self._close()
        if self._items and isinstance(self._items[-1], Boundary):
            self._items.pop()
        return tuple(self._items)

    def _parted(self) -> bool:
        return self._blank and self._begun

    def _cling(self) -> bool:
        """Gives the blank to the words before, if they are of the usual kind."""
        if self._pieces:
            self._pieces.append(" ")
        return bool(self._pieces)

    def _close(self) -> None:
        if self._pieces:
            self._items.append(Words("".join(self._pieces), self._style))
            self._pieces = []
