"""A trial of a bundle before it is used: loaded, warmed up and heard, in a process of its own.

`run` is called by the command line; `python -m edged.voices.trial` is the other side, which takes one `Task`
on stdin and prints one `Outcome`. What could bring the daemon down ends that process only: it may not take
more memory than the daemon, is the first that the kernel kills when memory is short, gives way to speech that
is being made, and ends with the process that began it. Neighbours: `load`, `budget`, `golden`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from time import monotonic

import msgspec
import numpy as np

from edged.bundle import Bundle, find, read_manifest
from edged.engine.buffers import Arena
from edged.engine.plan import bound_row
from edged.errors import BundleError, BundleTrialFailed, EdgedError, PlanTooLarge, from_wire
from edged.job import Params
from edged.paths import bundle_directories
from edged.settings import Settings
from edged.voices import budget, golden
from edged.voices.catalog import check_choices, check_machine
from edged.voices.confine import BESIDE_MB, confine
from edged.voices.demand import demand
from edged.voices.load import cards, open_bundle

TRIAL_S = 300.0  # a large bundle on a slow card is read, loaded and heard in a minute
_TEXT = "One, two, three."  # for a bundle without a golden utterance


class Task(msgspec.Struct, frozen=True):
    """gpu: the bundle may use one."""

    path: str
    settings: Settings
    gpu: bool


class Outcome(msgspec.Struct, frozen=True):
    """code: of the error that refuses the bundle, empty when it passed. peak_mb: resident, of the process."""

    code: str = ""
    message: str = ""
    hint: str = ""
    seconds: float = 0.0
    peak_mb: float = 0.0
    voices: tuple[str, ...] = ()


def run(path: Path, settings: Settings) -> Outcome:
    """Tries a bundle with these settings. Raises the `EdgedError` that refuses it."""
    gpu = read_manifest(path).tensorrt is not None
    task = msgspec.json.encode(Task(str(path.resolve()), settings, gpu))
    command = [sys.executable, "-m", "edged.voices.trial"]
    try:
        result = subprocess.run(command, input=task, capture_output=True, timeout=TRIAL_S, check=False)
    except subprocess.TimeoutExpired:
        raise BundleTrialFailed(f"{path}: the trial did not end within {TRIAL_S:g} s") from None
    try:
        outcome = msgspec.json.decode(result.stdout, type=Outcome)
    except msgspec.DecodeError:
        raise BundleTrialFailed(f"{path}: the trial {_ending(result)}") from None
    if outcome.code:
        raise from_wire(outcome.code, outcome.message, outcome.hint)
    return outcome


def _ending(result: subprocess.CompletedProcess[bytes]) -> str:
    if result.returncode < 0:
        name = signal.Signals(-result.returncode).name
        return f"was ended by {name}, as for too little memory or a network that is damaged"
    last = result.stderr.decode(errors="replace").strip().splitlines()[-1:]
    return f"ended with code {result.returncode}: {' '.join(last)}"


# -- the other side -----------------------------------------------------------------------------


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


def main() -> None:
    task = msgspec.json.decode(sys.stdin.buffer.read(), type=Task)
    confine(task.settings.service.memory_mb, task.gpu)
    try:
        outcome = hear(task)
    except EdgedError as error:
        outcome = Outcome(error.code, error.message, error.hint)
    except MemoryError:
        budget_mb = task.settings.service.memory_mb
        outcome = Outcome(PlanTooLarge.code, f"the trial needs more than the {budget_mb} MB allowed")
    sys.stdout.buffer.write(msgspec.json.encode(outcome))
    sys.stdout.flush()
    os._exit(0)  # taking the networks down is no part of the trial


if __name__ == "__main__":
    main()
