"""One text on its way to utterances: sentence by sentence, with the pauses and marks between them.

Text thread. Owns what is known of a text so far; no step takes longer than its own stretch of it.
Neighbours: `prepare` makes one for each text; `split`, `reading` and a voice's frontend do the work, `heard`
keeps what was read until its sentence is spoken.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Literal

from edged.controls import PITCHES, SPEEDS
from edged.errors import UnspeakableText
from edged.job import Params, Utterance
from edged.text.blocks import blocks, cut
from edged.text.check import NAMED_AT_MOST, listed
from edged.text.document import (
    PLAIN,
    Boundary,
    Document,
    Language,
    Mark,
    Pause,
    Said,
    Skipped,
    Style,
    Tag,
    Words,
)
from edged.text.heard import Heard, Part, Parts, groups, seen, whole
from edged.text.reading import Listener, Readings, Stretch, languages
from edged.text.script import Prepared
from edged.text.span import Options
from edged.text.split import sentences
from edged.voices.api import Frontend

PASSAGE = 20_000  # characters in which sentences are looked for at once
BLOCK = 600  # of a sentence, read and encoded at once: some 10 ms of work where it is all figures
_LOST = "a character that the voice has no sound for"


@dataclass(slots=True, eq=False)
class Passage:
    """One text on its way. buffer: what is not cut into sentences yet; held: the last utterance, until it is
    known whether another one follows; natural_s, asked_s: silence behind it of its own accord, and as markup
    says; language: of the last words; lost: what the voice has no sound for, as much as a message names."""

    frontends: Mapping[str, Frontend]
    readings: Readings
    options: Options
    voice: str
    params: Params
    buffer: list[Words | Tag] = field(default_factory=list)
    language: Language | Literal[""] = ""
    held: Prepared | None = None
    natural_s: float = 0.0
    asked_s: float = 0.0
    marks: list[str] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    lost: dict[str, None] = field(default_factory=dict)
    index: int = 0
    fresh: int = 0  # characters of the buffer in which sentences were not looked for

    def steps(self, document: Document) -> Iterator[Stretch | Prepared]:
        """Raises `UnspeakableText` of a text that comes to nothing."""
        for item in document:
            if isinstance(item, Words):
                yield from self._words(item)
            elif isinstance(item, Tag):
                self.buffer.append(item)
                self.fresh += 1
            else:
                yield from self._sentences(last=True)
                self._between(item)
        yield from self._sentences(last=True)
        lost = f"the voice has no sound for: {listed(list(self.lost))}" if self.lost else ""
        if self.held is None:
            raise UnspeakableText("the text has nothing to speak", lost or None)
        if lost:
            self.warnings.append(f"left out: {lost}")
        # Silence of its own accord would only delay the end.
        last = replace(self.held.utterance, pause_s=self.asked_s, marks_after=tuple(self.marks))
        yield self._ended(self.held, last)

    def _between(self, item: Boundary | Mark | Pause) -> None:
        if isinstance(item, Pause):
            self.asked_s += item.seconds
        elif isinstance(item, Mark):
            self.marks.append(item.name)
        elif item.kind == "paragraph":
            self.natural_s = max(self.natural_s, self.frontends[self.voice].pauses.after("paragraph"))

    # -- sentences ------------------------------------------------------------------------------

    def _words(self, words: Words) -> Iterator[Stretch | Prepared]:
        before = next((item for item in reversed(self.buffer) if isinstance(item, Words)), words)
        if _kept(before.style) != _kept(words.style):
            yield from self._sentences(last=True)
        for start, end in [(0, len(words.text))] if whole(words) else blocks(words.text, PASSAGE):
            self.buffer.append(words if whole(words) else replace(words, text=words.text[start:end]))
            self.fresh += max(1, end - start)
            if self.fresh >= PASSAGE:
                yield from self._sentences(last=False)
            if self.fresh >= PASSAGE:  # no sentence ends in it
                yield from self._sentences(last=True)

    def _sentences(self, last: bool) -> Iterator[Stretch | Prepared]:
        """Speaks the sentences of the buffer; the last one only when nothing can follow in it."""
        if not self.buffer:
            return
        voice = next((w.style.voice for w in self.buffer if isinstance(w, Words)), "") or self.voice
        listener = self._listener(voice)
        text = "".join(map(seen, self.buffer))
        parts = Parts(self.buffer, languages(text, listener, self.options, self.language))
        for group in groups(sentences(text), last):
            for _ in parts.until(group[0].start):
                pass  # blanks
            heard = yield from self._read(parts.until(group[-1].end), listener)
            for sentence in group:
                yield from self._spoken(heard.until(sentence.end))
                pause_s = self.frontends[voice].pauses.after(sentence.ending)
                self.natural_s = max(self.natural_s, pause_s)
        self.buffer = [] if last else parts.rest()
        self.fresh = sum(len(seen(item)) for item in self.buffer)

    def _read(self, items: Iterable[Part], listener: Listener) -> Generator[Stretch | Prepared, None, Heard]:
        """Puts parts into words. Of a sentence that is longer than any should be, what can be is spoken."""
        heard = Heard()
        waiting = 0
        for part, language, at in items:
            if isinstance(part, Tag):
                heard.add(listener.name, Said("", tag=part.name), at, at + 1)
                continue
            for start, end in [(0, len(part.text))] if whole(part) else blocks(part.text, BLOCK):
                if waiting + end - start > BLOCK:
                    yield from self._spoken(heard.until(at + start))
                    waiting = 0
                words = replace(part, text=part.text[start:end])
                stretch = self.readings.read(words, part.style.language or language, listener, self.options)
                self.language = stretch.language
                self.skipped += stretch.skipped
                self.warnings += stretch.warnings
                for said, (first, last) in zip(stretch.said, stretch.places, strict=True):
                    heard.add(stretch.voice, said, at + start + first, at + start + last)
                    waiting += len(said.text)
                yield stretch
        return heard

    def _spoken(self, said: list[tuple[str, Said]]) -> Iterator[Prepared]:
        for (voice, _), group in groupby(said, key=self._speaker):
            yield from self._utterances(voice, [part for _, part in group])

    def _speaker(self, part: tuple[str, Said]) -> tuple[str, str]:
        """Who speaks it, and in which language where that makes a difference to how it is drawn."""
        voice, said = part
        return voice, said.language if self.params.languages else ""

    def _listener(self, voice: str) -> Listener:
        frontend = self.frontends[voice]
        return Listener(voice, frontend.languages, frontend.alphabets, self.params.run_voices)

    # -- utterances -----------------------------------------------------------------------------

    def _utterances(self, voice: str, said: list[Said]) -> Iterator[Prepared]:
        frontend = self.frontends[voice]
        style = next((part.style for part in said if not part.tag), PLAIN)
        params = self._params(style, said)
        encoded = frontend.encode(said)
        limit = frontend.limit(params)
        for character in encoded.lost:
            self.skipped.append(Skipped(character, 1, _LOST))
            if len(self.lost) <= NAMED_AT_MOST:
                self.lost[character] = None
        for start, end in cut(encoded.breaks, limit):
            made = frontend.utterance(self.index, encoded.ids[start:end], params)
            if made is None:
                continue
            yield from self._release()
            utterance = replace(
                made,
                lead_s=self.asked_s,  # only before the first one is there any left
                marks=tuple(self.marks),
                voice="" if voice == self.voice else voice,
                params=None if params == self.params else params,
                gain=style.volume,
            )
            spoken = _letters(encoded.letters, start, end)
            self.held = Prepared(utterance, tuple(said), end - start, limit, start > 0, spoken)
            self.marks, self.asked_s, self.natural_s = [], 0.0, 0.0
            self.index += 1

    def _params(self, style: Style, said: list[Said]) -> Params:
        params = self.params.of_language(language_of(said)) if self.params.languages else self.params
        if style.speed == 1.0 and style.pitch == 0.0:
            return params
        slowest, fastest = SPEEDS
        lowest, highest = PITCHES
        return replace(
            params,
            speed=min(fastest, max(slowest, params.speed * style.speed)),
            pitch=min(highest, max(lowest, params.pitch + style.pitch)),
        )

    def _release(self) -> Iterator[Prepared]:
        """The held utterance, now that another one follows."""
        if self.held is not None:
            last = self.held.utterance
            speed = (last.params or self.params).speed
            yield self._ended(self.held, replace(last, pause_s=self.asked_s or self.natural_s / speed))
            self.held, self.asked_s = None, 0.0

    def _ended(self, held: Prepared, utterance: Utterance) -> Prepared:
        skipped, self.skipped = tuple(self.skipped), []
        warnings, self.warnings = tuple(self.warnings), []
        return replace(held, utterance=utterance, skipped=skipped, warnings=warnings)


def _kept(style: Style) -> tuple[str, float, float, float]:
    """What cannot change inside an utterance."""
    return style.voice, style.speed, style.volume, style.pitch


def _letters(letters: Sequence[int], start: int, end: int) -> tuple[int, int] | None:
    """Those of a part of the ids."""
    return (letters[start - 1] if start else 0, letters[end - 1]) if letters else None


def language_of(said: Iterable[Said]) -> str:
    """The language of most of the words."""
    weights: dict[str, int] = {}
    for part in said:
        size = len(part.text) if part.language == "zh" else 3 * (part.text.count(" ") + 1)
        weights[part.language] = weights.get(part.language, 0) + size
    return max(weights, key=lambda language: weights[language], default="")
