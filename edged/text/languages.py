"""The readers that are there. Made on a loading thread; the objects then serve any thread.

Neighbours: `edged.text.english`, `edged.text.chinese` below, `prepare` and the service above.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec

from edged.text.document import Language
from edged.text.english.reader import English
from edged.text.lexicon.match import Lexicon
from edged.text.reading import Readings
from edged.text.runs import MixedReader, Reader
from edged.voices.api import Frontend


def readings_of(frontends: Iterable[Frontend], lexicon: Lexicon | None = None) -> Readings:
    """What reads to these voices. Chinese is there where its package is, for voices that spell it too.

    Raises `MissingExtra` when a voice speaks Chinese and the package is not installed.
    """
    spoken = {tag.partition("-")[0].lower() for frontend in frontends for tag in frontend.languages}
    readers: dict[Language, Reader] = {"en": English()}
    if "zh" in spoken or find_spec("opencc") is not None:
        from edged.text.chinese.reader import Chinese  # its dictionaries are some megabytes

        readers["zh"] = Chinese()
    return Readings(MixedReader(readers), lexicon)
