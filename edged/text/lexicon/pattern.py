"""Regular expressions that a lexicon may hold: a bounded part of the language, with a reason where it ends.

Python's matcher tries one way after another to fit an expression to a text. Here the number of ways is
counted when the file is read, whatever the text will be, and so is the longest match; with both bounded, a
search is linear in the text. Pure, any thread. Neighbours: `read` checks patterns, `match` compiles them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache

LONGEST = 256  # characters of a pattern
MOST_REPEATS = 64
MOST_WAYS = 128  # to fit one pattern
LONGEST_MATCH = 256  # characters of a text
DEEPEST = 10  # groups in groups
_ESCAPED = frozenset("\\.^$*+?{}[]()|/-&~#@%!\"',:;<>=_` ")
_CLASSES = {"d": "[0-9]", "w": "[0-9A-Za-z_]"}
_WHY = {
    "*": "* has no bound: write {0,64} or fewer",
    "+": "+ has no bound: write {1,64} or fewer",
    ".": "a point stands for any character, which is not taken: write \\. for a point itself",
    "^": "^ is not needed: an entry matches whole words",
    "$": "$ is not needed: an entry matches whole words",
    ")": "there is a ) without its (",
    "]": "there is a ] without its [: write \\] for the sign itself",
    "{": "there is nothing before { that could be repeated: write \\{ for the sign itself",
    "}": "there is a } without its {: write \\} for the sign itself",
    "?": "there is nothing before ? that could be left out: write \\? for the sign itself",
}


@dataclass(frozen=True, slots=True)
class Shape:
    """What is known of an expression without a text.

    least, most: characters of a match. ways: the matcher can try, at most. literal: what every match begins
    with, and plain: whether that is all of it. firsts: expressions of one character each that a match can
    begin with. groups: that can be written as \\1 and so on.
    """

    least: int = 0
    most: int = 0
    ways: int = 1
    literal: str = ""
    plain: bool = True
    firsts: tuple[str, ...] = ()
    groups: int = 0


@lru_cache(maxsize=2_048)  # asked for several times while a lexicon is loaded
def shape(pattern: str) -> Shape:
    """Checks an expression. Raises `ValueError`, which says in plain words what is not taken."""
    if len(pattern) > LONGEST:
        raise ValueError(f"the pattern has more than {LONGEST} characters")
    reader = _Reader(pattern)
    found = reader.alternatives(0)
    if reader.at < len(pattern):
        raise ValueError(_WHY[")"])
    if not found.least:
        raise ValueError("the pattern also fits where there is nothing")
    if found.most > LONGEST_MATCH:
        raise ValueError(f"the pattern can fit more than {LONGEST_MATCH} characters")
    if found.ways > MOST_WAYS:
        raise ValueError(
            f"the pattern can be tried in more than {MOST_WAYS} ways: use fewer or narrower ? and {{m,n}}"
        )
    try:
        re.compile(pattern)
    except (re.error, OverflowError) as error:  # nothing known; better told than trusted
        raise ValueError(f"the pattern is no regular expression: {error}") from error
    return replace(found, groups=reader.groups)


class _Reader:
    """Reads an expression from left to right."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0
        self.groups = 0

    def alternatives(self, depth: int) -> Shape:
        if depth > DEEPEST:
            raise ValueError(f"groups are more than {DEEPEST} deep")
        branches = [self._sequence(depth)]
        while self._next() == "|":
            self.at += 1
            branches.append(self._sequence(depth))
        if len(branches) == 1:
            return branches[0]
        return Shape(
            min(branch.least for branch in branches),
            max(branch.most for branch in branches),
            _capped(sum(branch.ways for branch in branches)),
            _shared([branch.literal for branch in branches]),
            False,
            tuple(first for branch in branches for first in branch.firsts),
        )

    def _sequence(self, depth: int) -> Shape:
        whole = Shape()
        while self._next() not in ("", "|", ")"):
            part = self._repeated(self._atom(depth))
            whole = Shape(
                whole.least + part.least,
                _capped(whole.most + part.most),
                _capped(whole.ways * part.ways),
                whole.literal + part.literal if whole.plain else whole.literal,
                whole.plain and part.plain,
                whole.firsts if whole.least else whole.firsts + part.firsts,
            )
        return whole

    def _repeated(self, part: Shape) -> Shape:
        character = self._next()
        if character == "?":
            self.at += 1
            low, high = 0, 1
        elif character == "{":
            low, high = self._numbers()
        elif character and character in "*+":
            raise ValueError(_WHY[character])
        else:
            return part
        if self._next() and self._next() in "?*+{":
            raise ValueError("a repeat stands right behind another one")
        ways, power = 0, _capped(part.ways ** min(low, 20))
        for _ in range(low, high + 1):
            ways = _capped(ways + power)
            power = _capped(power * part.ways)
        firsts = part.firsts if high else ()
        literal = part.literal if low else ""
        return Shape(part.least * low, _capped(part.most * high), ways, literal, False, firsts)

    def _numbers(self) -> tuple[int, int]:
        match = re.compile(r"\{([0-9]{1,4})(?:,([0-9]{1,4}))?\}").match(self.pattern, self.at)
        if match is None:
            raise ValueError("a repeat is written {3} or {2,5}, with both numbers")
        self.at = match.end()
        low = int(match[1])
        high = int(match[2]) if match[2] else low
        if high > MOST_REPEATS:
            raise ValueError(f"a repeat goes up to {MOST_REPEATS}, not {high}")
        if low > high:
            raise ValueError(f"a repeat from {low} to {high} runs backwards")
        return low, high

    def _atom(self, depth: int) -> Shape:
        character = self._next()
        if character == "(":
            return self._group(depth)
        if character == "[":
            return _class(self._class())
        if character == "\\":
            escaped = self._escape()
            return _class(escaped) if len(escaped) > 1 else _literal(escaped)
        if character in _WHY:
            raise ValueError(_WHY[character])
        self.at += 1
        return _literal(character)

    def _group(self, depth: int) -> Shape:
        self.at += 1
        if self.pattern.startswith("?:", self.at):
            self.at += 2
        elif self._next() == "?":
            raise ValueError("of groups that begin with (? only (?: is taken")
        else:
            self.groups += 1
        inner = self.alternatives(depth + 1)
        if self._next() != ")":
            raise ValueError("there is a ( without its )")
        self.at += 1
        return inner

    def _escape(self) -> str:
        """The sign itself, or a class of characters."""
        self.at += 1
        character = self._next()
        self.at += 1
        if character in _CLASSES:
            return _CLASSES[character]
        if character.isdigit():
            raise ValueError(f"\\{character} refers back to a group, which is not taken")
        if not character or character not in _ESCAPED:
            raise ValueError(f"\\{character} is not taken: of letters only \\d and \\w may follow a \\")
        return character

    def _class(self) -> str:
        start = self.at
        self.at += 1
        if self._next() == "^":
            self.at += 1
        if self._next() == "]":
            raise ValueError("[] holds nothing: write \\] for the sign itself")
        while (character := self._next()) != "]":
            if not character:
                raise ValueError("there is a [ without its ]")
            if character == "[":
                raise ValueError("[ in a class is written \\[")
            if character in "-&|~" and self.pattern.startswith(character * 2, self.at):
                raise ValueError(f"{character * 2} in a class is not taken: write the sign once")
            if character == "\\":
                self._escape()
            else:
                self.at += 1
        self.at += 1
        return self.pattern[start : self.at]

    def _next(self) -> str:
        return self.pattern[self.at : self.at + 1]


def _literal(character: str) -> Shape:
    return Shape(1, 1, 1, character, True, (re.escape(character),))


def _class(first: str) -> Shape:
    return Shape(1, 1, 1, "", False, (first,))


def _shared(texts: list[str]) -> str:
    """What all of them begin with."""
    first, last = min(texts), max(texts)
    differs = (place for place, character in enumerate(first) if last[place : place + 1] != character)
    return first[: next(differs, len(first))]


def _capped(number: int) -> int:
    """Counts do not grow without end; what is beyond is refused anyway."""
    return min(number, 1_000_000)
