"""What the attributes of SSML may be, and what they mean. Pure, any thread. Neighbour: `ssml_elements`.

A reading gives None for a value that it does not take; `takes` says in a message what it would.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from edged.text.document import SAY_AS, Alphabet, Language

T = TypeVar("T")

LONGEST_BREAK_S = 10.0
STRENGTHS_S = {"none": 0.0, "x-weak": 0.1, "weak": 0.2, "medium": 0.4, "strong": 0.8, "x-strong": 1.2}
RATES = {"x-slow": 0.5, "slow": 0.75, "medium": 1.0, "default": 1.0, "fast": 1.5, "x-fast": 2.0}
VOLUMES = {
    "silent": 0.0,
    "x-soft": 0.25,
    "soft": 0.5,
    "medium": 1.0,
    "default": 1.0,
    "loud": 1.5,
    "x-loud": 2.0,
}
PITCHES = {"x-low": -6.0, "low": -3.0, "medium": 0.0, "default": 0.0, "high": 3.0, "x-high": 6.0}  # semitones
INTERPRETATIONS = {
    **dict(zip(SAY_AS, SAY_AS, strict=True)),
    "number": "cardinal",
    "spell-out": "characters",
    "verbatim": "characters",
}
ORDERS = ("mdy", "dmy", "ymd", "md", "dm", "ym", "my", "y", "m", "d")
CLOCKS = ("hms12", "hms24")
ALPHABETS: dict[str, Alphabet] = {"ipa": "ipa", "pinyin": "pinyin", "x-pinyin": "pinyin"}

_NUMBER = r"(\d{1,6}(?:\.\d{1,6})?|\.\d{1,6})"
_TIME = re.compile(rf"\+?{_NUMBER}(ms|s)", re.ASCII)
_FACTOR = re.compile(_NUMBER, re.ASCII)
_PERCENT = re.compile(rf"([+-]?){_NUMBER}%", re.ASCII)
_DECIBELS = re.compile(rf"([+-]?){_NUMBER}dB", re.ASCII | re.IGNORECASE)
_SEMITONES = re.compile(rf"([+-]?){_NUMBER}st", re.ASCII)
_LANGUAGE = re.compile(r"(zh|en)(-[a-z0-9]{1,8}){0,5}", re.ASCII | re.IGNORECASE)
_AGAIN = re.compile(r"([ymd])\1*")


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """A kind of value. words: those that it knows by name, for a guess at what was meant."""

    read: Callable[[str], T | None]
    takes: str
    words: tuple[str, ...] = ()


def _seconds(value: str) -> float | None:
    found = _TIME.fullmatch(value)
    if found is None:
        return None
    seconds = float(found[1]) / (1000 if found[2] == "ms" else 1)
    return seconds if seconds <= LONGEST_BREAK_S else None


def _signed(found: re.Match[str]) -> float:
    return -float(found[2]) if found[1] == "-" else float(found[2])


def _rate(value: str) -> float | None:
    if value in RATES:
        return RATES[value]
    if found := _PERCENT.fullmatch(value):
        return _signed(found) / 100 + (1 if found[1] else 0)
    return float(value) if _FACTOR.fullmatch(value) else None


def _volume(value: str) -> float | None:
    if value in VOLUMES:
        return VOLUMES[value]
    found = _DECIBELS.fullmatch(value)
    decibels = _signed(found) if found else math.inf
    return float(10 ** (decibels / 20)) if decibels <= 100 else None


def _pitch(value: str) -> float | None:
    if value in PITCHES:
        return PITCHES[value]
    if found := _SEMITONES.fullmatch(value):
        return _signed(found)
    found = _PERCENT.fullmatch(value)
    factor = 1 + _signed(found) / 100 if found and found[1] else 0.0
    return 12 * math.log2(factor) if factor > 0 else None


def _language(value: str) -> Language | None:
    found = _LANGUAGE.fullmatch(value)
    if found is None:
        return None
    return "zh" if found[1].lower() == "zh" else "en"


def _order(value: str) -> str | None:
    """yyyymmdd is ymd."""
    order = _AGAIN.sub(r"\1", value.lower())
    return order if order in ORDERS else None


def _text(value: str) -> str | None:
    return " ".join(value.split()) or None


def _one_of(words: tuple[str, ...]) -> Kind[str]:
    return Kind(lambda value: value if value in words else None, " or ".join(words), words)


def _listed(words: dict[str, float], others: str) -> str:
    return f"{', '.join(words)}, {others}"


TEXT = Kind(_text, "a text that is not empty")
ANYTHING = Kind(lambda value: value, "anything")
VERSION = _one_of(("1.0", "1.1"))
TIME = Kind(_seconds, "a time such as 500ms or 2s, at most 10s")
STRENGTH = Kind(STRENGTHS_S.get, ", ".join(STRENGTHS_S), tuple(STRENGTHS_S))
RATE = Kind(
    _rate,
    _listed(RATES, "a percentage such as 90% or +10%, or a factor such as 1.2"),
    tuple(RATES),
)
VOLUME = Kind(_volume, _listed(VOLUMES, "or decibels such as +6dB or -3dB"), tuple(VOLUMES))
PITCH = Kind(
    _pitch,
    _listed(PITCHES, "semitones such as +2st, or a change such as +10%"),
    tuple(PITCHES),
)
LANGUAGE: Kind[Language] = Kind(_language, "zh or en, or a language tag that begins so, such as zh-CN")
INTERPRETATION = Kind(INTERPRETATIONS.get, ", ".join(INTERPRETATIONS), tuple(INTERPRETATIONS))
ORDER = Kind(_order, ", ".join(ORDERS), ORDERS)
CLOCK = _one_of(CLOCKS)
ALPHABET: Kind[Alphabet] = Kind(ALPHABETS.get, ", ".join(ALPHABETS), tuple(ALPHABETS))
