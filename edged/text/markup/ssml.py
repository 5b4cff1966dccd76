"""SSML, as far as it can be kept in full: XML without a document type, read by expat within named bounds.

Pure, any thread; linear in the text. Nothing is fetched, nothing is expanded but the five entities of XML and
character references: a text with a document type is refused before expat sees it. Neighbours: `parse` above;
`ssml_elements` says what elements mean, `writer` puts the document together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from xml.parsers import expat

from edged.errors import BadMarkup, RequestError, did_you_mean
from edged.text.document import PLAIN, Boundary, Document, Language, Pause, Style, Words
from edged.text.markup import ssml_elements as elements
from edged.text.markup.place import bad_markup, placed, short
from edged.text.markup.ssml_elements import Attributes
from edged.text.markup.ssml_faults import explained
from edged.text.markup.writer import Writer, squeezed

DEPTH = 32
ELEMENTS = 2_000
ATTRIBUTES = 16
VALUE_CHARS = 1_000  # of an attribute, and of text in an element that tells how it is read
SILENCE_S = 600.0  # all breaks of a text together

_SSML = "http://www.w3.org/2001/10/synthesis"
_PREFIXED = {
    "http://www.w3.org/XML/1998/namespace": "xml:",
    "http://www.w3.org/2001/XMLSchema-instance": "xsi:",
}
_FIRST = 4_096  # bytes
_BETWEEN = "\n"  # namespace and name as expat joins them; neither can hold one
_PROLOG = re.compile(r"\ufeff?(?:[ \t\r\n]+|<\?.*?\?>|<!--.*?-->)*", re.DOTALL)


def parse(text: str, voice: Callable[[str], object] | None = None) -> Document:
    """What an SSML document says. Raises `BadMarkup`, and with its place what `voice` does for a name."""
    return _Reader(text, voice).read()


@dataclass(frozen=True, slots=True)
class _Open:
    """An element that has not ended. words: of one that tells how the text alone in it is read."""

    name: str
    at: int  # bytes
    style: Style
    words: Words | None = None


class _Reader:
    """One text; its methods are what expat calls."""

    def __init__(self, text: str, voice: Callable[[str], object] | None) -> None:
        self._text = text
        self._voice = voice
        self._bytes = b""
        self._writer = Writer()
        self._open: list[_Open] = []
        self._inner: list[str] = []  # the text of an element that tells how it is read
        self._elements = 0
        self._silence_s = 0.0
        self._namespaces = 0  # declared by the tag that comes next
        self._language: Language | None = None

    def read(self) -> Document:
        try:
            self._bytes = self._text.encode()
        except UnicodeEncodeError as error:
            what = "half of a surrogate pair is no character"
            raise bad_markup(self._text, error.start, what) from None
        prolog = _PROLOG.match(self._text)
        end = prolog.end() if prolog else 0
        if self._text.startswith("<!DOCTYPE", end):
            raise bad_markup(self._text, end, "a document type is not taken", "leave <!DOCTYPE ...> out")
        parser = expat.ParserCreate("utf-8", _BETWEEN)
        parser.ordered_attributes = True
        parser.buffer_text = True
        parser.StartNamespaceDeclHandler = self._on_namespace
        parser.StartElementHandler = self._on_start
        parser.EndElementHandler = self._on_end
        parser.CharacterDataHandler = self._on_text
        parser.ProcessingInstructionHandler = self._on_instruction
        self._parser = parser
        try:
            for start, end in _stretches(len(self._bytes)):
                parser.Parse(self._bytes[start:end], end == len(self._bytes))
        except expat.ExpatError as error:
            at = self._index(parser.ErrorByteIndex)
            unclosed = [(outer.name, self._index(outer.at)) for outer in self._open[-1:]]
            raise explained(self._text, at, error.code, *unclosed) from None
        finally:
            del self._parser  # which refers to this object in turn
        return _in_language(self._writer.document(), self._language)

    def _index(self, place: int) -> int:
        """The character at a byte: expat counts bytes."""
        return len(self._bytes[: max(place, 0)].decode(errors="ignore"))

    def _error(self, what: str, hint: str = "") -> BadMarkup:
        return bad_markup(self._text, self._index(self._parser.CurrentByteIndex), what, hint)

    def _on_namespace(self, prefix: str | None, uri: str | None) -> None:
        self._namespaces += 1

    def _on_instruction(self, target: str, data: str) -> None:
        raise self._error("a processing instruction is not taken", "leave <?...?> out")

    def _on_start(self, tag: str, attributes: list[str]) -> None:
        given = self._given(attributes)
        self._elements += 1
        if self._elements > ELEMENTS:
            raise self._error(f"there are more than {ELEMENTS} elements", "send the text in several requests")
        if len(self._open) == DEPTH:
            raise self._error(f"elements stand in each other more than {DEPTH} deep")
        name = self._allowed(tag)
        self._enter(name, Attributes(name, given, self._error))

    def _given(self, attributes: list[str]) -> dict[str, str]:
        """The attributes of a tag by name, when they are within the bounds."""
        count, self._namespaces = self._namespaces + len(attributes) // 2, 0
        if count > ATTRIBUTES:
            raise self._error(f"this element has more than {ATTRIBUTES} attributes")
        pairs = dict(zip(attributes[::2], attributes[1::2], strict=True))
        if any(len(value) > VALUE_CHARS for value in pairs.values()):
            raise self._error(f"an attribute of this element is longer than {VALUE_CHARS} characters")
        return {_name(key): value for key, value in pairs.items()}

    def _allowed(self, tag: str) -> str:
        """The name of an element that may stand here."""
        uri, _, name = tag.rpartition(_BETWEEN)
        if uri not in ("", _SSML):
            raise self._error(f"<{short(name)}> is of a namespace that is not taken")
        if name not in elements.NAMES:
            guess = did_you_mean(name, elements.NAMES) or f"these are: {', '.join(elements.NAMES)}"
            raise self._error(f"the element <{short(name)}> is not taken", guess)
        if (name == "speak") is bool(self._open):
            raise self._error("the whole text must stand in one <speak>")
        names = [outer.name for outer in self._open]
        if names and (names[-1] in elements.EMPTY or names[-1] in elements.READ):
            raise self._error(f"no element may stand in <{names[-1]}>")
        if name in ("p", "s") and (name in names or "s" in names):
            raise self._error(f"<{name}> may not stand in <{'s' if 's' in names else 'p'}>")
        return name

    def _enter(self, name: str, given: Attributes) -> None:
        style = self._open[-1].style if self._open else PLAIN
        words = None
        if name == "speak":
            self._language = elements.speak(given)
        elif name in elements.AROUND:
            style = elements.AROUND[name](given, style)
            if name == "voice":
                self._known(style.voice)
        elif name in elements.READ:
            words = elements.READ[name](given, style)
        elif item := elements.EMPTY[name](given):
            self._silence_s += item.seconds if isinstance(item, Pause) else 0.0
            if self._silence_s > SILENCE_S:
                raise self._error(f"the breaks come to more than {SILENCE_S:g} s")
            self._writer.put(item)
        self._bound(name)
        self._open.append(_Open(name, self._parser.CurrentByteIndex, style, words))

    def _known(self, voice: str) -> None:
        try:
            if self._voice is not None:
                self._voice(voice)
        except RequestError as error:
            at = self._index(self._parser.CurrentByteIndex)
            raise type(error)(placed(self._text, at, error.message), error.hint) from None

    def _bound(self, name: str) -> None:
        if name in ("p", "s"):
            self._writer.boundary(Boundary("paragraph" if name == "p" else "sentence"))

    def _on_text(self, data: str) -> None:
        inside = self._open[-1]
        if inside.words is not None:
            self._inner.append(data)
        elif inside.name not in elements.EMPTY:
            self._writer.text(data, inside.style)
        elif data.strip():
            what, hint = f"no text may stand in <{inside.name}>", f"write <{inside.name}/>"
            raise bad_markup(self._text, self._index(inside.at), what, hint)

    def _on_end(self, tag: str) -> None:
        ended = self._open.pop()
        self._bound(ended.name)
        if ended.words is None:
            return
        text, self._inner = squeezed("".join(self._inner)), []
        if len(text) > VALUE_CHARS:
            what = f"<{ended.name}> holds more than {VALUE_CHARS} characters"
            raise bad_markup(self._text, self._index(ended.at), what, "part it")
        if ended.name == "sub":
            self._writer.text(ended.words.text, ended.style)
        elif text or ended.words.phonemes:
            self._writer.words(replace(ended.words, text=text))
        else:
            raise bad_markup(self._text, self._index(ended.at), f"there is no text in <{ended.name}>")


def _stretches(length: int) -> Iterator[tuple[int, int]]:
    """Ranges for expat, each as long as all before it.

    A refusal stops the reading soon, and a tag that goes on over many of them, which expat may begin anew
    each time, still takes time linear in its length.
    """
    start, end = 0, min(_FIRST, length)
    yield start, end
    while end < length:
        start, end = end, min(2 * end, length)
        yield start, end


def _name(key: str) -> str:
    """An attribute's name as it is usually written."""
    uri, _, name = key.rpartition(_BETWEEN)
    return _PREFIXED.get(uri, f"{uri}:" if uri else "") + name


def _in_language(document: Document, language: Language | None) -> Document:
    """A text without a letter is of the language that the document names; others show their own."""
    words = [item for item in document if isinstance(item, Words)]
    if language is None or any(map(str.isalpha, "".join(item.text for item in words))):
        return document
    return tuple(
        replace(item, style=replace(item.style, language=item.style.language or language))
        if isinstance(item, Words)
        else item
        for item in document
    )
