"""The readers that are there. Made on a loading thread; the objects then serve any thread.

Neighbours: `edged.text.english`, `edged.text.chinese` below, `prepare` and the service above.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec

from edged.text.document import Language, primary
from edged.text.english.reader import English
from edged.text.lexicon.match import Lexicon
from edged.text.reading import Readings
from edged.text.runs import MixedReader, Reader
from edged.text.span import Options, Span
from edged.voices.api import Frontend


class _Later:
    """A reader of Chinese that is loaded for the first text that needs it: where all voices speak English
    there may never be one. Implements `Reader`."""

    def __init__(self) -> None:
        self._reader: Reader | None = None

    def spans(self, text: str, options: Options) -> list[Span]:
        if self._reader is None:
            self._reader = _chinese()
        return self._reader.spans(text, options)


def _chinese() -> Reader:
    from edged.text.chinese.reader import Chinese  # its dictionaries are some megabytes

    return Chinese()


def readings_of(frontends: Iterable[Frontend], lexicon: Lexicon | None = None) -> Readings:
    """What reads to these voices. Chinese is there where its package is, for voices that spell it too.

    Raises `MissingExtra` when a voice speaks Chinese and the package is not installed.
    """
    spoken = {primary(tag) for frontend in frontends for tag in frontend.languages}
    readers: dict[Language, Reader] = {"en": English()}
    if "zh" in spoken:
        readers["zh"] = _chinese()
    elif find_spec("opencc") is not None:
        readers["zh"] = _Later()
    return Readings(MixedReader(readers), lexicon)
