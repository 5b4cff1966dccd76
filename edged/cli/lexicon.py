"""`edged lexicon check`: what lexicon files hold, and what is wrong with them.

Main thread; needs no daemon. Neighbours: `edged.text.lexicon`, imported when the command runs.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from edged.cli.context import State, json_option, pass_state
from edged.cli.exits import OK, USAGE, document, tell, write_json

if TYPE_CHECKING:
    from edged.text.lexicon.entries import Entry


@click.group()
def lexicon() -> None:
    """Lexicons: how names, abbreviations and characters of several readings are said."""


@lexicon.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@json_option
@pass_state
def check(state: State, files: tuple[str, ...]) -> int:
    """Check lexicon FILEs together, in the order in which the daemon would load them.

    Lists the entries, then what one should know (a word that is there twice) and what is wrong. Ends with 2
    where an entry or a file cannot be used.
    """
    from edged.text.lexicon.read import load

    loaded, problems = load(files, Path())
    if state.as_json:
        answer = {
            "ok": not problems,
            "entries": [_fields(entry) for entry in loaded.entries],
            "notes": [asdict(note) for note in loaded.notes],
            "problems": [asdict(problem) for problem in problems],
        }
        write_json(document(answer))
        return USAGE if problems else OK
    for entry in loaded.entries:
        tell(_line(entry))
    for note in loaded.notes:
        tell(f"note: {note}")
    for problem in problems:
        tell(f"problem: {problem}")
    told = f"{len(loaded.entries)} entries, {len(loaded.notes)} notes, {len(problems)} problems"
    tell(f"{', '.join(files)}: {told}")
    return USAGE if problems else OK


def _fields(entry: Entry) -> dict[str, Any]:
    """An entry for scripts, with the names that its file has."""
    phonemes = entry.phonemes
    said: dict[str, str] = {"say": entry.say} if phonemes is None else {phonemes.alphabet: phonemes.symbols}
    return {
        **({"word": entry.word} if entry.word else {"pattern": entry.pattern}),
        **said,
        "case": "exact" if entry.exact else "any",
        "language": entry.language if entry.bound else "",
        "voices": list(entry.voices),
        "file": entry.place.file,
        "line": entry.place.line,
    }


def _line(entry: Entry) -> str:
    """An entry for people."""
    said = entry.say if entry.phonemes is None else f"[{entry.phonemes.alphabet}] {entry.phonemes.symbols}"
    written = entry.word or f"/{entry.pattern}/"
    case = "exact case" if entry.exact else "any case"
    limits = [
        case if entry.exact == bool(entry.word) else "",
        f"in {entry.language} text" if entry.bound else "",
        f"for {', '.join(entry.voices)}" if entry.voices else "",
    ]
    told = "; ".join(filter(None, limits))
    return f"{entry.place}: {written} -> {said}" + (f" ({told})" if told else "")
