"""Text to utterances, for every family of voices: the one way from what a client wrote to what is spoken.

Text thread (and the CLI, the compiler). Lazy: the first sentence is there before the last one is read.
Neighbours: `markup` and `check` come before; `passage` does the work; `stage` calls it, `explain` shows what
it did.

    document --split--> sentences --reading--> in words --frontend--> ids --cut--> utterances
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from edged.errors import UnspeakableText
from edged.job import Params, Utterance
from edged.text.document import Words
from edged.text.languages import readings_of
from edged.text.passage import Passage
from edged.text.reading import Readings, Stretch
from edged.text.script import Prepared, Script
from edged.text.span import Options
from edged.voices.api import Frontend


def prepare(
    text: str | Script,
    voice: Frontend,
    options: Options | None = None,
    params: Params | None = None,
    readings: Readings | None = None,
) -> Iterator[Utterance]:
    """The utterances of a text for one voice: none where nothing in it has a sound. A text is plain, and is
    not looked at before.

    Raises what the voice's frontend does (`RequestError`).
    """
    script = text if isinstance(text, Script) else Script((Words(text),), options or Options())
    preparer = Preparer({"": voice}, readings or readings_of([voice]))
    try:
        for prepared in preparer.prepared(script, "", params or Params()):
            yield prepared.utterance
    except UnspeakableText:
        return


class Preparer:
    """The frontends of all voices, by name, with the readings that they share."""

    def __init__(self, frontends: Mapping[str, Frontend], readings: Readings) -> None:
        self._frontends = frontends
        self.readings = readings

    def steps(self, script: Script, voice: str, params: Params) -> Iterator[Stretch | Prepared]:
        """What is read and what is prepared, in the order in which it happens.

        Raises `UnspeakableText` at the end of a text that came to no utterance, and what frontends do.
        """
        return Passage(self._frontends, self.readings, script.options, voice, params).steps(script.document)

    def prepared(self, script: Script, voice: str, params: Params) -> Iterator[Prepared]:
        """The utterances alone."""
        return (step for step in self.steps(script, voice, params) if isinstance(step, Prepared))
