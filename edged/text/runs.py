"""Chinese and English in one text: which stretch is read in which language. Pure, linear.

A sentence without Han characters is English; in a sentence with some, so is a stretch of Latin letters that
is a clause: three words, or two of which one is a function word; and so is what names a place at its edge
(Gate 5, Line 3:). A name between Han characters (打开 Bluetooth 设置) is part of the Chinese, and so are the
numbers beside it; but what is English by its form is read so. Where the options name a language of
numbers, what has figures is read in that one. Neighbours: `islands`, `points` and the readers of the
languages below, frontends above.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from edged.text.document import Language
from edged.text.islands import ISLAND, labels
from edged.text.points import is_end
from edged.text.span import Options, Span, apply, settled

# A question mark between letters is a part of an address.
_SENTENCE = re.compile(
    r"(?:[^。！？!?.\n]|\.(?!\s|$)|(?<=[!-~])[!?](?=[A-Za-z0-9]))+(?:[。！？!?\n]+|\.(?=\s|$)|$)|[。！？!?.\n]+"
)
_HAN = re.compile("[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_LATIN = re.compile("[A-Za-z]")
_FIGURE = re.compile(r"\d|[²³¹¼-¾⁰-₉⅐-ↈ①-⓿]")
_WITHOUT_HAN = re.compile("[^\u2e80-\u9fff\uf900-\ufaff\uff01-\uff0f\uff1a-\uff20\U00020000-\U0003ffff]+")
# A number's unit and the parts of an address are no words.
_WORD = re.compile(r"(?<![\w@./:\-])(?<!\d )[A-Za-z]?[a-z]+(?:['’][a-z]+)?(?![\w@/:]|[.\-]\w)")
_FUNCTION_WORDS = frozenset(
    """a an the is are was were be to of for at in on and or not with from by this that it you your please do
    has have will can must if when no all""".split()
)
_BESIDE_HAN = re.compile(r"^\s?[\d.,%]*[\d%](?=\s|[,;:])")
_BESIDE_HAN_AFTER = re.compile(r"(?<=\s)[\d.,%]+$")
_WORDS_OF_A_CLAUSE = 3
# A unit beside its figures is no word: 85 °C has no language of its own.
_UNIT = re.compile(
    r"(?<=\d)\s?(?:°[CF]|[kMGmµμ]?(?:W|V|A|Hz|Pa|N|J|Wh|Ah|Ω|bar)|[kcmµμ]?m[²³23]?(?:/[hs])?|[kmµμ]?g"
    r"|m?[lL]|m?s|kWh|k?VA|min|h|rpm|dB)(?![A-Za-z])"
)
# Read in the language of the text around them, with their figures: they are words, not numbers.
_ONE_WORD = frozenset(("url", "email", "hashtag"))
_CODES = frozenset(("identifier", "acronym", "math", "width"))
# What a number is, told to a reader that does not see the words around it: words of its own language.
_AROUND: dict[Language, dict[str, tuple[str, str]]] = {
    "zh": {
        "version": ("版本", ""),
        "telephone": ("电话", ""),
        "identifier": ("编号", ""),
        "date": ("", "年"),
    },
    "en": {
        "version": ("version ", ""),
        "telephone": ("dial ", ""),
        "identifier": ("serial number ", ""),
        "date": ("in ", ""),
    },
}
_PASSES = 2
_BLANKS = re.compile(r"[^\S\n]*")
_GOES_ON = " a"  # behind a point that ends no sentence


class Reader(Protocol):
    """A language: the spans of a text that are read otherwise than they are written, ascending."""

    def spans(self, text: str, options: Options) -> list[Span]: ...


@dataclass(frozen=True, slots=True)
class Run:
    """A stretch [start, end) of one language."""

    start: int
    end: int
    language: Language


def runs(text: str, default: Language = "zh") -> list[Run]:
    """Runs that cover the text. default: of a text that has no letters at all."""
    if not _HAN.search(text):
        return [Run(0, len(text), "en" if _LATIN.search(_UNIT.sub("", text)) else default)] if text else []
    made: list[Run] = []
    for start, end in _sentences(text):
        for run in _of_sentence(text, start, end, made[-1].language if made else "zh"):
            if made and made[-1].language == run.language:
                made[-1] = Run(made[-1].start, run.end, run.language)
            else:
                made.append(run)
    return made


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    """A point of an abbreviation ends none."""
    start = 0
    for sentence in _SENTENCE.finditer(text):
        end = sentence.end()
        after = _BLANKS.match(text, end)
        goes_on = text[end - 1] == "." and after is not None and end < after.end() < len(text)
        if after and goes_on and not is_end(text, start, end - 1, after.end()):
            continue
        yield start, end
        start = end
    if start < len(text):
        yield start, len(text)


def _of_sentence(text: str, start: int, end: int, before: Language) -> Iterator[Run]:
    if not _HAN.search(text, start, end):
        yield Run(start, end, "en" if _WORD.search(text, start, end) else before)
        return
    clauses = [
        _trimmed(found, text)
        for found in _WITHOUT_HAN.finditer(text, start, end)
        if _is_clause(found.group())
    ]
    named = [
        label for label in labels(text, start, end) if all(label[1] <= a or b <= label[0] for a, b in clauses)
    ]
    place = start
    for first, last in sorted(clauses + named):
        if place < first:
            yield Run(place, first, "zh")
        yield Run(first, last, "en")
        place = last
    if place < end:
        yield Run(place, end, "zh")


def _is_clause(stretch: str) -> bool:
    words = [match.group().lower() for match in _WORD.finditer(stretch)]
    return len(words) >= _WORDS_OF_A_CLAUSE or (
        len(words) == _WORDS_OF_A_CLAUSE - 1 and not _FUNCTION_WORDS.isdisjoint(words)
    )


def _trimmed(stretch: re.Match[str], text: str) -> tuple[int, int]:
    """Without blanks at its ends, and without numbers that touch a Han character."""
    written = stretch.group()
    first, last = stretch.span()
    if first > 0 and _HAN.match(text, first - 1) and (number := _BESIDE_HAN.match(written)):
        first += number.end()
    if _HAN.match(text, last) and (number := _BESIDE_HAN_AFTER.search(written)):
        last -= len(number.group())
    while first < last and text[first].isspace():
        first += 1
    while last > first and text[last - 1].isspace():
        last -= 1
    return first, last


class MixedReader:
    """Implements `Reader` for texts of several languages. One object may serve any thread."""

    def __init__(self, readers: Mapping[Language, Reader], default: Language = "zh") -> None:
        self._readers = dict(readers)
        self._default = default

    def spans(self, text: str, options: Options) -> list[Span]:
        """Of a text that has no letters, `options.language` decides, then the default of this reader."""
        if _HAN.search(text) and _LATIN.search(text):  # what was read may show another language around it
            return settled(text, lambda part: self._once(part, options), _PASSES)
        return self._once(text, options)

    def read(self, text: str, options: Options | None = None) -> str:
        """The text as it is said."""
        return apply(text, self.spans(text, options or Options()))

    def spans_of(self, text: str, language: Language, options: Options) -> list[Span]:
        """Of a text that is one run. A language without a reader is left as it is written."""
        reader = self._readers.get(language)
        if reader is None or not text:
            return []
        spans = reader.spans(text, options)
        if language == "zh" and options.numbers != "zh" and "en" in self._readers:
            spans = self._with_islands(text, spans, options)
        if options.numbers in ("auto", language) or options.numbers not in self._readers:
            return spans
        return [self._in_language(text, span, options, options.numbers) for span in spans]

    def _once(self, text: str, options: Options) -> list[Span]:
        made: list[Span] = []
        for run in runs(text, options.language or self._default):
            for span in self.spans_of(text[run.start : run.end], run.language, options):
                made.append(Span(run.start + span.start, run.start + span.end, span.spoken, span.kind))
        return made

    def _with_islands(self, text: str, spans: list[Span], options: Options) -> list[Span]:
        """What is English by its form, read so inside Chinese."""
        kept: list[Span] = []
        at = 0
        for island in ISLAND.finditer(text) if _LATIN.search(text) else ():
            start, end = island.span()
            while at < len(spans) and spans[at].end <= start:
                kept.append(spans[at])
                at += 1
            after = at
            while after < len(spans) and spans[after].start < end:
                after += 1
            inside = spans[at:after]
            if inside and (inside[0].start < start or inside[-1].end > end):
                continue
            at = after
            written = island.group() + (_GOES_ON if text[end - 1] == "." else "")
            told = self._readers["en"].spans(written, options)
            kept += (
                replace(s, start=s.start + start, end=s.end + start) for s in told if s.end <= end - start
            )
        return [*kept, *spans[at:]]

    def _in_language(self, text: str, span: Span, options: Options, language: Language) -> Span:
        """The span read in that language if it has figures and is no word that has some."""
        written = text[span.start : span.end]
        if not _FIGURE.search(written) or _is_one_word(written, span.kind):
            return span
        reader = self._readers[language]
        before, after = _AROUND[language].get(span.kind, ("", ""))
        if span.kind == "date" and not written.isdigit():  # not a year alone
            before = after = ""
        begin, end = len(before), len(before) + len(written)
        told = reader.spans(before + written + after, options)
        if any(other.start < begin or other.end > end for other in told):
            begin, told = 0, reader.spans(written, options)
        inner = [Span(other.start - begin, other.end - begin, other.spoken, other.kind) for other in told]
        return replace(span, spoken=apply(written, inner).strip())


def _is_one_word(written: str, kind: str) -> bool:
    """Whether figures stand in it as letters do: an address, or a code of letters and figures."""
    return kind in _ONE_WORD or (kind in _CODES and " " not in written and _LATIN.search(written) is not None)
