"""How a text would be spoken, told instead of spoken: what is left out, how it is read, where it is cut.

Owns the account that one explanation is gathered in, and its bounds. Text thread. Neighbours: `stage` runs
explanations between sentences, `explainer` fills them, the server sends them as the event `explained`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from edged.errors import EdgedError
from edged.text.document import Said, Skipped
from edged.text.script import Prepared
from edged.text.shown import Shown
from edged.text.span import Span

MOST = 2_000  # entries of each list
_NO_TEXT = "\ufffd"  # stands for an unpaired surrogate, which JSON cannot carry


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A character that is not spoken. codepoint: such as U+1F680. name: its Unicode name, "" for none."""

    character: str
    codepoint: str
    name: str
    count: int
    why: str


@dataclass(frozen=True, slots=True)
class Run:
    """A stretch that is read in one language by one voice. language: "" where it is not known.

    said: the stretch in words.
    """

    language: str
    text: str
    said: str
    voice: str


@dataclass(frozen=True, slots=True)
class Reading:
    """A figure, a sign or a word that is read otherwise than it is written. kind: as in `span.KINDS`."""

    written: str
    spoken: str
    kind: str


@dataclass(frozen=True, slots=True)
class Spoken:
    """An utterance. said: its words; "" where a sentence was cut, this goes on with it, and the voice cannot
    tell with which of its words. ids: how many of the voice's own symbols it has, and limit how many it may
    have at most. lead_s, pause_s: silence before and after it."""

    said: str
    ids: int
    limit: int
    lead_s: float
    pause_s: float
    voice: str
    language: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """Of one text. voice, languages: of the request. truncated: the text has more than what is told."""

    voice: str
    languages: Sequence[str]
    skipped: Sequence[LeftOut]
    runs: Sequence[Run]
    readings: Sequence[Reading]
    utterances: Sequence[Spoken]
    warnings: Sequence[str]
    truncated: bool


@dataclass(slots=True)
class Account:
    """Gathers an explanation; what is beyond `MOST` entries of a kind is not taken. voice, languages: of the
    request."""

    voice: str
    languages: Sequence[str]
    _skipped: dict[tuple[str, str], int] = field(default_factory=dict)
    _runs: list[Run] = field(default_factory=list)
    _readings: list[Reading] = field(default_factory=list)
    _utterances: list[Spoken] = field(default_factory=list)
    _warnings: list[str] = field(default_factory=list)
    _truncated: bool = False
    _sentence: tuple[Sequence[Said], Shown] | None = None  # the last one

    @property
    def full(self) -> bool:
        """Whether nothing that comes later in the text would be told."""
        return self._truncated and len(self._utterances) >= MOST

    def skip(self, skipped: Iterable[Skipped]) -> None:
        for one in skipped:
            key = (one.character, one.why)
            if key in self._skipped or self._room(self._skipped):
                self._skipped[key] = self._skipped.get(key, 0) + one.count

    def read(self, text: str, language: str, voice: str, spans: Sequence[Span], said: str) -> None:
        """A run: a stretch of the text in one language. spans: what of it is read otherwise; said: what comes
        of it."""
        if self._room(self._runs):
            self._runs.append(Run(language, text, said, voice))
        for span in spans:
            if not self._room(self._readings):
                return
            self._readings.append(Reading(text[span.start : span.end], span.spoken, span.kind))

    def speak(self, prepared: Prepared, language: str) -> None:
        utterance = prepared.utterance
        if self._room(self._utterances):
            if self._sentence is None or self._sentence[0] is not prepared.said:
                self._sentence = prepared.said, Shown(prepared.said)
            shown = self._sentence[1]
            if prepared.letters is not None:
                said = shown.between(*prepared.letters)
            else:  # the words of the whole sentence stand with its first part
                said = "" if prepared.goes_on else shown.text
            self._utterances.append(
                Spoken(
                    " ".join(said.split()),
                    prepared.ids,
                    prepared.limit,
                    utterance.lead_s,
                    round(utterance.pause_s, 3),
                    utterance.voice or self.voice,
                    language,
                )
            )

    def warn(self, warning: str) -> None:
        if warning not in self._warnings and self._room(self._warnings):
            self._warnings.append(warning)

    def told(self) -> Explanation:
        left_out = [_left_out(character, count, why) for (character, why), count in self._skipped.items()]
        return Explanation(
            self.voice,
            self.languages,
            left_out,
            self._runs,
            self._readings,
            self._utterances,
            self._warnings,
            self._truncated,
        )

    def _room(self, entries: Sequence[object] | dict[tuple[str, str], int]) -> bool:
        if len(entries) < MOST:
            return True
        self._truncated = True
        return False


Told = Callable[[Explanation | EdgedError], None]  # who gets an explanation, or why there is none


def _left_out(character: str, count: int, why: str) -> LeftOut:
    codepoint = " ".join(f"U+{ord(c):04X}" for c in character)
    name = unicodedata.name(character, "") if len(character) == 1 else ""
    shown = "".join(_NO_TEXT if "\ud800" <= c <= "\udfff" else c for c in character)
    return LeftOut(shown, codepoint, name, count, why)
