"""A trial of a bundle before it is used: loaded, warmed up and heard, in a process of its own.

`run` is called by the command line; `trial_process` is the other side, which takes one `Task` on stdin and
prints one `Outcome`. What could bring the daemon down ends that process only. Neighbours: `child` runs the
process, `confine` says what it may do, `hearing` is what it does.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from subprocess import CompletedProcess, TimeoutExpired

import msgspec

from edged.errors import BundleTrialFailed, from_wire
from edged.settings import Settings
from edged.voices.child import converse, python
from edged.voices.confine import SIGNALLED

TRIAL_S = 300.0  # a large bundle on a slow card is read, loaded and heard in a minute


class Task(msgspec.Struct, frozen=True):
    """parent: the process that waits for the outcome; gpu: the bundle may use one."""

    path: str
    settings: Settings
    parent: int
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
    from edged.bundle import read_manifest  # the process of the trial imports this module before NumPy may be

    gpu = read_manifest(path).tensorrt is not None
    task = msgspec.json.encode(Task(str(path.resolve()), settings, os.getpid(), gpu))
    try:
        result = converse(python("edged.voices.trial_process"), task, TRIAL_S)
    except TimeoutExpired:
        raise BundleTrialFailed(f"{path}: the trial did not end within {TRIAL_S:g} s") from None
    try:
        outcome = msgspec.json.decode(result.stdout, type=Outcome)
    except msgspec.DecodeError:
        raise BundleTrialFailed(f"{path}: the trial {_ending(result)}") from None
    if outcome.code:
        raise from_wire(outcome.code, outcome.message, outcome.hint)
    return outcome


def _ending(result: CompletedProcess[bytes]) -> str:
    code = result.returncode
    number = -code if code < 0 else code - SIGNALLED
    if number > 0:
        return f"was ended by {_signal(number)}, as for too little memory or a network that is damaged"
    last = result.stderr.decode(errors="replace").strip().splitlines()[-1:]
    return f"ended with code {code}: {' '.join(last)}"


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # most of the real-time signals have no name
        return f"signal {number}"
