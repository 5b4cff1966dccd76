"""What a text is before and after it is prepared: the script of a request, and its utterances.

Leaf data of the text stage. Neighbours: admission makes scripts, `prepare` utterances of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from edged.job import Utterance
from edged.text.document import Document, Said, Skipped, Words
from edged.text.span import Options


@dataclass(frozen=True, slots=True)
class Script:
    """What is to be read, and how: a document, its options, and what was left out of it at the first look."""

    document: Document
    options: Options = field(default_factory=Options)
    skipped: tuple[Skipped, ...] = ()

    @property
    def text(self) -> str:
        """The words, without what stands between them."""
        return "".join(item.text for item in self.document if isinstance(item, Words))

    @property
    def left_out(self) -> int:
        """Characters."""
        return sum(one.count for one in self.skipped)


@dataclass(frozen=True, slots=True)
class Prepared:
    """An utterance, and how it came about. said: the whole sentence, also where it was cut, and this one
    goes on with it. ids, limit: of its text, in the voice's own units. letters: of a sentence that was cut,
    how many letters and digits of it stand before this one and up to its end; None where the voice cannot
    tell."""

    utterance: Utterance
    said: tuple[Said, ...]
    ids: int
    limit: int
    goes_on: bool
    letters: tuple[int, int] | None = None
    skipped: tuple[Skipped, ...] = ()
    warnings: tuple[str, ...] = ()
