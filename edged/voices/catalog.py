"""Which voices this daemon speaks with: finds, verifies, opens and warms up their bundles.

Main thread, at start. Neighbours: the service calls it; it uses `bundle` for the files and
`load` for the families.
"""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from edged.bundle import Bundle, find
from edged.engine.buffers import Arena
from edged.errors import BundleMissing, ConfigError, did_you_mean
from edged.paths import bundle_directories
from edged.settings import Settings, VoiceDefaults
from edged.voices import budget
from edged.voices.api import Voice, VoiceCard
from edged.voices.demand import demand
from edged.voices.load import cards, open_bundle

log = logging.getLogger("edged.voices")
BUILT_IN = "hibari"


def load_voices(settings: Settings, arena: Arena, status: Callable[[str], object]) -> dict[str, Voice]:
    """Every voice of the configured bundles by name, warmed up. Raises `BundleError` or `ConfigError`."""
    voices: dict[str, Voice] = {}
    most_mb, noted = settings.service.memory_mb, arena.plan()
    bundles = []
    for name in settings.voices.bundles:
        status(f"loading {name}")
        bundles.append(Bundle.load(_locate(name, settings)))
    _check_names(bundles)
    expected = [row for bundle in bundles for row in demand(bundle, settings.engine)]
    budget.check([*noted, *expected], most_mb, bundles, settings.engine)  # before anything large is loaded
    for bundle in bundles:
        for voice in open_bundle(bundle, settings.engine, arena):
            voices[voice.card.name] = voice
    budget.check(arena.plan(), most_mb, bundles, settings.engine)  # with work arrays, before it is resident
    default = settings.voices.default
    if default and default not in voices:
        raise ConfigError(
            f"voices.default {default!r} is in none of the loaded bundles",
            f"the loaded voices are: {', '.join(voices)}",
        )
    _check_defaults(settings.voices.defaults, {name: voice.card for name, voice in voices.items()})
    for voice in voices.values():
        status(f"warming up {voice.card.name}")
        if settings.service.warmup:
            voice.warm_up()
    return voices


def _check_names(bundles: Sequence[Bundle]) -> None:
    """Names are told apart before anything is loaded: clients know voices, buffers their bundle's name."""
    owners: dict[str, Bundle] = {}
    speakers: dict[str, Bundle] = {}
    for bundle in bundles:
        name = bundle.manifest.name
        first = owners.setdefault(name, bundle)
        if first is not bundle:
            raise ConfigError(
                f"two bundles have the name {name!r}: {first.path} and {bundle.path}",
                "load one of them (voices.bundles), or build one anew with --set name=OTHER",
            )
        for card in cards(bundle):
            first = speakers.setdefault(card.name, bundle)
            if first is not bundle:
                raise ConfigError(
                    f"two bundles have a voice named {card.name!r}: {first.path} and {bundle.path}",
                    "load one of them: voices.bundles",
                )


def _check_defaults(defaults: Mapping[str, VoiceDefaults], cards: Mapping[str, VoiceCard]) -> None:
    """Each is of a loaded voice, and sets only what the voice can be steered by."""
    for name, wanted in defaults.items():
        card = cards.get(name)
        if card is None:
            hint = f"{did_you_mean(name, cards)} the loaded voices are: {', '.join(cards)}".strip()
            raise ConfigError(f"voices.defaults: {name!r} is in none of the loaded bundles", hint)
        for control in msgspec.structs.fields(VoiceDefaults):
            value = getattr(wanted, control.name)
            if value is not None and value is not False and control.encode_name not in card.controls:
                raise ConfigError(
                    f"voices.defaults.{name}.{control.encode_name}: this voice cannot be steered by it",
                    f"it can by: {', '.join(card.controls)}",
                )


def _locate(name: str, settings: Settings) -> Path:
    """A bundle's folder by path or by name; the built-in one is built when it is wanted and absent."""
    directories = bundle_directories(settings.voices.directory)
    try:
        return find(name, directories)
    except BundleMissing:
        if name != BUILT_IN:
            raise
    _build(name)
    path = find(name, directories)
    log.info("built the built-in voice bundle in %s", path)
    return path


def _build(name: str) -> None:
    """Builds the built-in bundle in a process of its own: the compiler stays out of the daemon."""
    log.info("building the built-in voice bundle, once; this takes some seconds")
    command = [sys.executable, "-m", "edged", "bundle", "build", name]
    result = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if result.returncode:
        last = result.stderr.strip().splitlines()[-2:] or [f"exit code {result.returncode}"]
        raise BundleMissing(f"the built-in voice could not be built: {' '.join(last)}")
