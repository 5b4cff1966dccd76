"""The error tree and its wire form."""

from __future__ import annotations

import re
from collections import Counter
from itertools import chain

import pytest

from edged import errors
from edged.errors import EdgedError, codes, did_you_mean, from_wire
from edged.protocol import decode_event, encode, failed


def _all(root: type[EdgedError]) -> list[type[EdgedError]]:
    return [root, *chain.from_iterable(map(_all, root.__subclasses__()))]


def test_every_class_has_a_code_of_its_own() -> None:
    counted = Counter(cls.code for cls in _all(EdgedError))
    assert [code for code, count in counted.items() if count > 1] == []
    assert all(re.fullmatch(r"[a-z_]+", code) for code in counted)
    assert set(codes()) == set(counted)


@pytest.mark.parametrize("cls", _all(EdgedError), ids=lambda cls: cls.code)
def test_an_error_survives_the_wire_as_its_own_class(cls: type[EdgedError]) -> None:
    error = from_wire(cls.code, "what happened", "what to do")
    event = decode_event(encode(failed(error, id="x")))
    again = from_wire(event.code, event.message, event.hint)  # type: ignore[union-attr]
    assert type(again) is cls
    assert (again.message, again.hint, again.retryable) == ("what happened", "what to do", cls.retryable)


def test_an_unknown_code_becomes_the_base_class_and_keeps_its_name() -> None:
    error = from_wire("from_the_future", "something")
    assert type(error) is EdgedError
    assert "from_the_future" in str(error)


def test_the_docstring_draws_every_class() -> None:
    drawn = set(re.findall(r"[A-Z]\w+", errors.__doc__ or ""))
    assert {cls.__name__ for cls in _all(EdgedError)} <= drawn


def test_did_you_mean_names_only_close_words() -> None:
    assert "'speak'" in did_you_mean("speek", ["speak", "status"])
    assert did_you_mean("xyzzy", ["speak", "status"]) == ""
