"""What a typed field may be, in plain words, for messages about wrong settings and requests.

Leaf module, no thread. Neighbours: `config_nodes` and `protocol`.
"""

from __future__ import annotations

from types import UnionType as PlainUnion
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from msgspec.inspect import (
    BoolType,
    DictType,
    FloatType,
    IntType,
    ListType,
    Metadata,
    NoneType,
    StrType,
    StructType,
    Type,
    UnionType,
    type_info,
)

UNITS = {"_ms": "milliseconds", "_s": "seconds", "_kb": "kilobytes", "_chars": "characters"}


def choices_of(annotation: Any) -> list[Any]:
    """The values of a Literal (or of one in a union with None), in the order they were written."""
    origin = get_origin(annotation)
    if origin is Literal:
        return list(get_args(annotation))
    if origin is Annotated:
        return choices_of(get_args(annotation)[0])
    if origin in (Union, PlainUnion):
        return [value for member in get_args(annotation) for value in choices_of(member)]
    return []


def describe(annotation: Any, name: str) -> str:
    """What a setting may be, in plain words: `a number from 5 to 2000 (milliseconds)`."""
    kind = type_info(annotation)
    choices = choices_of(annotation)
    if len(choices) == 1:
        return f"the word {choices[0]}" if isinstance(choices[0], str) else f"the number {choices[0]}"
    if choices:
        named = (str(choice) or "''" for choice in choices)
        return f"one of {', '.join(named)}"
    words = _describe(kind)
    unit = next((unit for suffix, unit in UNITS.items() if name.endswith(suffix)), "")
    return f"{words} ({unit})" if unit else words


def _describe(kind: Type) -> str:
    if isinstance(kind, Metadata):
        return str((kind.extra_json_schema or {}).get("description") or _describe(kind.type))
    if isinstance(kind, BoolType):
        return "true or false"
    if isinstance(kind, (IntType, FloatType)):
        what = "a whole number" if isinstance(kind, IntType) else "a number"
        if kind.ge is not None and kind.le is not None:
            return f"{what} from {kind.ge:.12g} to {kind.le:.12g}"
        return f"{what} of at least {kind.ge:.12g}" if kind.ge is not None else what
    if isinstance(kind, DictType):
        return "names, each with its settings below it"
    if isinstance(kind, StructType):
        return "a group of settings"
    if isinstance(kind, ListType):
        return f"a list, each item {_describe(kind.item_type)}"
    if isinstance(kind, StructType):
        return "a group of settings"
    if isinstance(kind, UnionType):
        return " or ".join(_describe(member) for member in kind.types if not isinstance(member, NoneType))
    if isinstance(kind, StrType) and kind.max_length is not None:
        return f"text of at most {kind.max_length} characters"
    return "text that is not empty" if isinstance(kind, StrType) and kind.min_length else "text"
