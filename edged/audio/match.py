"""Which devices a setting means: by their exact name, by a shell pattern, or by a part of the name.

Leaf of `edged.audio`, no thread. Neighbours: `find` asks for the order of devices, `device` for settings.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

import msgspec

from edged.settings import Audio, Device

SAME = ("latency_ms", "lead_in_ms", "trail_ms", "keep_open_s")  # as they are called in Audio, too


def entries(settings: Audio) -> list[str]:
    """What `audio.device` names, in the order in which it is tried; "" is the system's default."""
    return [settings.device] if isinstance(settings.device, str) else list(settings.device)


def matching(wanted: str, names: Sequence[str]) -> list[int]:
    """Positions of the names that are meant: exact ones first, then by pattern, then by part, in any case."""
    pattern = wanted.casefold()
    folded = [name.casefold() for name in names]
    exact = [i for i, name in enumerate(names) if name == wanted]
    by_pattern = [i for i, name in enumerate(folded) if fnmatchcase(name, pattern)]
    by_part = [i for i, name in enumerate(folded) if pattern and pattern in name]
    return list(dict.fromkeys([*exact, *by_pattern, *by_part]))


def entry_of(settings: Audio, name: str, default: bool) -> int:
    """The place in `audio.device` of the first entry that means this device, from 1; 0 if none does."""
    for place, wanted in enumerate(entries(settings), 1):
        if matching(wanted, [name]) if wanted else default:
            return place
    return 0


def device_settings(settings: Audio, name: str) -> Device | None:
    """The first of `audio.devices` that means this device."""
    return next((device for device in settings.devices if matching(device.match, [name])), None)


def settings_for(settings: Audio, name: str) -> Audio:
    """The settings with what differs for this device."""
    device = device_settings(settings, name)
    if device is None:
        return settings
    given = {field: value for field in SAME if (value := getattr(device, field)) is not None}
    return msgspec.structs.replace(settings, **given)


def longest_latency_ms(settings: Audio) -> int:
    """Of all devices that the settings know of."""
    return max(settings.latency_ms, *(device.latency_ms or 0 for device in settings.devices), 0)
