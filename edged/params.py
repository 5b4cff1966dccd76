"""What a job's `Params` are: the request's own wishes, else the configuration's, else what the voice does.

Server thread, no state. Neighbours:
`admission` calls it; `protocol` and `settings` have the fields, `voices` the cards with their controls.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from edged.controls import LEVELS
from edged.errors import BadValue
from edged.job import Params
from edged.protocol import Speech
from edged.settings import VoiceDefaults
from edged.voices.api import VoiceCard

# Wire name -> attribute; of all controls that may be absent, and of those that the configuration can set.
_SETTABLE = {f.encode_name: f.name for f in msgspec.structs.fields(VoiceDefaults)}
_CONTROLS = {**_SETTABLE, "show_refined": "show_refined", "speaker": "speaker"}


def resolve(request: Speech, defaults: VoiceDefaults, card: VoiceCard) -> Params:
    """Raises `BadValue` for a control that the voice does not have, or that contradicts another one."""
    asked = _given(request, _CONTROLS)
    for name in asked:
        if name not in card.controls:
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
    return Params(volume=request.volume, seed=request.seed, **values)


def _given(source: Any, names: Mapping[str, str]) -> dict[str, Any]:
    """The controls that ask for something: neither a switch that is off nor an empty text does."""
    found = {name: getattr(source, attribute) for name, attribute in names.items()}
    return {n: v for n, v in found.items() if v is not None and v is not False and v != ""}


def _refines(wanted: Mapping[str, Any]) -> bool:
    """A level asks for the stage that it steers."""
    return "refine" in wanted or any(name in wanted for name in LEVELS)
