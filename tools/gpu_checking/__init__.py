"""The checks of tools/gpu_check: functions that give figures, raise `Skip` for what is missing, or fail."""

from __future__ import annotations


class Skip(Exception):
    """The check cannot be done on this machine; the message says what it would need."""


def require(fact: bool, what: str) -> None:
    """Fails the check."""
    if not fact:
        raise AssertionError(what)
