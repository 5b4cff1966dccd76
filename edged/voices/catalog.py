"""Which voices this daemon speaks with: finds, verifies, opens and warms up their bundles.

Loading thread: main at start, `edged-reload` later. Neighbours: the service calls it; it uses `bundle` for
the files and `load` for the families.
"""

from __future__ import annotations

import hashlib
import logging
import subprocess
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from edged.bundle import MANIFEST, Bundle, find, read_manifest
from edged.controls import ANY_VOICE, Languages, RunVoices
from edged.engine import preflight
from edged.engine.buffers import Arena
from edged.engine.plan import PlanRow
from edged.errors import (
    BundleError,
    BundleInaccurate,
    BundleMissing,
    ConfigError,
    EdgedError,
    did_you_mean,
)
from edged.log import event as log_event
from edged.paths import bundle_directories
from edged.precision import check_precision
from edged.settings import Settings, VoiceDefaults
from edged.store import Store
from edged.voices import budget
from edged.voices.api import Voice, VoiceCard
from edged.voices.child import python
from edged.voices.demand import demand
from edged.voices.load import cards, open_bundle
from edged.voices.partners import misfit

log = logging.getLogger("edged.voices")
BUILT_IN = "hibari"


@dataclass(frozen=True, slots=True)
class Source:
    """Where a configured bundle is, links followed, and its manifest's hash: it tells a changed one."""

    name: str
    path: Path
    digest: str


def sources(settings: Settings) -> tuple[Source, ...]:
    """The configured bundles as they are now. Raises `BundleError` when one is not there."""
    return tuple(source(name, settings) for name in settings.voices.bundles)


def source(name: str, settings: Settings) -> Source:
    """A bundle by name or path. Raises `BundleError` when it is not there."""
    path = _locate(name, settings)
    # Followed once: a link that is switched meanwhile must not give the files of two versions.
    return _source(name, path.resolve() if path.is_symlink() else path)


def _source(name: str, path: Path) -> Source:
    try:
        return Source(name, path, hashlib.sha256((path / MANIFEST).read_bytes()).hexdigest())
    except OSError:  # loading it will tell
        return Source(name, path, "")


def former(settings: Settings, wanted: Sequence[Source]) -> tuple[Source, ...]:
    """The same bundles, in the versions that were in use before instead of those that cannot be used.

    Where each can be read, nobody knows which one it is: then all that have a version before.
    """
    directories = bundle_directories(settings.voices.directory)
    before = {}
    damaged = []
    for source in wanted:
        store = Store(source.path.parent)
        if store.current(source.name) != source.path.name:
            continue
        if path := store.before(source.name, directories):
            before[source.name] = _source(source.name, path.resolve())
            try:
                Bundle.load(source.path)
            except BundleError:
                damaged.append(source.name)
    instead = damaged or before
    return tuple(before[s.name] if s.name in instead else s for s in wanted)


def load_voices(
    settings: Settings,
    wanted: Sequence[Source],
    arena: Arena,
    status: Callable[[str], object],
    beside: Sequence[PlanRow] = (),
    absent: Collection[str] = (),
) -> dict[str, Voice]:
    """Every voice of these bundles by name, warmed up; `beside` is memory that is in use meanwhile. absent:
    voices that the settings may name although they are in none of the bundles.

    Raises `BundleError`, `EngineError` or `ConfigError`, and then leaves nothing open.
    """
    voices: dict[str, Voice] = {}
    try:
        _load(voices, settings, wanted, arena, status, beside, absent)
    except BaseException:
        for voice in voices.values():
            with suppress(EdgedError):  # the first error counts
                voice.close()
        raise
    return voices


