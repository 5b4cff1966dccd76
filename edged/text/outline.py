"""An explanation from what the readers of the languages and a voice's frontend each say of a text.

Implements `explain.Explainer`. Text thread. Neighbours: `runs` and the readers below, `stage` runs it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from edged.job import Params
from edged.text.check import Script
from edged.text.chinese.reader import Chinese
from edged.text.document import Language, Words
from edged.text.english.reader import English
from edged.text.explain import Account
from edged.text.runs import Reader, runs
from edged.voices.api import Frontend

BLOCK_CHARS = 2_000  # read in one step: some 30 ms of work where it is all figures


class Outline:
    """frontends: by the name of the voice."""

    def __init__(self, frontends: Mapping[str, Frontend]) -> None:
        self._frontends = frontends
        self._readers: dict[Language, Reader] = {}

    def __call__(self, script: Script, params: Params, account: Account) -> Iterator[None]:
        account.skip(script.skipped)
        default = _default(account.languages)
        for item in script.document:
            for block in _blocks(item.text) if isinstance(item, Words) else ():
                self._read(block, default, script, account)
                yield
        for utterance in self._frontends[account.voice].utterances(script.text, params):
            account.speak(utterance, "", "", 0)
            yield

    def _read(self, text: str, default: Language | None, script: Script, account: Account) -> None:
        if default is None:
            account.read(text, "", account.voice, ())
            return
        for run in runs(text, default):
            part = text[run.start : run.end]
            spans = self._reader(run.language).spans(part, script.options)
            account.read(part, run.language, account.voice, spans)

    def _reader(self, language: Language) -> Reader:
        if language not in self._readers:
            self._readers[language] = Chinese() if language == "zh" else English()
        return self._readers[language]


def _default(languages: Sequence[str]) -> Language | None:
    """None for a voice without a reader."""
    names = [language.partition("-")[0].lower() for language in languages]
    return "zh" if "zh" in names else "en" if "en" in names else None


def _blocks(text: str) -> Iterator[str]:
    for line in text.splitlines(keepends=True):
        for start in range(0, len(line), BLOCK_CHARS):
            yield line[start : start + BLOCK_CHARS]
