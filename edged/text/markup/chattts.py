"""ChatTTS's own tokens in a text: those for sounds and pauses are taken, all others refused.

Pure, any thread. What stands in brackets is a token when it looks like the model's: letters, digits and
underscores. Others would change the voice, the pace or the end of a prompt, so a text cannot name them;
and since a word that nobody knows may be a token mistyped, it is refused as well. Neighbours: `parse`
above; `edged.voices.chattts.tokens` knows the tokens.
"""

from __future__ import annotations

import re

from edged.errors import did_you_mean
from edged.text.document import Document, Item, Tag, Words
from edged.text.markup.place import bad_markup
from edged.voices.chattts.tokens import TAGS

_TOKEN = re.compile(r"\[ *([A-Za-z0-9_]+) *\]")
_NAMED = ", ".join(f"[{tag}]" for tag in TAGS)
_HINT = "write other words in round brackets, or send the text as plain"


def parse(text: str) -> Document:
    """The text with its tokens taken out of the words. Raises `BadMarkup` for a token that may not stand."""
    items: list[Item] = []
    at = 0
    for token in _TOKEN.finditer(text):
        name = token[1]
        if token[0] != f"[{name}]" or name not in TAGS:
            guess = did_you_mean(name.lower(), TAGS)
            what = f"no word or number may stand in square brackets here but: {_NAMED}"
            raise bad_markup(text, token.start(), what, guess or _HINT)
        if at < token.start():
            items.append(Words(text[at : token.start()]))
        items.append(Tag(name))
        at = token.end()
    if at < len(text):
        items.append(Words(text[at:]))
    return tuple(items)
