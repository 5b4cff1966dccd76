"""What each element of SSML means for the text in it. Pure, any thread. Neighbours: `ssml` reads the XML and
keeps the bounds, `ssml_values` knows the attributes.

The subset is what can be kept in full: an element or attribute that would have to be passed over is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

from edged.controls import SPEEDS, VOLUMES
from edged.errors import BadMarkup, did_you_mean
from edged.text.document import Language, Mark, Pause, Style, Words
from edged.text.markup import ssml_values as values
from edged.text.markup.place import short
from edged.text.markup.ssml_values import Kind
from edged.text.phonemes.respell import checked

T = TypeVar("T")

SCHEMA_LOCATION = "xsi:schemaLocation"
SEMITONES = (-12.0, 12.0)  # in all
_DIGITS = 6  # of a factor, so that equal ones are equal however they were reached


class Attributes:
    """Those of one element: each may be asked for once, and none may be left.

    wrong: makes the error, at the place of the element, of what is wrong and a hint ("" for the usual one).
    """

    def __init__(
        self, element: str, given: Mapping[str, str], wrong: Callable[[str, str], BadMarkup]
    ) -> None:
        self.wrong = wrong
        self._element = element
        self._given = given
        self._asked: list[str] = []

    def take(self, name: str, kind: Kind[T]) -> T | None:
        """None where the attribute is not given."""
        self._asked.append(name)
        given = self._given.get(name)
        if given is None:
            return None
        value = kind.read(given.strip())
        if value is None:
            what = f"the attribute {name} of <{self._element}> must be {kind.takes}"
            raise self.wrong(what, did_you_mean(given, kind.words))
        return value

    def need(self, name: str, kind: Kind[T]) -> T:
        value = self.take(name, kind)
        if value is None:
            raise self.wrong(f"<{self._element}> needs the attribute {name}: {kind.takes}", "")
        return value

    def end(self, needs_one: bool = False) -> None:
        """needs_one: at least one of them must be given."""
        known = f"<{self._element}> takes {', '.join(self._asked) or 'no attributes'}"
        if left := [name for name in self._given if name not in self._asked]:
            raise self.wrong(f"{known}, not {short(left[0])}", did_you_mean(left[0], self._asked))
        if needs_one and not self._given:
            raise self.wrong(f"{known}: give at least one", "")


def speak(given: Attributes) -> Language | None:
    """The language of a text that does not show its own."""
    given.take("version", values.VERSION)
    language = given.take("xml:lang", values.LANGUAGE)
    given.take(SCHEMA_LOCATION, values.ANYTHING)
    given.end()
    return language


def _part(given: Attributes, style: Style) -> Style:
    language = given.take("xml:lang", values.LANGUAGE)
    given.end()
    return replace(style, language=language or style.language)


def _lang(given: Attributes, style: Style) -> Style:
    language = given.need("xml:lang", values.LANGUAGE)
    given.end()
    return replace(style, language=language)


def _voice(given: Attributes, style: Style) -> Style:
    name = given.need("name", values.TEXT)
    given.end()
    return replace(style, voice=name)


def _prosody(given: Attributes, style: Style) -> Style:
    rate = given.take("rate", values.RATE)
    volume = given.take("volume", values.VOLUME)
    pitch = given.take("pitch", values.PITCH)
    given.end(needs_one=True)
    return replace(
        style,
        speed=_within(given, style.speed * (1.0 if rate is None else rate), SPEEDS, "rate", "times"),
        volume=_within(given, style.volume * (1.0 if volume is None else volume), VOLUMES, "volume", "times"),
        pitch=_within(given, style.pitch + (pitch or 0.0), SEMITONES, "pitch", "semitones from"),
    )


def _within(given: Attributes, value: float, bounds: tuple[float, float], name: str, unit: str) -> float:
    value = round(value, _DIGITS)
    low, high = bounds
    if not low <= value <= high:
        raise given.wrong(
            f"the {name} comes to {value:g} {unit} the usual one; it must be {low:g} to {high:g}",
            "what elements around this one ask for counts too",
        )
    return value


def _say_as(given: Attributes, style: Style) -> Words:
    say_as = given.need("interpret-as", values.INTERPRETATION)
    details: list[str | None] = []
    if say_as == "date":
        details = [given.take("format", values.ORDER), given.take("detail", values.ORDER)]
    elif say_as == "time":
        details = [given.take("format", values.CLOCK)]
    given.end()
    told = {detail for detail in details if detail is not None}
    if len(told) > 1:
        raise given.wrong("format and detail of <say-as> contradict each other", "give one of them")
    return Words("", style, say_as, "".join(told))


def _sub(given: Attributes, style: Style) -> Words:
    alias = given.need("alias", values.TEXT)
    given.end()
    return Words(alias, style)


def _phoneme(given: Attributes, style: Style) -> Words:
    alphabet = given.need("alphabet", values.ALPHABET)
    symbols = given.need("ph", values.TEXT)
    given.end()
    try:
        return Words("", style, phonemes=checked(alphabet, symbols))
    except ValueError as wrong:
        raise given.wrong(f"the attribute ph of <phoneme>: {wrong}", "") from None


def _break(given: Attributes) -> Pause | None:
    """A time outdoes a strength; none at all is no pause."""
    seconds = given.take("time", values.TIME)
    strength = given.take("strength", values.STRENGTH)
    given.end()
    if seconds is None:
        seconds = values.STRENGTHS_S["medium"] if strength is None else strength
    return Pause(seconds) if seconds else None


def _mark(given: Attributes) -> Mark:
    name = given.need("name", values.TEXT)
    given.end()
    return Mark(name)


# Around text and other elements: how all of it is spoken.
AROUND: dict[str, Callable[[Attributes, Style], Style]] = {
    "p": _part,
    "s": _part,
    "lang": _lang,
    "voice": _voice,
    "prosody": _prosody,
}
# Around text alone: how it is read. The words of <sub> are the alias; the others get the text inside.
READ: dict[str, Callable[[Attributes, Style], Words]] = {"say-as": _say_as, "sub": _sub, "phoneme": _phoneme}
# Around nothing.
EMPTY: dict[str, Callable[[Attributes], Pause | Mark | None]] = {"break": _break, "mark": _mark}
NAMES = ("speak", *AROUND, *READ, *EMPTY)
