"""The root of the error tree, and the guess that many of its hints make. Leaf module."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import ClassVar

LONGEST_GUESS = 64  # characters


class EdgedError(Exception):
    """Base of the tree. `code` is the stable wire name; `hint` says what to do about it.

    `retryable` means the same request may succeed later without being changed.
    """

    code: ClassVar[str] = "error"
    retryable: ClassVar[bool] = False
    default_hint: ClassVar[str] = ""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = self.default_hint if hint is None else hint

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`did you mean 'x'?` for the closest known name, or an empty string.

    A word far longer than any name is not compared: the comparison takes time that grows with it.
    """
    if len(word) > LONGEST_GUESS:
        return ""
    close = get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"did you mean {close[0]!r}?" if close else ""
