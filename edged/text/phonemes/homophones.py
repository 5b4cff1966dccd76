"""Characters that sound like a syllable, for Chinese voices that take no pinyin. Text thread; read once.

The table is `homophones.txt` beside this file; how it is made, and why a character is in it, says
tools/make_homophones. Neighbours: `respell` writes words with it, `lexicon` warns where it has a gap.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from edged.text.phonemes.pinyin import NEUTRAL

_FILE = Path(__file__).with_name("homophones.txt")
_NEAREST = ("1", "4", "2", "3", NEUTRAL)  # tones to try where the right one has no character


@cache
def table() -> Mapping[str, str]:
    """Syllable (hang2) -> character. Some 1,500 entries, 0.3 MB."""
    lines = _FILE.read_text(encoding="utf-8").splitlines()
    return dict(line.split(" ") for line in lines if not line.startswith("#"))


def written(symbols: str) -> str:
    """Characters that sound like these syllables (common form, valid), one each.

    A syllable that has no such character gets one of another tone, or stays in letters: see `missing`.
    """
    known = table()
    return "".join(known.get(syllable) or _near(syllable, known) for syllable in symbols.split())


def missing(symbols: str) -> tuple[str, ...]:
    """The syllables that have no character of just this sound."""
    return tuple(syllable for syllable in symbols.split() if syllable not in table())


def _near(syllable: str, known: Mapping[str, str]) -> str:
    base = syllable[:-1]
    return next((known[base + tone] for tone in _NEAREST if base + tone in known), base)
