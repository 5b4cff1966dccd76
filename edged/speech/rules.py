"""What a job does to one that is heard: the manners of speech-dispatcher's classes, as a table.

Pure functions, no state. Neighbours: `queue` goes by them, `options` has the wishes. README tells the table.
"""

from __future__ import annotations

import enum

from edged.job import Priority
from edged.speech.options import Wish

# Whom a class interrupts while he is heard, when it may.
INTERRUPTS: dict[Priority, frozenset[Priority]] = {
    Priority.IMPORTANT: frozenset(
        {Priority.MESSAGE, Priority.TEXT, Priority.NOTIFICATION, Priority.PROGRESS}
    ),
    Priority.MESSAGE: frozenset({Priority.TEXT, Priority.NOTIFICATION, Priority.PROGRESS}),
    Priority.TEXT: frozenset({Priority.NOTIFICATION, Priority.PROGRESS}),
    Priority.NOTIFICATION: frozenset({Priority.PROGRESS}),
    Priority.PROGRESS: frozenset(),
}


class Reaction(enum.Enum):
    """What happens when a job comes while another is heard."""

    WAIT = "wait"  # the new one waits for its turn
    BUSY = "busy"  # the new one is dropped
    PAUSE = "pause"  # the current one is paused for the new one
    DROP = "drop"  # the current one is dropped for the new one
    REPLACE = "replace"  # the current one, of the same client, is dropped; then as if it had not been


def reaction(new: Wish, current: Wish) -> Reaction:
    """What a job that comes does to one that is heard."""
    if replaces(new, current):
        return Reaction.REPLACE
    if new.drop_if_busy:
        return Reaction.BUSY
    if interrupts(new, current):
        return Reaction.DROP if current.after_interrupt == "drop" else Reaction.PAUSE
    return Reaction.WAIT


def interrupts(new: Wish, current: Wish) -> bool:
    """Whether it takes the loudspeaker from the one that is heard, once it has audio."""
    return new.interrupt and current.priority in INTERRUPTS[new.priority]


def replaces(new: Wish, old: Wish) -> bool:
    """Whether an older job, heard or waiting, is dropped when this one comes."""
    return new.replace == "own" and new.owner == old.owner and new.priority is old.priority
