"""Opens the voices of a bundle by its family. Loading thread; a family's package is imported only here.

Neighbours: the service above, one package per family below.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from edged import settings
from edged.bundle import Bundle
from edged.controls import COMMON, GENERATIVE
from edged.engine.buffers import Arena
from edged.errors import BundleFamilyUnknown
from edged.voices.api import Voice, VoiceCard

Opener = Callable[[Bundle, settings.Engine, Arena], "list[Voice]"]

_MARKUPS = ("plain", "ssml")
# Family -> its package, what steers its voices, and what a text for them may be written in.
_FAMILIES: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "chattts": ("edged.voices.chattts", GENERATIVE, (*_MARKUPS, "chattts")),
    "hibari": ("edged.voices.hibari", COMMON, _MARKUPS),
    "tone": ("edged.voices.tone", COMMON, _MARKUPS),
}


def open_bundle(bundle: Bundle, config: settings.Engine, arena: Arena) -> list[Voice]:
    """Loads the engines of a bundle into the arena and returns its voices, not warmed up yet."""
    family = _FAMILIES.get(bundle.manifest.family)
    if family is None:
        raise BundleFamilyUnknown(f"{bundle.path}: voice family {bundle.manifest.family!r} is unknown")
    package, *_ = family
    opener: Opener = import_module(package).open_bundle
    return opener(bundle, config, arena)


def cards(bundle: Bundle) -> list[VoiceCard]:
    """What the manifest tells about the voices; loads nothing."""
    manifest = bundle.manifest
    _, controls, markups = _FAMILIES.get(manifest.family, ("", COMMON, _MARKUPS))
    return [
        VoiceCard(
            name=voice.name,
            family=manifest.family,
            languages=voice.languages,
            sample_rate=manifest.sample_rate,
            description=voice.description,
            licence=manifest.licence.weights,
            bundle=manifest.name,
            controls=controls,
            markups=markups,
            loudness_lufs=voice.loudness_lufs,
        )
        for voice in manifest.voices
    ]
