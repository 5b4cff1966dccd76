"""What a rule is: a bounded pattern, and a function that reads what it matched or leaves it to the next.

Rules are tried in order; what one has read no later one sees (it is masked in the view), so every rule only
has to know what comes before it. Leaf module of the package. Neighbours: all modules with rules, `reader.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from edged.text.span import Options, Span

MASK = "\ue000"  # private use: no pattern but those that look for it matches it


@dataclass(frozen=True, slots=True)
class Scene:
    """What rules may look at besides their match. view: the whole text, unmasked."""

    view: str
    options: Options

    def before(self, start: int, most: int = 16) -> str:
        return self.view[max(0, start - most) : start]

    def after(self, end: int, most: int = 8) -> str:
        return self.view[end : end + most]


@dataclass(frozen=True, slots=True)
class Rule:
    """needs: characters of which a text must have one to be searched; "" searches every text."""

    pattern: re.Pattern[str]
    read: Callable[[re.Match[str], Scene], Span | None]
    needs: str = ""


def collect(rules: Sequence[Rule], scene: Scene) -> list[Span]:
    """The spans of all rules, ascending."""
    masked = scene.view
    have = set(masked)
    found: list[Span] = []
    for rule in rules:
        if rule.needs and have.isdisjoint(rule.needs):
            continue
        fresh: list[Span] = []
        end = 0
        for match in rule.pattern.finditer(masked):
            if match.start() < end:
                continue  # the span before reaches further than its match
            span = rule.read(match, scene)
            if span is not None and span.start >= end and MASK not in masked[span.start : span.end]:
                fresh.append(span)
                end = span.end
        if fresh:
            masked = _mask(masked, fresh)
            found += fresh
    return sorted(found, key=lambda span: span.start)


def _mask(view: str, spans: Sequence[Span]) -> str:
    parts: list[str] = []
    place = 0
    for span in spans:
        parts += (view[place : span.start], MASK * (span.end - span.start))
        place = span.end
    return "".join((*parts, view[place:]))


def whole(match: re.Match[str], spoken: str, kind: str) -> Span:
    """A span of all that was matched."""
    return Span(match.start(), match.end(), spoken, kind)
