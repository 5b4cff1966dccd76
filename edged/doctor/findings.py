"""What a check found, and the one place that runs checks: a fault of one never hides the others.

Main thread. Neighbours: the modules of checks make findings, `edged.cli.doctor` shows them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from edged.errors import EdgedError, InternalError
from edged.settings import Settings

if TYPE_CHECKING:
    from edged.client import Client
    from edged.protocol import StatusReply

State = Literal["ok", "warning", "failed", "skipped"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report. remedy: what to do about it; code: of the error, where it was one."""

    name: str
    state: State
    message: str
    remedy: str = ""
    code: str = ""

    @classmethod
    def of(cls, name: str, error: EdgedError, state: State = "failed") -> Finding:
        return cls(name, state, error.message, error.hint, error.code)


@dataclass(frozen=True, slots=True)
class Case:
    """What the checks are about. status: of the daemon, or why there is none.

    tone: a test tone may be played.
    """

    settings: Settings
    endpoint: str
    client: Callable[[], Client]
    status: StatusReply | EdgedError
    tone: bool = False


Check = Callable[[Case], Iterable[Finding]]


def run(case: Case, checks: Iterable[tuple[str, Check]]) -> Iterator[Finding]:
    """The findings of all checks, each as soon as it is there."""
    for name, check in checks:
        try:
            yield from check(case)
        except EdgedError as error:
            yield Finding.of(name, error)
        except Exception as exc:  # a check that meets what nobody foresaw
            text = f"the check itself failed: {type(exc).__name__}: {exc}"
            yield Finding(name, "failed", text, InternalError.default_hint, InternalError.code)
