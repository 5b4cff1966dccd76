"""Text of others made fit to be shown: on a terminal, in the log. Leaf module, any thread.

Names that clients, bundles and files bring can hold what a terminal obeys. Neighbours: `log`, and the output
of `edged.cli`.
"""

from __future__ import annotations


def printable(text: str) -> str:
    """Line breaks, terminal escapes and invisible characters written as \\n, \\x1b, \\u202e."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def printable_lines(text: str) -> str:
    """The same, with the line breaks as they are."""
    return "\n".join(map(printable, text.split("\n")))
