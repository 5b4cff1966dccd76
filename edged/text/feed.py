"""The text of an open job that comes in pieces: what of it is whole sentences, and what still waits.

Server thread; no state but the text itself. Neighbours: `edged.open_jobs` owns one for each open job, `split`
knows where sentences end.
"""

from __future__ import annotations

from edged.text.split import sentences

# A writer that sets no full stops must be heard before it closes the job.
LONGEST = 400  # characters that wait for the end of their sentence
_STRONG = "。｡！？；‼⁇⁈⁉\n"  # behind these no blank has to come


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
    found = 0
    for sentence in sentences(text):
        behind = text[sentence.end : sentence.end + 1]
        if (sentence.ending and (behind.isspace() or text[sentence.end - 1] in _STRONG)) or behind:
            found = sentence.end
    return found


def _blank(text: str) -> int:
    """Behind the last blank, or the end where there is none."""
    return max((n for n, one in enumerate(text, 1) if one.isspace()), default=len(text))
