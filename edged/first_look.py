"""What a request asks to be read, before it is a job: its text parsed, looked at, refused where it must be.

Server thread, no state. Neighbours: `admission` calls it, `edged.text` has the parsers and the check,
`params` the options.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from edged import protocol
from edged.errors import BadValue, UnknownVoice, UnsupportedText, did_you_mean
from edged.text.check import check, speakers_of
from edged.text.markup import parse
from edged.text.markup.place import short
from edged.text.script import Script
from edged.text.span import Options
from edged.voices.api import VoiceCard


def look(
    request: protocol.Reading,
    card: VoiceCard,
    cards: Mapping[str, VoiceCard],
    options: Options,
    run_voices: Iterable[str] = (),
    known: frozenset[str] = frozenset(),
) -> Script:
    """What is to be read. cards: of all voices; run_voices: languages that somebody speaks for this voice;
    known: signs that the lexicon has words for.

    Raises the `RequestError` that refuses the text.
    """
    if request.markup not in card.markups:
        able = [other.name for other in cards.values() if request.markup in other.markups]
        raise BadValue(
            f"markup: a text for the voice {card.name!r} can be {' or '.join(card.markups)}",
            f"voices for {request.markup}: {', '.join(able) or 'none is loaded'}",
        )
    named: dict[str, VoiceCard] = {}

    def voice(name: str) -> None:
        named[name] = _voice(name, card, cards)

    document = parse(request.text, request.markup, voice)
    languages = tuple(dict.fromkeys((*card.languages, *run_voices)))
    others = {name: other.languages for name, other in named.items()}
    try:
        checked = check(document, languages, options, others=others, known=known)
    except UnsupportedText as error:
        able = speakers_of(document, list(cards.values()))
        offer = f"voices that can: {', '.join(able)}" if able else "none of the loaded voices can speak it"
        raise UnsupportedText(error.message, offer) from None
    return Script(checked.document, options, checked.skipped)


def _voice(name: str, card: VoiceCard, cards: Mapping[str, VoiceCard]) -> VoiceCard:
    """A voice that markup names. Audio of one job has one sample rate, so all of them must have it."""
    other = cards.get(name)
    if other is None:
        hint = f"{did_you_mean(name, cards)} voices: {', '.join(cards)}".strip()
        raise UnknownVoice(f"unknown voice {short(name)!r} in the markup", hint)
    if other.sample_rate != card.sample_rate:
        raise BadValue(
            f"the voice {name!r} in the markup has {other.sample_rate} Hz, {card.name!r} "
            f"{card.sample_rate} Hz",
            "choose a voice of the same sample rate",
        )
    return other
