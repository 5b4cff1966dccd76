"""Lexicon files to a `Lexicon`, with everything that is wrong with them. A bad file never raises.

Runs at start, on reload and for `edged lexicon check`, on the thread that calls it. Neighbours: `nodes` reads
single entries; the service loads the files that the settings name.

A file is a YAML list of entries, or a mapping with the list as `entries:`. What cannot be used is left out
and told as a `Problem` with its line; what stands but deserves a look (a word twice, a syllable that
cannot be respelled) is told in the lexicon's `notes`.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path

import yaml
from yaml import MappingNode, Node, ScalarNode, SequenceNode

from edged.errors import Problem
from edged.text.lexicon.compiled import Cost, lower
from edged.text.lexicon.entries import Entry
from edged.text.lexicon.match import Lexicon
from edged.text.lexicon.nodes import EntryReader
from edged.text.phonemes.respell import missing

LARGEST_FILE = 1024 * 1024  # bytes
MOST_ENTRIES = 10_000  # of a file, and of all files together
MOST_PATTERNS = 2_000  # of all files together
MOST_WAYS = 1_024  # to fit patterns at one place of a text: with so many, 5,000 hostile characters take 0.7 s
MOST_PROBLEMS = 100  # of a file that are told one by one
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # PyYAML is also built without its C part
_ROOT_HINT = "a file is a list of entries, each beginning with '- word: ' or '- pattern: '"


def load(paths: Sequence[str], base_directory: Path) -> tuple[Lexicon, list[Problem]]:
    """The entries of these files as one lexicon, later files before earlier ones, and all problems.

    Relative paths are of the base directory.
    """
    entries: list[Entry] = []
    problems: list[Problem] = []
    for path in paths:
        found, wrong = read(base_directory / path, path)
        entries += found
        problems += wrong
    kept, beyond = _bounded(entries)
    used, notes = _without_doubles(kept)
    notes += (note for entry in used for note in _cannot_respell(entry))
    return Lexicon(used, notes), problems + beyond


def read(path: Path, name: str) -> tuple[list[Entry], list[Problem]]:
    """The entries of one file, which messages call `name`."""
    try:
        data = _contents(path)
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the name
        reason = getattr(error, "strerror", None) or error
        return [], [Problem(name, 0, "", f"cannot be read: {reason}")]
    if data is None:
        return [], [Problem(name, 0, "", "is not a regular file")]
    if len(data) > LARGEST_FILE:
        return [], [Problem(name, 0, "", "is larger than 1 MiB", hint="split it, or is it another file?")]
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return [], [Problem(name, line, "", "this line is not UTF-8 text", hint="save the file as UTF-8")]
    return parse(text, name)


def parse(text: str, name: str) -> tuple[list[Entry], list[Problem]]:
    """The entries of a YAML text."""
    try:
        root = yaml.compose(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark is not None else (0, 0)
        tabs = "indent with blanks, not tabs" if "\t" in text else "quote texts with signs such as : # or *"
        what = error.problem or error.context or "not YAML"
        return [], [Problem(name, line, "", f"this is not YAML: {what}", hint=tabs, column=column)]
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, min(error.position, len(text))) + 1
        return [], [Problem(name, line, "", "holds a character that may not stand in YAML")]
    except RecursionError:
        return [], [Problem(name, 0, "", "is nested too deeply", hint=_ROOT_HINT)]
    except (yaml.YAMLError, ValueError, OverflowError):  # PyYAML's own faults on odd escapes
        return [], [Problem(name, 0, "", "is not YAML")]
    problems = _Problems(name)
    entries = [] if root is None else _entries(root, EntryReader(name, problems.add), problems)
    return entries, problems.told()


class _Problems:
    """Those of one file, up to a bound."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._found: list[Problem] = []
        self._more = 0

    def add(self, problem: Problem) -> None:
        if len(self._found) < MOST_PROBLEMS:
            self._found.append(problem)
        else:
            self._more += 1

    def told(self) -> list[Problem]:
        if not self._more:
            return self._found
        return [*self._found, Problem(self._name, 0, "", f"and {self._more} more problems")]


