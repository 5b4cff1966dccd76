"""Text that comes in pieces: what is whole, what waits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edged.text.feed import LONGEST, Feed
from edged.text.split import sentences

SENTENCES = (
    "Pump 4 runs.",
    "Is it 3.5 bar?",
    'He said: "Stop!"',
    "Dr. Smith is here.",
    "温度是3.5度。",
    "关闭阀门！",
)


def cut(text: str, places: list[int]) -> list[str]:
    ends = sorted({place % (len(text) + 1) for place in places} | {len(text)})
    return [text[a:b] for a, b in zip([0, *ends], ends, strict=False)]


@given(st.text(max_size=200), st.lists(st.integers(0, 200), max_size=12))
def test_nothing_is_lost_and_nothing_comes_twice(text: str, places: list[int]) -> None:
    feed = Feed()
    given_back = "".join(feed.add(piece) for piece in cut(text, places))
    held = feed.held
    rest = feed.rest()
    assert (given_back + rest, len(rest), feed.held) == (text, held, 0)


@given(st.lists(st.sampled_from(SENTENCES), max_size=8), st.lists(st.integers(0, 200), max_size=20))
def test_sentences_are_the_same_however_they_come(parts: list[str], places: list[int]) -> None:
    text = " ".join(parts)
    feed = Feed()
    pieces = [feed.add(piece) for piece in cut(text, places)]
    spoken = [p[s.start : s.end] for p in [*pieces, feed.rest()] for s in sentences(p)]
    assert spoken == [text[s.start : s.end] for s in sentences(text)]


@pytest.mark.parametrize(
    ("pieces", "whole"),
    [
        (("It is 3", ".", "5 bar", ". "), ["", "", "", "It is 3.5 bar."]),
        (("Open", " the door.", " Now"), ["", "", "Open the door."]),
        (("Dr. ", "Smith is here. "), ["", "Dr. Smith is here."]),
        (("今天", "好。", "明天"), ["", "今天好。", ""]),
        (("a line\n", "b"), ["a line", ""]),
    ],
)
def test_a_sentence_is_whole_when_something_stands_behind_it(
    pieces: tuple[str, ...], whole: list[str]
) -> None:
    feed = Feed()
    assert [feed.add(piece).strip() for piece in pieces] == whole


def test_what_never_ends_is_cut_at_a_blank() -> None:
    feed = Feed()
    given_back = [feed.add("word ") for _ in range(LONGEST)]
    assert max(map(len, given_back)) <= LONGEST + 5
    assert all(piece == "" or piece.endswith(" ") for piece in given_back)
    assert feed.held <= LONGEST
    assert len(feed.add("x" * 2 * LONGEST)) + feed.held >= 2 * LONGEST


@given(st.sampled_from(SENTENCES), st.text("ab. ", max_size=20), st.booleans())
def test_an_addition_is_taken_back(before: str, added: str, flush: bool) -> None:
    feed = Feed()
    feed.add(before)
    held = feed.held
    whole = feed.add(added) + (feed.rest() if flush else "")
    feed.give_back(whole, len(added))
    assert feed.held == held
    assert before.endswith(feed.rest())
