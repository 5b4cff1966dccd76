"""What a job asks for: the request's own wishes, else the configuration's, else what the voice does.

Server thread, no state. Neighbours: `admission` calls it; `protocol` and `settings` have the fields, `voices`
the cards with their controls.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from edged.controls import ANY_VOICE, LEVELS, Languages, RunVoices
from edged.errors import BadValue
from edged.job import Draw, Params
from edged.protocol import Reading, Speech
from edged.settings import Reading as ReadingSettings
from edged.settings import VoiceDefaults
from edged.text.span import Options
from edged.voices.api import VoiceCard
from edged.voices.partners import misfit

# Wire name -> attribute; of all controls that may be absent, and of those that the configuration can set.
_SETTABLE = {f.encode_name: f.name for f in msgspec.structs.fields(VoiceDefaults) if f.name != "run_voices"}
_CONTROLS = {**_SETTABLE, "show_refined": "show_refined", "speaker": "speaker"}


def resolve(
    request: Speech, defaults: VoiceDefaults, card: VoiceCard, cards: Mapping[str, VoiceCard]
) -> Params:
    """cards: of all voices, by name. Raises `BadValue` for a control that the voice does not have, or that
    contradicts another one, and for a voice that cannot speak for this one."""
    asked = _given(request, _CONTROLS)
    for name in asked:
        if name not in card.controls and name not in ANY_VOICE:
            raise BadValue(
                f"{name}: the voice {card.name!r} cannot be steered by it",
                f"it can by: {', '.join(card.controls)}; see: edged voices",
            )
    level = next((name for name in LEVELS if name in asked), "")
    if level and request.refine is False:
        raise BadValue(
            f"{level}: steers the refined text, and refine is false", "leave refine out, or set it to true"
        )
    wanted = _given(defaults, _SETTABLE)
    refine = _refines(wanted) if request.refine is None and not level else request.refine is not False
    if request.show_refined and not refine:
        raise BadValue("show_refined: there is no refined text without refine", "set refine to true as well")
    chosen = {**wanted, **asked, "refine": refine}
    if not refine:
        for name in LEVELS:
            chosen.pop(name, None)
    values = {_CONTROLS[name]: value for name, value in chosen.items()}
    values["languages"] = _draws(wanted.get("languages"), asked.get("languages"))
    values["run_voices"] = run_voices(request, defaults, card, cards)
    volume = 1.0 if request.volume is None else request.volume
    return Params(volume=volume, seed=request.seed, **values)


def run_voices(
    request: Reading, defaults: VoiceDefaults, card: VoiceCard, cards: Mapping[str, VoiceCard]
) -> dict[str, str]:
    """Who speaks what the voice cannot, by language. Raises `BadValue`.

    One that the configuration names was checked when the voices were loaded; where it is absent, because
    other voices speak instead of the configured ones, nobody speaks for this one.
    """
    found: dict[str, str] = {}
    for language in RunVoices.__struct_fields__:
        name = getattr(request.run_voices, language, "")
        if name and (wrong := misfit(name, language, card, cards)):
            raise BadValue(f"run_voices.{language}: {wrong[0]}", wrong[1])
        name = name or getattr(defaults.run_voices, language)
        if name and misfit(name, language, card, cards) is None:
            found[language] = name
    return found


def reading_options(request: Reading, settings: ReadingSettings) -> Options:
    """How the text of a request is read."""
    return Options(
        emoji=request.emoji or settings.emoji,
        digits=request.digits or settings.digits,
        date_order=request.date_order or settings.date_order,
        numbers=request.numbers or settings.numbers,
        language=request.language,
    )


def _draws(wanted: Languages | None, asked: Languages | None) -> dict[str, Draw]:
    """Field by field the request's, else the configuration's; only of languages that differ."""
    found: dict[str, Draw] = {}
    for language in Languages.__struct_fields__:
        values: dict[str, Any] = {}
        for source in (wanted, asked):
            drawn = getattr(source, language, None)
            if drawn is not None:
                values |= {n: v for n, v in msgspec.structs.asdict(drawn).items() if v is not None}
        if values:
            found[language] = Draw(**values)
    return found


def _given(source: Any, names: Mapping[str, str]) -> dict[str, Any]:
    """The controls that ask for something: neither a switch that is off nor an empty text or group does."""
    found = {name: getattr(source, attribute) for name, attribute in names.items()}
    return {n: v for n, v in found.items() if v is not None and v is not False and v not in ("", Languages())}


def _refines(wanted: Mapping[str, Any]) -> bool:
    """A level asks for the stage that it steers."""
    return "refine" in wanted or any(name in wanted for name in LEVELS)
