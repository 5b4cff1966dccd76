"""Hears a bundle as the daemon would: loads it, warms it up, and listens to its golden utterance.

Main thread of the process of a trial, which is confined by then. Neighbours: `trial_process` calls it;
`load`, `budget` and `golden` are the daemon's own.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from time import monotonic

import numpy as np

from edged.bundle import Bundle, find
from edged.engine.buffers import Arena
from edged.engine.plan import bound_row
from edged.errors import BundleError, BundleTrialFailed, PlanTooLarge
from edged.job import Params
from edged.paths import bundle_directories
from edged.settings import Settings
from edged.voices import budget, golden
from edged.voices.catalog import check_choices, check_machine
from edged.voices.confine import BESIDE_MB
from edged.voices.demand import demand
from edged.voices.load import cards, open_bundle
from edged.voices.trial import Outcome, Task

_TEXT = "One, two, three."  # for a bundle without a golden utterance


def hear(task: Task) -> Outcome:
    """Loads the bundle as the daemon would, beside the other voices of its settings, and listens to it."""
    begin = monotonic()
    settings, path = task.settings, Path(task.path)
    bundle = Bundle.load(path)
    arena = Arena()
    arena.note(bound_row("limits.reply_mb", settings.limits.reply_mb << 20))
    others = _others(bundle.manifest.name, settings)
    bundles = [bundle, *(others or ())]
    beside = [row for other in bundles[1:] for row in demand(other, settings.engine)]
    most_mb = settings.service.memory_mb
    check_machine(bundle, most_mb)
    expected = demand(bundle, settings.engine)
    budget.check([*arena.plan(), *beside, *expected], most_mb, bundles, settings.engine)
    voices = open_bundle(bundle, settings.engine, arena)
    budget.check([*arena.plan(), *beside], most_mb, bundles, settings.engine)
    if others is not None:
        chosen = {card.name: card for other in others for card in cards(other)}
        check_choices(settings, chosen | {voice.card.name: voice.card for voice in voices})
    for voice in voices:
        voice.warm_up()
    arena.seal()
    if bundle.manifest.golden is not None:
        golden.check(voices[0], bundle.manifest.golden)
    else:
        samples = golden.speak(voices[0], _TEXT, Params())
        if not np.isfinite(samples).all() or not samples.any():
            raise BundleTrialFailed(f"{path}: the voice {voices[0].card.name} makes no sound")
    peak_mb = _peak_mb()
    if peak_mb > most_mb + BESIDE_MB:
        raise PlanTooLarge(f"the trial took {peak_mb:.0f} MB, service.memory_mb allows {most_mb}")
    names = tuple(voice.card.name for voice in voices)
    return Outcome(seconds=round(monotonic() - begin, 2), peak_mb=round(peak_mb, 1), voices=names)


def _others(name: str, settings: Settings) -> list[Bundle] | None:
    """The bundles that the daemon has loaded beside this one; None if it does not load this one at all."""
    directories = bundle_directories(settings.voices.directory)
    others = []
    loaded = False
    for wanted in settings.voices.bundles:
        try:
            found = Bundle.load(find(wanted, directories), verify=False)
        except BundleError:  # it is not this bundle's fault
            loaded |= wanted == name
            continue
        if found.manifest.name == name:
            loaded = True
        else:
            others.append(found)
    return others if loaded else None


def _peak_mb() -> float:
    with suppress(OSError, ValueError):
        for line in Path("/proc/self/status").read_text("ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024 / 1e6
    return 0.0
