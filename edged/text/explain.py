"""How a text would be spoken, told instead of spoken: what is left out, how it is read, where it is cut.

Owns the account that one explanation is gathered in, and its bounds. Text thread. Neighbours: `stage` runs
explanations between sentences, `explainer` fills them, the server sends them as the event `explained`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from edged.errors import EdgedError
from edged.explained import ReadingInfo, RunInfo, SkippedInfo, UtteranceInfo
from edged.text.document import Said, Skipped
from edged.text.script import Prepared
from edged.text.shown import Shown
from edged.text.span import Span

MOST = 2_000  # entries of each list
_NO_TEXT = "\ufffd"  # stands for an unpaired surrogate, which JSON cannot carry


@dataclass(frozen=True, slots=True)
class Explanation:
    """Of one text. voice, languages: of the request. truncated: the text has more than what is told."""

    voice: str
    languages: Sequence[str]
    skipped: Sequence[SkippedInfo]
    runs: Sequence[RunInfo]
    readings: Sequence[ReadingInfo]
    utterances: Sequence[UtteranceInfo]
    warnings: Sequence[str]
    truncated: bool


@dataclass(slots=True)
class Account:
    """Gathers an explanation; what is beyond `MOST` entries of a kind is not taken. voice, languages: of the
    request."""

    voice: str
    languages: Sequence[str]
    _skipped: dict[tuple[str, str], int] = field(default_factory=dict)
    _runs: list[RunInfo] = field(default_factory=list)
    _readings: list[ReadingInfo] = field(default_factory=list)
    _utterances: list[UtteranceInfo] = field(default_factory=list)
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
            self._runs.append(RunInfo(language=language, text=text, said=said, voice=voice))
        for span in spans:
            if not self._room(self._readings):
                return
            written = text[span.start : span.end]
            self._readings.append(ReadingInfo(written=written, spoken=span.spoken, kind=span.kind))

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
                UtteranceInfo(
                    said=" ".join(said.split()),
                    ids=prepared.ids,
                    limit=prepared.limit,
                    lead_s=utterance.lead_s,
                    pause_s=round(utterance.pause_s, 3),
                    voice=utterance.voice or self.voice,
                    language=language,
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


def _left_out(character: str, count: int, why: str) -> SkippedInfo:
    codepoint = " ".join(f"U+{ord(c):04X}" for c in character)
    name = unicodedata.name(character, "") if len(character) == 1 else ""
    shown = "".join(_NO_TEXT if "\ud800" <= c <= "\udfff" else c for c in character)
    return SkippedInfo(character=shown, codepoint=codepoint, name=name, count=count, why=why)
