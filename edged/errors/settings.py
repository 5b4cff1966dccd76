"""Errors of the configuration, and of what is not installed. Neighbours: `base`, `remedies`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from edged.errors import remedies
from edged.errors.base import EdgedError


@dataclass(frozen=True)
class Problem:
    """One thing wrong with a configuration file; line and column count from 1, 0 means the whole file."""

    file: str
    line: int
    key: str  # dotted path, "audio.latency_ms"; empty when no single setting is meant
    message: str
    expected: str = ""
    hint: str = ""
    column: int = 0

    def __str__(self) -> str:
        # FILE:LINE:COLUMN is what editors and terminals turn into a link.
        place = ":".join([self.file, *(str(n) for n in (self.line, self.column) if n)])
        key = f" {self.key}:" if self.key else ""
        hint = f" ({self.hint})" if self.hint else ""
        return f"{place}:{key} {self.message}{hint}"


class ConfigError(EdgedError):
    """`problems` holds everything found in the file, in its order, when a file was read."""

    code = "config"
    default_hint = "check the file with: edged check-config FILE"
    problems: tuple[Problem, ...] = ()

    @classmethod
    def of(cls, problems: Sequence[Problem], more: int = 0) -> ConfigError:
        """One error that lists every problem, one line each, and says how many more there are."""
        ordered = tuple(sorted(problems, key=lambda p: (p.line, p.column)))
        if more:
            ordered += (Problem(ordered[-1].file, ordered[-1].line, "", f"and {more} more problems"),)
        lines = [str(problem) for problem in ordered]
        if len(lines) > 1:
            lines.insert(0, f"{len(problems) + more} problems in the configuration:")
        error = cls("\n".join(lines), hint="")  # every problem carries its own hint
        error.problems = ordered
        return error


class PlanTooLarge(ConfigError):
    """The message has the numbers, the hint the settings that would make it fit."""

    code = "memory_plan"
    default_hint = "load fewer or smaller voices, or raise service.memory_mb"


class MissingExtra(EdgedError):
    """An optional dependency is absent. The hint names the extra that brings it."""

    code = "missing_extra"

    def __init__(self, module: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the Python package {module!r}, which is not installed",
            remedies.install(extra),
        )
