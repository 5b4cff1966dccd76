"""The text of an open job that comes in pieces: what of it is whole sentences, and what still waits.

Server thread; no state but the text itself. Neighbours: `edged.open_jobs` owns one for each open job, `split`
knows where sentences end.
"""

from __future__ import annotations

from edged.text.split import Sentence, sentences

# A writer that sets no full stops must be heard before it closes the job.
LONGEST = 400  # characters that wait for the end of their sentence
_STRONG = "。｡！？；‼⁇⁈⁉"  # behind these no blank has to come
_NEWLINES = ("\n", "\r")
_WORD = "Then"


class Feed:
    """`add` what came; it gives back what can be spoken now. `rest` is what is left at the end."""

    def __init__(self) -> None:
        self._held = ""

    @property
    def held(self) -> int:
        """Characters that wait for more."""
        return len(self._held)

    def add(self, text: str) -> str:
        """The whole sentences of what has come so far, "" where there are none yet.

        A sentence is whole when something stands behind its last mark, at least a blank: 3. may become 3.5.
        """
        held = self._held + text
        at = _whole(held)
        if at == 0 and len(held) > LONGEST:
            at = _blank(held)
        self._held = held[at:]
        return held[:at]

    def rest(self) -> str:
        """All that waits; nothing waits afterwards."""
        held, self._held = self._held, ""
        return held

    def give_back(self, text: str, added: int) -> None:
        """Takes back an `add` of so many characters that gave this text."""
        whole = text + self._held
        self._held = whole[: len(whole) - added]


def _whole(text: str) -> int:
    """Where the last sentence that is whole ends."""
    *before, last = [*sentences(text)] or [Sentence(0, 0, "")]
    behind = text[last.end : last.end + 1]
    if last.ending and (text[last.end - 1] in _STRONG or behind in _NEWLINES or _parted(text, last)):
        return last.end
    return before[-1].end if before else 0


def _parted(text: str, last: Sentence) -> bool:
    """Whether a blank is behind it, and a word behind that would begin another sentence: not so behind Dr."""
    if not text[last.end : last.end + 1].isspace():
        return False
    return len([*sentences(f"{text[last.start : last.end]} {_WORD}")]) > 1


def _blank(text: str) -> int:
    """Behind the last blank, or the end where there is none."""
    return max((n for n, one in enumerate(text, 1) if one.isspace()), default=len(text))
