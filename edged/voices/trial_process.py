"""The process of a trial: takes a `Task` on stdin, confines itself, and prints an `Outcome`.

Main thread. It may not take more memory than the daemon, is the first that the kernel kills when memory is
short, gives way to speech that is being made, and ends with the process that began it. Neighbour: `trial`.
"""

from __future__ import annotations

import os
import sys

import msgspec

from edged.errors import EdgedError, PlanTooLarge
from edged.voices.confine import confine
from edged.voices.trial import TRIAL_S, Outcome, Task


def main() -> None:
    task = msgspec.json.decode(sys.stdin.buffer.read(), type=Task)
    confine(task.settings.service.memory_mb, task.parent, TRIAL_S, task.gpu)
    try:
        from edged.voices.hearing import hear  # not before: NumPy begins threads, which `confine` would miss

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
