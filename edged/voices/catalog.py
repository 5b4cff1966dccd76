"""Which voices this daemon speaks with: finds, verifies, opens and warms up their bundles.

Main thread, at start. Neighbours: the service calls it; it uses `bundle` for the files and
`load` for the families.
"""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from edged.bundle import Bundle, find
from edged.engine.buffers import Arena
from edged.errors import BundleMissing, ConfigError
from edged.paths import bundle_directories
from edged.settings import Settings
from edged.voices import budget
from edged.voices.api import Voice
from edged.voices.demand import demand
from edged.voices.load import open_bundle

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
    expected = [row for bundle in bundles for row in demand(bundle, settings.engine)]
    budget.check([*noted, *expected], most_mb, bundles, settings.engine)  # before anything large is loaded
    for bundle in bundles:
        for voice in open_bundle(bundle, settings.engine, arena):
            if voice.card.name in voices:
                raise ConfigError(
                    f"two bundles have a voice named {voice.card.name!r}", "load one of them: voices.bundles"
                )
            voices[voice.card.name] = voice
    budget.check(arena.plan(), most_mb, bundles, settings.engine)  # with work arrays, before it is resident
    default = settings.voices.default
    if default and default not in voices:
        raise ConfigError(
            f"voices.default {default!r} is in none of the loaded bundles",
            f"the loaded voices are: {', '.join(voices)}",
        )
    for voice in voices.values():
        status(f"warming up {voice.card.name}")
        if settings.service.warmup:
            voice.warm_up()
    return voices


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
