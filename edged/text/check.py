"""The first look at a text: what can be spoken is kept, what has no sound is counted, the rest refused.

Pure functions, linear in the text, called on the thread that received it before a job is made, so that
a client learns at once why nothing would be heard. Neighbours: `scripts` judges characters, `markup` makes
the documents, admission calls. Reading numbers, units and abbreviations is the readers' work.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from edged.errors import EmptyText, UnspeakableText, UnsupportedText
from edged.text import shapes
from edged.text.document import Document, Item, Skipped, Words
from edged.text.scripts import EMOJI, MANY_MARKS, NAMELESS, Judge
from edged.text.span import Options
from edged.voices.api import VoiceCard

# Greek letters that stand alone are signs, of units above all; a Greek word is another language.
_GREEK = re.compile(r"(?<![\u0370-\u03ff])[\u0391-\u03a9\u03b1-\u03c9\u00b5](?![\u0370-\u03ff])")
_GREEK_WORD = re.compile(r"[\u0370-\u03ff]{2}")
_EMOJI = re.compile(shapes.EMOJI)
_MARKS = 8  # combining marks on one letter; no language has more
NAMED_AT_MOST = 5  # characters in the message of a refusal
_PLAIN = Options()
_NOTHING: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Checked:
    """A document ready to be read, and what was left out of it, in the order of its first places."""

    document: Document
    skipped: tuple[Skipped, ...]

    @property
    def count(self) -> int:
        """Characters left out."""
        return sum(one.count for one in self.skipped)


@dataclass(slots=True)
class _Tally:
    """What was seen in a document. visible: some of it could be read by an eye, at least."""

    left_out: Counter[tuple[str, str]] = field(default_factory=Counter)
    sounds: bool = False
    visible: bool = False

    def skip(self, character: str, why: str) -> None:
        self.left_out[character, why] += 1
        self.visible = self.visible or _visible(character)


def check(
    document: Document,
    languages: Sequence[str],
    options: Options = _PLAIN,
    *,
    others: Mapping[str, Sequence[str]] | None = None,
    known: frozenset[str] = _NOTHING,
) -> Checked:
    """Cleans a document for a voice of these languages (BCP 47 tags; "*" or an unknown one: any script).

    Emoji stay where the options name them and the languages have a reader; otherwise they are left out.
    others: the languages of voices that markup names. known: signs that the lexicon has words for.
    Raises `EmptyText`, `UnspeakableText` or `UnsupportedText`.
    """
    tally = _Tally()
    composed = [
        replace(item, text=_composed(item.text, tally)) if isinstance(item, Words) else item
        for item in document
    ]
    known |= _greek_signs(composed)
    judges: dict[tuple[str, ...], Judge] = {}
    foreign: dict[tuple[str, ...], dict[str, None]] = {}
    items: list[Item] = []
    for item in composed:
        if isinstance(item, Words):
            speaks = tuple((others or {}).get(item.style.voice, languages))
            if speaks not in judges:
                judges[speaks], foreign[speaks] = Judge(speaks, known), {}
            named = options.emoji == "name"
            text = "".join(_clean(item.text, judges[speaks], named, known, tally, foreign[speaks]))
            item = replace(item, text=text)
            tally.sounds = tally.sounds or item.phonemes is not None
        items.append(item)
    for speaks, characters in foreign.items():
        if characters:
            raise UnsupportedText(f"the voice speaks {', '.join(speaks)}, not: {listed(list(characters))}")
    if not tally.sounds:
        raise _silent(tally)
    skipped = tuple(Skipped(character, count, why) for (character, why), count in tally.left_out.items())
    return Checked(_stripped(items), skipped)


def speakers_of(document: Document, cards: Sequence[VoiceCard]) -> list[str]:
    """Names of the voices that could speak all of the words, whatever voices markup names."""
    words = [replace(item, text=_composed(item.text)) for item in document if isinstance(item, Words)]
    known = _greek_signs(words)
    characters = {character for item in words for character in item.text}
    found = []
    for card in cards:
        judge = Judge(card.languages, known)
        if not any(judge.of(character).foreign for character in characters):
            found.append(card.name)
    return found


def _composed(text: str, tally: _Tally | None = None) -> str:
    """With one kind of line break, and of each letter with marks the one character that stands for both."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return unicodedata.normalize("NFC", _without_towers(text, tally))


