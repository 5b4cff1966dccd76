"""YAML nodes to `Settings`: checks every key and value against the types of settings.py.

Runs once at start, on the main thread, without state that outlives the call. It walks the nodes that
`yaml.compose` made, because nodes still know their line and the text as written: `mode: 0660` is the
digits 0660 here, not the number 432 that YAML 1.1 makes of it. It never stops at the first problem.
Neighbours: `config` calls it; it knows `settings` and `errors`.
"""

from __future__ import annotations

import math
import re
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar, get_args, get_origin

import msgspec
from msgspec.inspect import (
    BoolType,
    FloatType,
    IntType,
    ListType,
    LiteralType,
    Metadata,
    NoneType,
    StrType,
    Type,
    UnionType,
    type_info,
)
from msgspec.structs import FieldInfo, fields
from yaml import MappingNode, Node, ScalarNode, SequenceNode
from yaml.constructor import SafeConstructor

from edged.errors import Problem, did_you_mean
from edged.escape import printable
from edged.settings import Settings
from edged.words import describe

G = TypeVar("G", bound=msgspec.Struct)

CORE = "tag:yaml.org,2002:"
PLAIN_TAGS = {CORE + name for name in ("null", "bool", "int", "float", "str", "timestamp", "value", "merge")}
MOST_PROBLEMS = 100  # that are told one by one: this is some other file, and looking for hints takes time
SHOWN = 40  # characters of a wrong value that a message repeats
# A leading 0 would be octal for YAML 1.1 and decimal for a person, 1:30 would be 90: both are refused.
NUMBER = re.compile(r"[-+]?(0|[1-9][0-9]*(_[0-9]+)*|(?=\.[0-9]))(\.[0-9]*)?([eE][-+]?[0-9]+)?")
BOOLS: dict[str, bool] = SafeConstructor.bool_values  # yes/no, on/off, true/false


class Wrong(Exception):
    """A value that cannot be used; carries a hint when the cause is plain."""

    def __init__(self, hint: str = "") -> None:
        super().__init__(hint)
        self.hint = hint


@dataclass
class Reading:
    """What came out of a file: settings with defaults in place of wrong values, and every problem."""

    file: str
    settings: Settings = field(default_factory=Settings)
    problems: list[Problem] = field(default_factory=list)
    more: int = 0  # problems that are only counted
    given: dict[str, Node] = field(default_factory=dict)  # dotted key -> its value

    @property
    def full(self) -> bool:
        return len(self.problems) >= MOST_PROBLEMS

    def report(self, key: str, message: str, *, expected: str = "", hint: str = "", node: Any = None) -> None:
        if self.full:
            self.more += 1
            return
        node = node if node is not None else self.given.get(key)
        line, column = (node.start_mark.line + 1, node.start_mark.column + 1) if node is not None else (0, 0)
        self.problems.append(Problem(self.file, line, key, message, expected, hint, column))

    def read(self, root: Node) -> None:
        self.settings = self._group(Settings, root, "")

    def _group(self, cls: type[G], node: Node, path: str) -> G:
        if _is_null(node):  # "audio:" with nothing below it, all of its lines commented out
            return cls()
        if not isinstance(node, MappingNode):
            names = ", ".join(f.encode_name for f in fields(cls))
            what = "settings" if path else "groups of settings"
            expected = f"{what} written as 'name: value' lines ({names})"
            self.report(path, f"expected {expected}, got {_got(node)}", expected=expected, node=node)
            return cls()
        known = {f.encode_name: f for f in fields(cls)}
        values: dict[str, Any] = {}
        first: dict[str, Node] = {}
        for name_node, value in node.value:
            name = _shown(name_node.value) if isinstance(name_node, ScalarNode) else _got(name_node)
            key = f"{path}.{name}" if path else name
            if name in first:
                line = first[name].start_mark.line + 1
                hint = "delete one of the two lines"
                self.report(key, f"is already set on line {line}", hint=hint, node=name_node)
            first.setdefault(name, name_node)
            if name not in known:
                what = "setting" if path else "group"
                hint = "" if self.full else _suggest(name, path, known)
                self.report(key, f"there is no such {what}", hint=hint, node=name_node)
                continue
            self.given[key] = value
            with suppress(Wrong):
                values[known[name].name] = self._setting(known[name], value, key)
        return cls(**values)

    def _setting(self, info: FieldInfo, node: Node, key: str) -> Any:
        if get_origin(info.type) is dict:
            return self._named(get_args(info.type)[1], node, key)
        if isinstance(node, SequenceNode) and (item_type := _item_type(info.type)) is not None:
            items = []
            for index, item in enumerate(node.value):
                with suppress(Wrong):
                    items.append(self._item(item_type, item, f"{key}[{index}]"))
            return items
        return self._item(info.type, node, key)

    def _item(self, annotation: Any, node: Node, key: str) -> Any:
        if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
            self.given[key] = node
            return self._group(annotation, node, key)
        return self._leaf(annotation, node, key)

    def _named(self, cls: type[G], node: Node, path: str) -> dict[str, G]:
        """Groups under names that the user chose."""
        if _is_null(node):
            return {}
        if not isinstance(node, MappingNode):
            expected = describe(dict[str, cls], path)  # type: ignore[valid-type]
            self.report(path, f"expected {expected}, got {_got(node)}", expected=expected, node=node)
            raise Wrong
        found: dict[str, G] = {}
        for name_node, value in node.value:
            name = name_node.value if isinstance(name_node, ScalarNode) else ""
            key = f"{path}.{_shown(name) if name else _got(name_node)}"
            if not name:
                self.report(key, "expected a name", expected="a name", node=name_node)
            elif name in found:
                self.report(key, "is already set", hint="delete one of the two", node=name_node)
            else:
                found[name] = self._group(cls, value, key)
        return found

    def _leaf(self, annotation: Any, node: Node, key: str) -> Any:
        kind = type_info(annotation)
        hint = ""
        try:
            value = _leaf(kind, node)
            try:
                return msgspec.convert(value, annotation)
            except msgspec.ValidationError:  # describe() says it in plainer words, with the unit
                if isinstance(kind, LiteralType) and isinstance(value, str) and not self.full:
                    hint = did_you_mean(value.lower(), map(str, kind.values))
        except Wrong as wrong:
            hint = wrong.hint
        expected = describe(annotation, key)
        self.report(key, f"expected {expected}, got {_got(node)}", expected=expected, hint=hint, node=node)
        raise Wrong


