"""`edged say --explain`: how a text would be spoken, for people to read. Main thread.

Lines of at most 80 columns, on a terminal as in a pipe. Neighbours: `speech` calls it, `edged.client` asks.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from edged.cli.context import State
from edged.cli.exits import tell
from edged.escape import printable

if TYPE_CHECKING:
    from edged.protocol import Explained, UtteranceInfo

COLUMNS = 80
_EAST_ASIAN = "\u2e80"  # from here on scripts put no spaces between words
INDENT = "  "
READING = frozenset(
    """text explained voice markup language numbers digits emoji date_order run_voices endpoint timeout
    server_key secret_key json""".split()
)


def check_options(context: click.Context) -> None:
    """Refuses what only speech has."""
    for parameter in context.command.params:
        name = parameter.name or ""
        if name not in READING and context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            named = "/".join([*parameter.opts, *parameter.secondary_opts])
            raise click.UsageError(
                f"{named} makes no sense with --explain, which speaks nothing and makes no audio"
            )


def explain(state: State, text: str, **options: Any) -> int:
    with state.client() as client:
        answer = client.explain(text, **options)
    state.show(answer, lambda: _tell(answer))
    return 0


def _tell(answer: Explained) -> None:
    tell(f"voice: {printable(answer.voice)} ({', '.join(map(printable, answer.languages))})")
    _section("said", _wrapped([_joined([run.said for run in answer.runs])], INDENT))
    runs = [(run.language or "?", run.voice, run.text) for run in answer.runs]
    _section("languages", _columns(runs))
    read = [(r.kind, r.written, f"-> {r.spoken or '(nothing)'}") for r in answer.readings]
    _section("read", _columns(read))
    _section("utterances", _utterances(answer.utterances))
    left_out = [(f"{s.count} x", s.codepoint, f"{s.name or '(no name)'}: {s.why}") for s in answer.skipped]
    _section("left out", _columns(left_out))
    _section("warnings", _wrapped(answer.warnings, INDENT))
    if answer.truncated:
        tell("\nThere is more: this is the beginning of a long text.")


def _joined(said: Sequence[str]) -> str:
    """What runs say, one after the other: markup may part words that no blank parts."""
    text = ""
    for piece in said:
        touching = bool(text) and text[-1] < _EAST_ASIAN and piece[:1].isalnum() and piece[0] < _EAST_ASIAN
        text += (" " if touching else "") + piece
    return text


def _section(title: str, lines: Iterator[str]) -> None:
    for number, line in enumerate(lines):
        if number == 0:
            tell(f"\n{title}:")
        tell(line)


def _utterances(utterances: Sequence[UtteranceInfo]) -> Iterator[str]:
    for number, one in enumerate(utterances, 1):
        limit = f" of {one.limit}" if one.limit else ""
        facts = [f"{one.ids}{limit} tokens", printable(one.voice), one.language]
        facts += [f"{one.lead_s:g} s of silence before"] if one.lead_s else []
        facts += [f"{one.pause_s:g} s of silence after"] if one.pause_s else []
        yield f"{INDENT}{number}. {', '.join(filter(None, facts))}"
        yield from _wrapped([one.said or "(goes on)"], INDENT * 2 + " ")


def _columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Rows with columns as wide as their contents, but not wider than a quarter; the last is wrapped."""
    rows = [[*map(printable, row)] for row in rows]
    widths = [min(COLUMNS // 4, max(map(_width, column))) for column in zip(*rows, strict=True)][:-1]
    for row in rows:
        head = INDENT
        for cell, width in zip(row, widths, strict=False):
            head += cell + " " * (max(0, width - _width(cell)) + 2)
        yield from _wrapped([row[-1]], " " * (len(INDENT) + sum(widths) + 2 * len(widths)), head)


def _wrapped(texts: Sequence[str], indent: str, head: str | None = None) -> Iterator[str]:
    """Each text from a new line on. head: instead of the indent of the first line."""
    for text in texts:
        line = indent if head is None else head
        if _width(line) > COLUMNS // 2 and line.strip():  # a cell that is too wide has a line of its own
            yield line.rstrip()
            line = indent
        empty = True
        for word in _pieces(text):
            if not empty and _width(line) + _width(word.rstrip()) > COLUMNS:
                yield line.rstrip()
                line, empty = indent, True
            line += word.lstrip() if empty else word
            empty = empty and not word.strip()
        if not empty or (head is not None and line.strip()):
            yield line.rstrip()


def _pieces(text: str) -> Iterator[str]:
    """Words with the blanks behind them; an East Asian character is one, and so is a part of a long word."""
    piece = ""
    for character in printable(" ".join(text.split())):
        if piece and (piece[-1] == " " or _width(character) == 2 or len(piece) >= COLUMNS // 2):
            yield piece
            piece = ""
        piece += character
    if piece:
        yield piece


def _width(text: str) -> int:
    """Columns of a terminal."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
