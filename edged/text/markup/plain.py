"""Plain text: nothing in it is markup, whatever it looks like. Any thread. Neighbour: `parse` above."""

from __future__ import annotations

from edged.text.document import Document, Words


def parse(text: str) -> Document:
    """All of the text as it is, line breaks and blank lines included."""
    return (Words(text),) if text else ()