def _item_type(annotation: Any) -> Any:
    """Of a list, or of a union with one; None if it is none."""
    lists = (annotation, *get_args(annotation))
    return next((get_args(one)[0] for one in lists if get_origin(one) is list), None)


def _leaf(kind: Type, node: Node) -> Any:
    """The Python value a node means for a setting of this kind; ranges are left to msgspec."""
    if isinstance(kind, Metadata):
        return _leaf(kind.type, node)
    if isinstance(kind, UnionType):  # with None, which is written by leaving the line out, or with a list
        return _leaf(next(member for member in kind.types if not isinstance(member, NoneType)), node)
    if not isinstance(node, ScalarNode):
        raise Wrong
    if _is_null(node) and not isinstance(kind, StrType):
        raise Wrong("delete the line to keep the default")
    if node.tag not in PLAIN_TAGS:
        raise Wrong(f"remove the tag {_shown(node.tag.replace(CORE, '!!'))}")
    if isinstance(kind, ListType):
        raise Wrong(f"write it as a list: [{_shown(node.value)}]")
    if isinstance(kind, BoolType):
        if node.style is None and node.value.lower() in BOOLS:
            return BOOLS[node.value.lower()]
        raise Wrong("remove the quotes" if node.value.lower() in BOOLS else "")
    if isinstance(kind, (IntType, FloatType)):
        return _number(kind, node)
    if isinstance(kind, (StrType, LiteralType)):
        # "device:" with nothing behind it is the empty text. Anything else is taken as written, so that
        # a group called "no" or a device called 1 keeps its name.
        return "" if _is_null(node) else node.value
    raise TypeError(f"settings.py uses a type that config_nodes.py cannot read: {kind}")


def _number(kind: IntType | FloatType, node: ScalarNode) -> int | float:
    text = node.value
    if node.style is not None:
        raise Wrong("remove the quotes" if NUMBER.fullmatch(text) else "")
    if not NUMBER.fullmatch(text):
        if re.fullmatch(r"[-+]?[0-9]+,[0-9]+", text):
            raise Wrong(f"the decimal sign is a point: {text.replace(',', '.')}")
        if bare := re.fullmatch(r"([-+]?[0-9]+(?:\.[0-9]+)?) ?[A-Za-z%]+", text):
            raise Wrong(f"write the number without a unit: {bare[1]}")
        if re.fullmatch(r"0[0-9]+", text):
            raise Wrong("write the number without a leading 0")
        raise Wrong
    value = float(text)
    if not math.isfinite(value):  # 1e999
        raise Wrong
    return int(value) if isinstance(kind, IntType) and value.is_integer() else value


def _suggest(name: str, path: str, known: dict[str, FieldInfo]) -> str:
    """The likeliest cause of an unknown key: a wrong place, or a typing slip."""
    if name == "<<":
        return "merge keys are not supported: write the settings out"
    for group in fields(Settings):
        for setting in fields(group.type):
            if name == f"{group.name}.{setting.name}":
                return f"write '{group.name}:' and below it, indented, '{setting.name}: ...'"
            if name == setting.encode_name and group.name != path:
                return f"it belongs in the group '{group.name}'"
    return did_you_mean(name, known) or f"known here: {', '.join(known)}"


def _is_null(node: Node) -> bool:
    return isinstance(node, ScalarNode) and node.tag == CORE + "null" and node.style is None


def _got(node: Node) -> str:
    if isinstance(node, SequenceNode):
        return "a list"
    if not isinstance(node, ScalarNode):
        return "a group of settings"
    if _is_null(node):
        return "nothing"
    text = _shown(node.value)
    return text if node.style is None and node.tag != CORE + "str" else f"'{text}'"


def _shown(text: str) -> str:
    """Text from the file, short and on one line, so that a message cannot be broken up by it."""
    text = text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
    return printable(text)
