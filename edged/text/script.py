"""What a text is before and after it is prepared: the script of a request, and its utterances.

Leaf data of the text stage. Neighbours: admission makes scripts, `prepare` utterances of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from edged.job import Utterance
from edged.text.document import Document, Said, Skipped
from edged.text.span import Options


@dataclass(frozen=True, slots=True)
class Script:
    """A request's text after the first look. skipped: what was left out there."""

    document: Document
    options: Options = field(default_factory=Options)
    skipped: tuple[Skipped, ...] = ()


@dataclass(frozen=True, slots=True)
class Prepared:
    """An utterance, and how it came about. said: the whole sentence, also where it was cut, and this one
    goes on with it. ids, limit: of its text, in the voice's own units."""

    utterance: Utterance
    said: tuple[Said, ...]
    ids: int
    limit: int
    goes_on: bool
    skipped: tuple[Skipped, ...] = ()
    warnings: tuple[str, ...] = ()