def _load(
    voices: dict[str, Voice],
    settings: Settings,
    wanted: Sequence[Source],
    arena: Arena,
    status: Callable[[str], object],
    beside: Sequence[PlanRow],
    absent: Collection[str],
) -> None:
    most_mb, noted = settings.service.memory_mb, [*beside, *arena.plan()]
    bundles = []
    for source in wanted:
        status(f"loading {source.name}")
        bundles.append(Bundle.load(source.path))
    _check_names(bundles)
    for bundle in bundles:
        check_machine(bundle, most_mb)
    expected = [row for bundle in bundles for row in demand(bundle, settings.engine)]
    budget.check([*noted, *expected], most_mb, bundles, settings.engine)  # before anything large is loaded
    for bundle in bundles:
        for voice in open_bundle(bundle, settings.engine, arena):
            voices[voice.card.name] = voice
    # With work arrays, and before it is resident.
    budget.check([*beside, *arena.plan()], most_mb, bundles, settings.engine)
    check_choices(settings, {name: voice.card for name, voice in voices.items()}, absent)
    for voice in voices.values():
        status(f"warming up {voice.card.name}")
        if settings.service.warmup:
            voice.warm_up()


def check_machine(bundle: Bundle, most_mb: float) -> None:
    """A bundle for TensorRT needs a GPU of its kind, and room on it. Raises `GpuUnusable`."""
    if bundle.manifest.tensorrt is None:
        return
    found = preflight.check(bundle.manifest.tensorrt, most_mb)
    log.info("%s: %s", bundle.manifest.name, found)
    try:
        check_precision(bundle.manifest)
    except BundleInaccurate as error:  # `activate` refuses it; here it is all that there may be to speak with
        log_event(log, logging.WARNING, str(error), code=error.code)


def check_choices(settings: Settings, cards: Mapping[str, VoiceCard], absent: Collection[str] = ()) -> None:
    """The settings that name voices name loaded ones, or ones that are known to be absent, as those of
    `engine.fallback` are while it is not needed."""
    default = settings.voices.default
    if any(name not in cards for name in (default, *settings.voices.defaults) if name):
        absent = {*absent, *_spare(settings)}
    if default and default not in cards and default not in absent:
        raise ConfigError(
            f"voices.default {default!r} is in none of the loaded bundles",
            f"the loaded voices are: {', '.join(cards)}",
        )
    defaults = {n: v for n, v in settings.voices.defaults.items() if n in cards or n not in absent}
    _check_defaults(defaults, cards, absent)


def _spare(settings: Settings) -> Iterator[str]:
    """The names of the voices of `engine.fallback`, as far as it can be read."""
    if name := settings.engine.fallback:
        with suppress(BundleError):
            path = find(name, bundle_directories(settings.voices.directory))
            yield from (voice.name for voice in read_manifest(path).voices)


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


def _check_defaults(
    defaults: Mapping[str, VoiceDefaults], cards: Mapping[str, VoiceCard], absent: Collection[str]
) -> None:
    """Each is of a loaded voice, sets only what the voice can be steered by, and names only voices that can
    speak for it."""
    for name, wanted in defaults.items():
        card = cards.get(name)
        if card is None:
            hint = f"{did_you_mean(name, cards)} the loaded voices are: {', '.join(cards)}".strip()
            raise ConfigError(f"voices.defaults: {name!r} is in none of the loaded bundles", hint)
        for language in RunVoices.__struct_fields__:
            partner = getattr(wanted.run_voices, language)
            if partner and partner not in absent and (wrong := misfit(partner, language, card, cards)):
                raise ConfigError(f"voices.defaults.{name}.run_voices.{language}: {wrong[0]}", wrong[1])
        for control in msgspec.structs.fields(VoiceDefaults):
            value = getattr(wanted, control.name)
            if value is None or value is False or value == Languages() or control.name == "run_voices":
                continue
            if control.encode_name not in (*card.controls, *ANY_VOICE):
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
    command = python("edged", "bundle", "build", name)
    result = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if result.returncode:
        last = result.stderr.strip().splitlines()[-2:] or [f"exit code {result.returncode}"]
        raise BundleMissing(f"the built-in voice could not be built: {' '.join(last)}")
