"""What an explanation of a text consists of: the same on the text thread, on the wire and for clients.

Leaf data, any thread. Neighbours: `edged.text.explain` makes them, `edged.protocol` sends them.
"""

from __future__ import annotations

import msgspec


class SkippedInfo(msgspec.Struct, kw_only=True, frozen=True):
    """Characters of one kind that are not spoken. codepoint: such as U+1F680. name: their name in Unicode, ""
    for none."""

    character: str
    codepoint: str
    name: str
    count: int
    why: str


class RunInfo(msgspec.Struct, kw_only=True, frozen=True):
    """A stretch of the text that is read in one language by one voice. language: "" where none is known.
    said: the stretch in words."""

    language: str
    text: str
    said: str
    voice: str


class ReadingInfo(msgspec.Struct, kw_only=True, frozen=True):
    """A figure, a sign or a word that is read otherwise than it is written. kind: cardinal, date, unit ..."""

    written: str
    spoken: str
    kind: str


class UtteranceInfo(msgspec.Struct, kw_only=True, frozen=True):
    """A piece that is spoken at once. ids: the voice's own symbols in it, of at most `limit` (0: not known).

    lead_s, pause_s: silence before and after it, in seconds.
    """

    said: str
    ids: int
    limit: int
    lead_s: float
    pause_s: float
    voice: str
    language: str
