"""Which bundles the daemon loads: the configured ones, or others in the place of those that cannot be used.

`engine.fallback` stands in for bundles that need a GPU, the version before for any bundle of the store.
Loading thread: main at start, `edged-reload` later. Neighbours: `takeover` chooses, `catalog` loads.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace

from edged import log
from edged.engine import preflight
from edged.errors import (
    BundleError,
    ConfigError,
    EdgedError,
    EngineError,
    GpuUnusable,
    MissingExtra,
    PlanTooLarge,
)
from edged.manifest import Manifest, read_manifest
from edged.settings import Settings
from edged.voices.catalog import Source, former, source, sources

logger = logging.getLogger("edged.voices")
# What may be the fault of a bundle for a GPU. Where it is another bundle's, that one is among those that are
# loaded instead, and fails again. What the settings say wrongly, no other bundle makes right.
EXCUSES = (EngineError, MissingExtra, BundleError, PlanTooLarge)


@dataclass(frozen=True, slots=True)
class Choice:
    """absent: voices of the bundles that `engine.fallback` stands in for; the settings may name them.

    told, remark: for the log and for the status, when it is not what was configured.
    """

    sources: tuple[Source, ...]
    absent: frozenset[str] = frozenset()
    told: str = ""
    remark: str = ""


def configured(settings: Settings) -> Choice:
    """Raises `BundleError` when a bundle is not there."""
    return Choice(sources(settings))


def because(instead: Choice, reason: EdgedError) -> Choice | None:
    """The same with the reason in its remark; None where that is none for `engine.fallback`."""
    if not instead.absent:
        return instead
    if not isinstance(reason, EXCUSES):
        return None
    return replace(instead, remark=f"{instead.remark}: {reason.code}")


def others(settings: Settings, wanted: Choice) -> Iterator[Choice]:
    """What could be loaded instead, the best first. One that cannot even be found is told and left out."""
    try:
        if (spare := fallback(settings, wanted)) is not None:
            yield spare
    except EdgedError as error:
        log.event(logger, logging.ERROR, f"engine.fallback cannot be used: {error}", code=error.code)
    before = former(settings, wanted.sources)
    if before != wanted.sources:
        left = [each for each in wanted.sources if each not in before]
        yield Choice(
            before,
            told="a bundle cannot be used, the version before speaks instead",
            remark=f"{', '.join(each.path.name for each in left)} cannot be used",
        )


def fallback(settings: Settings, wanted: Choice) -> Choice | None:
    """`engine.fallback` in the place of the bundles for TensorRT; None where there is no use for it."""
    name = settings.engine.fallback
    left = [(each, found) for each in wanted.sources if (found := _manifest(each)) and found.tensorrt]
    if not name or not left:
        return None
    spare = source(name, settings)
    found = read_manifest(spare.path)
    if found.tensorrt:
        raise ConfigError(
            f"engine.fallback: {name!r} needs a GPU, too", "name a bundle that was built for onnxruntime"
        )
    replaced = [each for each, _ in left]
    # Resolved, as the same folder can be named in several ways.
    there = any(each.path.resolve() == spare.path.resolve() for each in wanted.sources)
    loaded = []
    for each in wanted.sources:
        if each not in replaced:
            loaded.append(each)
        elif not there:  # in its place, as the first voice of all is the default one
            loaded.append(spare)
            there = True
    named = ", ".join(each.name for _, each in left)
    return Choice(
        tuple(loaded),
        absent=frozenset(voice.name for _, each in left for voice in each.voices),
        told=f"{named} cannot be used, {found.name} (engine.fallback) speaks instead",
        remark=f"{named} cannot be used, {found.name} speaks instead",
    )


def lacking(settings: Settings, wanted: Choice) -> GpuUnusable | None:
    """What this machine lacks of what the bundles need of a GPU."""
    try:
        for each in wanted.sources:
            if (found := _manifest(each)) and found.tensorrt:
                preflight.check(found.tensorrt, settings.service.memory_mb)
    except GpuUnusable as error:
        return error
    return None


def expected(instead: Choice, reason: EdgedError) -> bool:
    """Whether this choice is made for such a case: a machine without its GPU is expected where a fallback is
    configured, a broken bundle never is."""
    return bool(instead.absent) and isinstance(reason, (GpuUnusable, MissingExtra))


def _manifest(source: Source) -> Manifest | None:
    """None where it cannot be read, which loading it will tell."""
    try:
        return read_manifest(source.path)
    except BundleError:
        return None
