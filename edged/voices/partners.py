"""Which voice may speak for another one where a text changes its language.

Pure functions over voice cards, any thread. Neighbours: `params` refuses requests by it, `catalog` settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec

from edged.controls import SPELL
from edged.errors import did_you_mean
from edged.text.document import speaks
from edged.voices.api import VoiceCard

_DICTIONARIES = ("opencc", "pypinyin")


def misfit(
    name: str, language: str, card: VoiceCard, cards: Mapping[str, VoiceCard]
) -> tuple[str, str] | None:
    """Why the voice `name` cannot speak a language for the voice of `card`, and what to do; None if it can.

    Audio of one job has one sample rate, so both voices must have it.
    """
    if name == SPELL:
        return _spelling(language)
    partner = cards.get(name)
    if partner is None:
        guess = did_you_mean(name, cards)
        return f"unknown voice {name!r}", f"{guess} voices: {', '.join(cards)}, or {SPELL}".strip()
    if partner.sample_rate != card.sample_rate:
        rates = f"the voice {name!r} has {partner.sample_rate} Hz, {card.name!r} {card.sample_rate} Hz"
        return rates, "choose a voice of the same sample rate"
    if not speaks(partner.languages, language):
        able = [
            c.name
            for c in cards.values()
            if c.sample_rate == card.sample_rate and speaks(c.languages, language)
        ]
        hint = f"voices that can: {', '.join(able)}" if able else "no loaded voice of its sample rate can"
        return f"the voice {name!r} does not speak {language}", hint
    return None


def _spelling(language: str) -> tuple[str, str] | None:
    """Chinese is spelled by how it sounds, which dictionaries say."""
    lacking = [name for name in _DICTIONARIES if language == "zh" and find_spec(name) is None]
    if not lacking:
        return None
    return (
        f"to spell Chinese needs the Python package {lacking[0]!r}, which is not installed",
        "install it with: pip install 'edged[chattts]'",
    )
