"""How a text would be spoken, told instead of spoken: what is left out, how it is read, where it is cut.

Owns the account that one explanation is gathered in, and its bounds. Text thread. Neighbours: `stage` runs
explanations between sentences, an `Explainer` fills them, the server sends them as the event `explained`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from edged.errors import EdgedError
from edged.job import Params, Utterance
from edged.text.check import Script
from edged.text.document import Skipped
from edged.text.span import Span, apply

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
    """An utterance. ids: how many of the voice's own symbols it has, and limit how many it may have at
    most. lead_s, pause_s: silence before and after it."""

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

    @property
    def full(self) -> bool:
        """Whether nothing that comes later in the text would be told."""
        return self._truncated and len(self._utterances) >= MOST

    def skip(self, skipped: Iterable[Skipped]) -> None:
        for one in skipped:
            key = (one.character, one.why)
            if key in self._skipped or self._room(self._skipped):
                self._skipped[key] = self._skipped.get(key, 0) + one.count

    def read(
        self, text: str, language: str, voice: str, spans: Sequence[Span], said: str | None = None
    ) -> None:
        """A run: a stretch of the text in one language. spans: what of it is read otherwise; said: what comes
        of that, where it is not just the spans put into it."""
        if self._room(self._runs):
            self._runs.append(Run(language, text, apply(text, spans) if said is None else said, voice))
        for span in spans:
            if not self._room(self._readings):
                return
            self._readings.append(Reading(text[span.start : span.end], span.spoken, span.kind))

    def speak(self, utterance: Utterance, said: str, language: str, limit: int) -> None:
        """limit: most symbols of an utterance, 0 where nobody says."""
        if self._room(self._utterances):
            voice = utterance.voice or self.voice
            lead_s, pause_s = utterance.lead_s, utterance.pause_s
            ids = len(utterance.symbols)
            self._utterances.append(Spoken(said, ids, limit, lead_s, pause_s, voice, language))

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


class Explainer(Protocol):
    """Goes through a text as it is prepared for speech. Text thread."""

    def __call__(self, script: Script, params: Params, account: Account) -> Iterator[object]:
        """Fills the account, lazily: a step is a sentence or so. Raises what a job of the text would."""


def _left_out(character: str, count: int, why: str) -> LeftOut:
    codepoint = " ".join(f"U+{ord(c):04X}" for c in character)
    name = unicodedata.name(character, "") if len(character) == 1 else ""
    shown = "".join(_NO_TEXT if "\ud800" <= c <= "\udfff" else c for c in character)
    return LeftOut(shown, codepoint, name, count, why)
