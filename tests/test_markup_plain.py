"""Plain text is spoken as it stands; and what holds for every markup."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edged.errors import BadMarkup, BadValue
from edged.text.document import Words
from edged.text.markup import MARKUPS, parse

LIKE_MARKUP = st.text(st.sampled_from([*"<>/&;#x=\"'[]!?- \n\r\ta1你😀_", "\x00", "\ud800", "\ufeff"]))
TEXTS = st.one_of(
    st.text(st.characters(exclude_categories=[])),
    LIKE_MARKUP,
    LIKE_MARKUP.map(lambda inner: f"<speak>{inner}</speak>"),
)


@pytest.mark.parametrize(
    "text",
    [
        "a < b & c",
        "[laugh]",
        "[speed_9] [Ptts]",
        "<speak>Hello</speak>",
        "<!DOCTYPE x>",
        "one\n\ntwo\r\n three ",
        "&amp; &#65;",
        "\x00\x1b[31m",
        "\ud83d",
        " ",
    ],
)
def test_nothing_is_interpreted(text: str) -> None:
    assert parse(text, "plain") == (Words(text),)


def test_no_text_is_no_words() -> None:
    assert parse("", "plain") == ()


@given(TEXTS)
def test_all_of_a_plain_text_is_kept(text: str) -> None:
    assert "".join(item.text for item in parse(text, "plain") if isinstance(item, Words)) == text


@given(TEXTS, st.sampled_from(MARKUPS))
def test_a_text_is_taken_or_refused_by_name(text: str, markup: str) -> None:
    try:
        document = parse(text, markup)
    except BadMarkup as refusal:
        error = refusal
    else:
        assert all(not isinstance(item, Words) or item.text or item.phonemes for item in document)
        return
    assert markup != "plain"
    assert error.hint
    place = re.match(r"line (\d+), column (\d+): ", error.message)
    assert place, error.message
    line, column = map(int, place.groups())
    lines = re.split("\r\n|\r|\n", text)
    assert 1 <= line <= len(lines)
    assert 1 <= column <= len(lines[line - 1]) + 1


@pytest.mark.parametrize(("markup", "hint"), [("smml", "ssml"), ("", ""), ("html", "")])
def test_other_markups_are_a_bad_value(markup: str, hint: str) -> None:
    with pytest.raises(BadValue, match="plain, ssml, chattts") as caught:
        parse("x", markup)
    assert hint in caught.value.hint
