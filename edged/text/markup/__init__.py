"""What a request says beside its words: its text becomes a `Document`, the same for every markup.

Pure functions, called on the thread that received the text, before a job is made. Neighbours: the server
above; `edged.text.check` looks at the document next. One module a markup; `place` makes their errors.
"""

from __future__ import annotations

from collections.abc import Callable

from edged.errors import BadValue, did_you_mean
from edged.text.document import Document
from edged.text.markup import chattts, plain, ssml

_PARSERS = {"plain": plain.parse, "chattts": chattts.parse}
MARKUPS = ("plain", "ssml", "chattts")

__all__ = ["MARKUPS", "parse"]


def parse(text: str, markup: str, voice: Callable[[str], object] | None = None) -> Document:
    """The text in the form that all markups share, in time linear in its length.

    markup: one of `MARKUPS`, else `BadValue`. Raises `BadMarkup`, with line and column, for what the
    markup does not take. voice: raises the `RequestError` for a name of a voice that cannot be used, to which
    line and column are added.
    """
    if markup == "ssml":
        return ssml.parse(text, voice)
    parser = _PARSERS.get(markup)
    if parser is None:
        raise BadValue(f"markup must be one of: {', '.join(MARKUPS)}", did_you_mean(markup, MARKUPS))
    return parser(text)
