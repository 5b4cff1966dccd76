"""Words of a document to what is said of them: language runs, the lexicon, the readers of the languages.

Made on a loading thread; then the text thread. Neighbours: `runs` and the readers below, `lexicon` and
`phonemes` beside, `prepare` above.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from edged.controls import SPELL
from edged.text import say_as
from edged.text.around import around
from edged.text.document import LANGUAGES, Language, Phonemes, Said, Skipped, Words, primary, speaks
from edged.text.lexicon.entries import Match
from edged.text.lexicon.match import Lexicon
from edged.text.phonemes.respell import missing, respell
from edged.text.phonemes.romanize import romanize
from edged.text.runs import MixedReader, runs
from edged.text.span import Options, Span, apply, pieces

_PLAIN_WORDS = re.compile(r"[^\W\d_]+(?:[ '’,-]+[^\W\d_]+)*")  # nothing in it is read otherwise
_SILENT = {"emoji": "an emoji without a sound", "markup": "markup of another kind"}


@dataclass(frozen=True, slots=True)
class Listener:
    """What a voice can be given. others: by language, who speaks what it cannot, or `SPELL`."""

    name: str
    languages: tuple[str, ...]
    alphabets: Collection[str] = ()
    others: Mapping[str, str] | None = None

    def speaks(self, language: str) -> bool:
        return speaks(self.languages, language)

    @property
    def first(self) -> Language | Literal[""]:
        """The language of a text that does not show its own; "" where nothing is read."""
        known = map(primary, self.languages)
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
            text = heard.sound(words.text, words.phonemes, listener)
            heard.whole(heard.sounding(text, words.phonemes, listener))
        elif words.say_as:
            text = say_as.put(words.text, words.say_as, words.detail, language)
            text = apply(text, self._reader.spans_of(text, language, options))
            heard.whole(Said(text, language, words.style, read=True))
        else:
            known = {m.start: m for m in self.lexicon.matches(words.text, language, voice)}
            said_so = [self._known(match, heard, listener, options) for match in known.values()]
            spans = around(words.text, said_so, lambda text: self._reader.spans_of(text, language, options))
            heard.plain(spans, known, listener)
            heard.leave_out(self.lexicon.signs)
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

    def _known(self, found: Match, heard: _Heard, listener: Listener, options: Options) -> Span:
        """What an entry says; figures in it are read as others are."""
        said = found.said
        if found.phonemes is not None:
            said = heard.sound(heard.words.text[found.start : found.end], found.phonemes, listener)
        elif not _PLAIN_WORDS.fullmatch(said):
            said = apply(said, self._reader.spans_of(said, found.language, options))
        return Span(found.start, found.end, said, "lexicon")


@dataclass(slots=True, eq=False)
class _Heard:
    """What is heard of words, in the making."""

    words: Words
    language: Language
    said: list[Said]
    places: list[tuple[int, int]]
    figures: list[Span]
    warnings: list[str]
    silent: list[Skipped] = field(default_factory=list)

    def whole(self, said: Said) -> None:
        self.said.append(said)
        self.places.append((0, len(self.words.text)))

    def sound(self, written: str, phonemes: Phonemes, listener: Listener) -> str:
        """The text of what is said by how it sounds: for a voice that takes no phonemes spelled so that it
        sounds like that."""
        if phonemes.alphabet in listener.alphabets:
            return written
        if lacking := missing(phonemes, self.language):
            self.warnings.append(f"said in another tone, for want of a character: {' '.join(lacking)}")
        return respell(phonemes, self.language)

    def sounding(self, text: str, phonemes: Phonemes | None, listener: Listener) -> Said:
        """What was put into words, with how it sounds where the voice takes that."""
        taken = phonemes if phonemes and phonemes.alphabet in listener.alphabets else None
        return Said(text, self.language, self.words.style, read=True, phonemes=taken)

    def plain(self, spans: Sequence[Span], known: Mapping[int, Match], listener: Listener) -> None:
        """The words with what was read in them. known: by its place what the lexicon said."""
        starts = {span.start for span in spans}
        for start, end, gap, spoken in pieces(self.words.text, spans):
            if not spoken:
                continue
            if start in known:
                self.said.append(self.sounding(gap + spoken, known[start].phonemes, listener))
            else:
                read = start in starts
                self.said.append(Said(gap + spoken, self.language, self.words.style, read=read))
            self.places.append((start, end))
        self.figures += spans

    def leave_out(self, signs: Collection[str]) -> None:
        """Signs that were kept for the lexicon, where it has no word for them after all: in this language, or
        for this voice."""
        for place, part in enumerate(self.said if signs else ()):
            unsaid = [] if part.read else [c for c in part.text if c in signs and not c.isascii()]
            self.silent += (Skipped(c, 1, "a symbol without a sound") for c in unsaid)
            if unsaid:
                text = "".join(" " if c in unsaid else c for c in part.text)
                self.said[place] = replace(part, text=text)

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        unread = (
            Skipped(character, 1, _SILENT.get(span.kind, "a sign without a sound"))
            for span in self.figures
            if not span.spoken
            for character in self.words.text[span.start : span.end]
            if not character.isspace()
        )
        return *unread, *self.silent


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
