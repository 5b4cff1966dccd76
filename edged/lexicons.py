"""The lexicons that the settings name: at the daemon's start what can be used, on a reload all or none.

Loading thread, no state. Neighbours: `takeover` calls it, `edged.text.lexicon` reads the files.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from pathlib import Path

from edged.errors import ConfigError, did_you_mean
from edged.escape import printable
from edged.log import event as log_event
from edged.text.lexicon.match import Lexicon
from edged.text.lexicon.read import load

log = logging.getLogger("edged.lexicons")
_TOLD_AT_MOST = 20  # problems in the log at a start


def at_start(files: Sequence[str]) -> Lexicon:
    """A box that speaks without an entry is better than one that is silent: what is wrong is left out and
    told in the log."""
    lexicon, problems = load(files, Path())
    _note(lexicon)
    for problem in problems[:_TOLD_AT_MOST]:
        text = f"an entry of a lexicon is left out: {problem}"
        log_event(log, logging.WARNING, text, code="bad_lexicon", phase="start")
    if len(problems) > _TOLD_AT_MOST:
        log_event(
            log,
            logging.WARNING,
            f"{len(problems) - _TOLD_AT_MOST} more problems of lexicons; see: edged lexicon check",
            code="bad_lexicon",
            phase="start",
        )
    return lexicon


def anew(files: Sequence[str]) -> Lexicon:
    """For a reload. Raises `ConfigError` with everything that is wrong."""
    lexicon, problems = load(files, Path())
    if problems:
        shown = problems[:_TOLD_AT_MOST]
        error = ConfigError.of(shown, len(problems) - len(shown))
        error.hint = "check the files with: edged lexicon check FILE"
        raise error
    _note(lexicon)
    return lexicon


def tell_strangers(lexicon: Lexicon, voices: Collection[str]) -> None:
    """Tells in the log of entries for voices that are not there: they are never used."""
    wrong = [(entry, name) for entry in lexicon.entries for name in entry.voices if name not in voices]
    for entry, name in wrong[:_TOLD_AT_MOST]:
        guess = did_you_mean(name, voices) or f"voices: {', '.join(voices)}"
        text = f"lexicon: {entry.place}: {entry.word or entry.pattern}: no voice is named {name!r} ({guess})"
        log_event(log, logging.WARNING, printable(text), code="bad_lexicon")
    if len(wrong) > _TOLD_AT_MOST:
        text = f"lexicon: {len(wrong) - _TOLD_AT_MOST} more entries name voices that are not there"
        log_event(log, logging.WARNING, text, code="bad_lexicon")


def _note(lexicon: Lexicon) -> None:
    """Entries that stand, but deserve a look: a word twice, a syllable without a homophone."""
    for note in lexicon.notes[:_TOLD_AT_MOST]:
        log.info("lexicon: %s", note)