def _contents(path: Path) -> bytes | None:
    """Up to a byte more than is allowed; None for what is no regular file, which could make us wait."""
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return None
        return file.read(LARGEST_FILE + 1)


def _entries(root: Node, reader: EntryReader, problems: _Problems) -> list[Entry]:
    items = _items(root, reader)
    if len(items) > MOST_ENTRIES:
        message = f"expected at most {MOST_ENTRIES} entries, got {len(items)}"
        reader.report(items[MOST_ENTRIES], "", message, "those from here on are not used")
    return [entry for item in items[:MOST_ENTRIES] if (entry := reader.entry(item)) is not None]


def _items(root: Node, reader: EntryReader) -> list[Node]:
    """The nodes of the entries."""
    if isinstance(root, MappingNode):
        lists: list[Node] = []
        for name, value in root.value:
            if not isinstance(name, ScalarNode) or name.value != "entries":
                reader.report(name, "", "expected only 'entries:' here", _ROOT_HINT)
            elif lists:
                reader.report(name, "entries", "is already there", "make one list of the two")
            else:
                lists.append(value)
        return _items_of(lists[0], reader) if lists else []
    return _items_of(root, reader)


def _items_of(node: Node, reader: EntryReader) -> list[Node]:
    if isinstance(node, SequenceNode):
        return list(node.value)
    if not (isinstance(node, ScalarNode) and node.value in ("", "~", "null")):
        reader.report(node, "", "expected a list of entries", _ROOT_HINT)
    return []


def _bounded(entries: list[Entry]) -> tuple[list[Entry], list[Problem]]:
    """As many as a lexicon may hold; the later ones are left out."""
    kept: list[Entry] = []
    cost = Cost()
    count = 0
    for place, entry in enumerate(entries):
        if len(kept) == MOST_ENTRIES:
            message = f"the files have more than {MOST_ENTRIES} entries together"
            return kept, [_from_here(entry, message, "those from here on are not used")]
        count += bool(entry.pattern)
        if entry.pattern and (count > MOST_PATTERNS or cost.with_one(entry.pattern) > MOST_WAYS):
            message = "the patterns are too many, or can be tried in too many ways, all together"
            hint = "patterns from here on are not used: let them begin with letters, or prefer words"
            rest = [other for other in entries[place:] if other.word]
            return (kept + rest)[:MOST_ENTRIES], [_from_here(entry, message, hint)]
        kept.append(entry)
    return kept, []


def _from_here(entry: Entry, message: str, hint: str) -> Problem:
    return Problem(entry.place.file, entry.place.line, "", message, hint=hint)


def _without_doubles(entries: Iterable[Entry]) -> tuple[list[Entry], list[Problem]]:
    """Of entries for the same word, language and voice the last, and a note for each other one."""
    last: dict[tuple[str, ...], Entry] = {}
    notes: list[Problem] = []
    hidden: dict[int, set[str]] = {}  # of an entry: the voices for which a later one is used
    for entry in entries:
        written = entry.word if entry.exact else lower(entry.word)
        bound = entry.language if entry.bound else ""
        earlier: dict[int, Entry] = {}
        for voice in entry.voices or ("",):
            key = (written, entry.pattern, str(entry.exact), bound, voice)
            if key in last:
                earlier[id(last[key])] = last[key]
                hidden.setdefault(id(last[key]), set()).add(voice)
            last[key] = entry
        for other in earlier.values():
            place = entry.place
            message = f"is already said otherwise in {other.place}; this one is used"
            key_name = entry.word or entry.pattern
            hint = "delete one of the two"
            notes.append(Problem(place.file, place.line, key_name, message, hint=hint, column=place.column))
    used = [entry for entry in entries if hidden.get(id(entry), set()) < set(entry.voices or ("",))]
    return used, notes


def _cannot_respell(entry: Entry) -> Iterable[Problem]:
    """Syllables without a common character of their sound."""
    if entry.phonemes is not None and (without := missing(entry.phonemes, entry.language)):
        place = entry.place
        message = f"no common character sounds like {', '.join(without)}"
        hint = "a voice that takes no pinyin says it with another tone; try say with other characters"
        yield Problem(place.file, place.line, entry.word or entry.pattern, message, hint=hint)
