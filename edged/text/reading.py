"""Words of a document to what is said of them: language runs, the lexicon, the readers of the languages.

Made on a loading thread; then the text thread. Neighbours: `runs` and the readers below, `lexicon` and
`phonemes` beside, `prepare` above.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from edged.text import say_as
from edged.text.document import LANGUAGES, Language, Phonemes, Said, Skipped, Words
from edged.text.lexicon.entries import Match
from edged.text.lexicon.match import Lexicon
from edged.text.phonemes.respell import missing, respell
from edged.text.phonemes.romanize import romanize
from edged.text.runs import MixedReader, runs
from edged.text.span import Options, Span, apply, pieces

ANY = "*"  # a voice of every language, which no reader reads to
SPELL = "spell"  # instead of a voice, for runs in a language that the voice does not speak

_SILENT = {"emoji": "an emoji without a sound", "markup": "markup of another kind"}


@dataclass(frozen=True, slots=True)
class Listener:
    """What a voice can be given. others: by language, who speaks what it cannot, or `SPELL`."""

    name: str
    languages: tuple[str, ...]
    alphabets: Collection[str] = ()
    others: Mapping[str, str] | None = None

    def speaks(self, language: str) -> bool:
        return any(mine == ANY or mine.partition("-")[0].lower() == language for mine in self.languages)

    @property
    def first(self) -> Language | Literal[""]:
        """The language of a text that does not show its own; "" where nothing is read."""
        known = (language.partition("-")[0].lower() for language in self.languages)
        return next((mine for name in known for mine in LANGUAGES if mine == name), "")


@dataclass(frozen=True, slots=True)
class Stretch:
    """A run of a text: in one language, by one voice. places: what of `written` each of `said` stands for,
    start and end; figures: what is read otherwise than it is written."""

    written: str
    language: Language | Literal[""]
    voice: str
    said: tuple[Said, ...]
    places: tuple[tuple[int, int], ...]
    figures: tuple[Span, ...]
    skipped: tuple[Skipped, ...]
    warnings: tuple[str, ...] = ()


class Readings:
    """The readers of a daemon. lexicon: may be replaced by another one, whole, on any thread."""

    def __init__(self, reader: MixedReader, lexicon: Lexicon | None = None) -> None:
        self._reader = reader
        self.lexicon = lexicon or Lexicon()

    def read(
        self, words: Words, language: Language | Literal[""], listener: Listener, options: Options
    ) -> Stretch:
        """Words of one language; "" where no reader reads to the voice."""
        if language:
            return self._stretch(words, language, listener, options)
        said = Said(words.text, "", words.style)
        return Stretch(words.text, "", listener.name, (said,), ((0, len(words.text)),), (), ())

    def _stretch(self, words: Words, language: Language, listener: Listener, options: Options) -> Stretch:
        other = "" if listener.speaks(language) else (listener.others or {}).get(language, "")
        voice = listener.name if other in ("", SPELL) else other
        heard = _Heard(words, language, [], [], [], [])
        if words.phonemes is not None:
            heard.sounding(words.text, words.phonemes, (0, len(words.text)), listener)
        elif words.say_as:
            text = say_as.put(words.text, words.say_as, words.detail, language)
            text = apply(text, self._reader.spans_of(text, language, options))
            heard.whole(Said(text, language, words.style, read=True))
        else:
            at = 0
            for found in self.lexicon.matches(words.text, language, voice):
                self._plain(heard, at, found.start, options)
                heard.known(found, listener)
                at = found.end
            self._plain(heard, at, len(words.text), options)
        said = heard.said
        if other == SPELL:
            said = [_spelled(part, language, listener) for part in said]
        return Stretch(
            words.text,
            language,
            voice,
            tuple(said),
            tuple(heard.places),
            tuple(heard.figures),
            heard.skipped,
            tuple(heard.warnings),
        )

    def _plain(self, heard: _Heard, start: int, end: int, options: Options) -> None:
        text = heard.words.text[start:end]
        if text:
            heard.plain(text, start, self._reader.spans_of(text, heard.language, options))


@dataclass(slots=True, eq=False)
class _Heard:
    """What is heard of words, in the making."""

    words: Words
    language: Language
    said: list[Said]
    places: list[tuple[int, int]]
    figures: list[Span]
    warnings: list[str]

    def whole(self, said: Said) -> None:
        self.said.append(said)
        self.places.append((0, len(self.words.text)))

    def known(self, found: Match, listener: Listener) -> None:
        """A stretch of the lexicon."""
        place = found.start, found.end
        if found.phonemes is not None:
            self.sounding(self.words.text[found.start : found.end], found.phonemes, place, listener)
        else:
            self.said.append(Said(found.said, self.language, self.words.style, read=True))
            self.places.append(place)
        self.figures.append(Span(*place, self.said[-1].text, "lexicon"))

    def sounding(self, written: str, phonemes: Phonemes, place: tuple[int, int], listener: Listener) -> None:
        """A stretch by how it sounds; for a voice that takes no phonemes spelled so that it sounds like
        that."""
        self.places.append(place)
        style = self.words.style
        if phonemes.alphabet in listener.alphabets:
            self.said.append(Said(written, self.language, style, read=True, phonemes=phonemes))
            return
        self.said.append(Said(respell(phonemes, self.language), self.language, style, read=True))
        if lacking := missing(phonemes, self.language):
            self.warnings.append(f"said in another tone, for want of a character: {' '.join(lacking)}")

    def plain(self, text: str, at: int, spans: Sequence[Span]) -> None:
        """A stretch from `at`, with what was read in it."""
        starts = {span.start for span in spans}
        for start, end, gap, spoken in pieces(text, spans):
            if spoken:
                read = start in starts
                self.said.append(Said(gap + spoken, self.language, self.words.style, read=read))
                self.places.append((start + at, end + at))
        self.figures += [replace(span, start=span.start + at, end=span.end + at) for span in spans]

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        return tuple(
            Skipped(character, 1, _SILENT.get(span.kind, "a sign without a sound"))
            for span in self.figures
            if not span.spoken
            for character in self.words.text[span.start : span.end]
            if not character.isspace()
        )


def languages(
    text: str, listener: Listener, options: Options, before: Language | Literal[""]
) -> list[tuple[int, int, Language | Literal[""]]]:
    """The runs of a text, which cover it: start, end, language. before: of the text before it."""
    if not listener.first:
        return [(0, len(text), "")]
    default = before or options.language or listener.first
    return [(run.start, run.end, run.language) for run in runs(text, default)]


def _spelled(part: Said, language: Language, listener: Listener) -> Said:
    """As a voice of another language can say it: Chinese by its sounds, English by its letters."""
    first = listener.first
    text = romanize(part.text) if language == "zh" else " ".join(filter(str.isalpha, part.text.upper()))
    return replace(part, text=f" {text} ", language=first, phonemes=None)