def _greek_signs(items: Sequence[Item]) -> frozenset[str]:
    """Single Greek letters of a text without Greek words: the readers of languages know the signs."""
    texts = [item.text for item in items if isinstance(item, Words)]
    if any(map(_GREEK_WORD.search, texts)):
        return _NOTHING
    return frozenset(letter for text in texts for letter in _GREEK.findall(text))


def _clean(
    text: str, judge: Judge, named: bool, known: frozenset[str], tally: _Tally, foreign: dict[str, None]
) -> Iterator[str]:
    """What is kept of a text, piece by piece. foreign: gets what is of another script."""
    if text.isascii() and text.isprintable():
        tally.sounds = tally.sounds or any(map(str.isalnum, text))
        tally.visible = tally.visible or any(map(_visible, set(text)))
        yield text
        return
    at = 0
    for emoji in _EMOJI.finditer(text) if named else ():
        yield from _judged(text[at : emoji.start()], judge, known, tally, foreign)
        at = emoji.end()
        if judge.names_emoji and shapes.emoji_name(emoji.group()):
            tally.sounds = True
            yield emoji.group()
        else:
            yield from _judged(emoji.group(), judge, known, tally, foreign, NAMELESS)
    yield from _judged(text[at:], judge, known, tally, foreign)


def _judged(
    text: str,
    judge: Judge,
    known: frozenset[str],
    tally: _Tally,
    foreign: dict[str, None],
    emoji: str = EMOJI,
) -> Iterator[str]:
    for character in text:
        verdict = judge.of(character)
        if verdict.foreign:
            foreign[character] = None
        elif verdict.why:
            tally.skip(character, emoji if verdict.why == EMOJI else verdict.why)
        elif not tally.sounds:
            tally.sounds = character.isalnum() or character in known
            tally.visible = tally.visible or _visible(character)
        yield verdict.text


def _without_towers(text: str, tally: _Tally | None = None) -> str:
    """Cuts piles of combining marks: their canonical order takes time that grows with the square."""
    if text.isascii():
        return text
    kept = []
    marks = 0
    for character in text:
        marks = marks + 1 if unicodedata.combining(character) else 0
        if marks <= _MARKS:
            kept.append(character)
        elif tally is not None:
            tally.skip(character, MANY_MARKS)
    return "".join(kept)


def _stripped(items: list[Item]) -> Document:
    """Without blanks at both ends, and without words that nothing is left of."""
    places = [place for place, item in enumerate(items) if isinstance(item, Words)]
    for place in places:
        words = items[place]
        assert isinstance(words, Words)
        text = words.text.lstrip() if place == places[0] else words.text
        items[place] = replace(words, text=text.rstrip() if place == places[-1] else text)
    return tuple(item for item in items if not isinstance(item, Words) or item.text or item.phonemes)


def _silent(tally: _Tally) -> EmptyText | UnspeakableText:
    if any(why == EMOJI for _, why in tally.left_out):
        return UnspeakableText(
            "the text has no letter and no digit", "nothing in it has a sound; emoji=name says emoji by name"
        )
    if tally.visible:
        return UnspeakableText("the text has no letter and no digit")
    return EmptyText("the text is empty")


def _visible(character: str) -> bool:
    return character.isprintable() and not character.isspace()


def listed(characters: Sequence[str]) -> str:
    """A few of the characters, for a message."""
    more = " ..." if len(characters) > NAMED_AT_MOST else ""
    return " ".join(characters[:NAMED_AT_MOST]) + more
