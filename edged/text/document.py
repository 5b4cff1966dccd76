"""A text with what its markup says about it: the common form of plain text, SSML and ChatTTS's own tokens.

Leaf module, frozen data, any thread. Neighbours: `markup` makes documents, `check` looks at their words,
`reading` puts them into words of a language, `split` and `prepare` make utterances of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

from edged.controls import Spoken

Language = Spoken
Alphabet = Literal["ipa", "pinyin"]
LANGUAGES: tuple[Language, ...] = get_args(Language)
ANY = "*"  # in the place of a tag: a voice of every language, which no reader reads to
SAY_AS = ("cardinal", "ordinal", "digits", "characters", "date", "time", "telephone", "unit")


@dataclass(frozen=True, slots=True)
class Style:
    """How a stretch is spoken, as far as markup says.

    language: "" where the text itself tells. voice: "" for the one of the request. speed, volume: factors on
    those of the request. pitch: semitones up.
    """

    language: Language | Literal[""] = ""
    voice: str = ""
    speed: float = 1.0
    volume: float = 1.0
    pitch: float = 0.0


PLAIN = Style()


@dataclass(frozen=True, slots=True)
class Phonemes:
    """How a stretch sounds. symbols: IPA, or pinyin with tone numbers, a syllable a word (hang2 ye4)."""

    alphabet: Alphabet
    symbols: str


@dataclass(frozen=True, slots=True)
class Words:
    """A stretch of text. say_as: one of `SAY_AS` with its detail (a date's order, say), "" for as usual.

    phonemes: how it sounds whatever it says; its text is then what people read.
    """

    text: str
    style: Style = PLAIN
    say_as: str = ""
    detail: str = ""
    phonemes: Phonemes | None = None


@dataclass(frozen=True, slots=True)
class Pause:
    """Silence that was asked for, in seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Mark:
    """A place whose time is told to the client."""

    name: str


@dataclass(frozen=True, slots=True)
class Tag:
    """A token of the model itself that stands between words: uv_break, lbreak, laugh."""

    name: str


@dataclass(frozen=True, slots=True)
class Boundary:
    """Where markup says that a sentence or a paragraph begins or ends."""

    kind: Literal["sentence", "paragraph"]


Item = Words | Pause | Mark | Tag | Boundary
Document = tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Said:
    """A stretch in words of one language: what a voice's frontend gets. "" where no language is known.

    read: whether a reader put it into words, so that a lone A is the letter. phonemes: only of an alphabet
    that the voice takes; tag: a token of the model, and then no text.
    """

    text: str
    language: Language | Literal[""] = ""
    style: Style = PLAIN
    read: bool = False
    phonemes: Phonemes | None = None
    tag: str = ""


@dataclass(frozen=True, slots=True)
class Skipped:
    """Characters of one kind that are not spoken. why: in plain words, such as "a control character"."""

    character: str
    count: int
    why: str


@dataclass(frozen=True, slots=True)
class Encoded:
    """What a voice makes of words: its ids, and how good a place after each is to cut.

    breaks: 3 after a sentence, 2 after a clause or a mark, 1 between words, 0 inside a word. lost:
    characters that the voice has no sound for. letters: how many letters and digits of the text each id and
    those before it stand for; empty where the voice cannot tell.
    """

    ids: tuple[int, ...]
    breaks: tuple[int, ...]
    lost: tuple[str, ...] = ()
    letters: tuple[int, ...] = ()


def primary(tag: str) -> str:
    """The language of a BCP 47 tag: en of en-US."""
    return tag.partition("-")[0].lower()


def speaks(tags: Iterable[str], language: str) -> bool:
    """Whether a voice of these tags has a language; `ANY` is every language."""
    return any(tag == ANY or primary(tag) == language for tag in tags)
