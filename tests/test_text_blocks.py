"""Cuts to a length: what holds for every text and for all ids."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edged.text.blocks import blocks, cut
from edged.text.split import breaks, sentences

BREAKS = st.one_of(
    st.lists(st.sampled_from([0, 0, 0, 0, 1, 1, 2, 3]), max_size=200),
    st.lists(st.sampled_from([0] * 30 + [1, 2, 3]), max_size=200),
)
PIECES = st.sampled_from(
    ["Hello world. ", "a", "1,234.5 ", "你好。", "\n", "\n\n", " ", "é", "e\u0301", "x" * 30]
)
TEXTS = st.one_of(st.lists(PIECES, max_size=40).map("".join), st.text(max_size=200))


@given(BREAKS, st.integers(1, 50))
def test_ranges_cover_all_ids(goodness: list[int], limit: int) -> None:
    ranges = list(cut(goodness, limit))
    assert [i for start, end in ranges for i in range(start, end)] == list(range(len(goodness)))
    assert all(0 < end - start <= limit for start, end in ranges)


@given(BREAKS, st.integers(1, 50))
def test_a_cut_is_at_a_best_place(goodness: list[int], limit: int) -> None:
    for start, end in list(cut(goodness, limit))[:-1]:
        assert goodness[end - 1] == max(goodness[start + max(1, limit // 3) - 1 : start + limit]) or (
            end - start < limit // 3 and not any(goodness[start + limit // 3 - 1 : start + limit])
        )


@given(BREAKS, st.integers(1, 50))
def test_nothing_is_cut_that_fits(goodness: list[int], limit: int) -> None:
    ranges = list(cut(goodness, limit))
    assert len(ranges) == 0 if not goodness else (len(ranges) == 1) == (len(goodness) <= limit)


@pytest.mark.parametrize(
    ("goodness", "limit", "ends"),
    [
        ([], 5, []),
        ([0] * 5, 5, [5]),
        ([0] * 12, 5, [5, 10, 12]),
        ([0] * 11, 5, [5, 10, 11]),  # limit // 3 is one: a rest of one is no scrap
        ([0] * 101, 100, [68, 101]),  # no scrap of one
        ([0] * 5000, 100, list(range(100, 5001, 100))),
        ([0, 0, 0, 2, 0, 1, 0, 0, 0, 0, 0], 9, [4, 11]),  # a clause before a later word
        ([0, 0, 1, 0, 1, 0, 1, 0, 0, 0], 9, [7, 10]),
        ([1] * 10, 9, [7, 10]),  # as good, and no scrap
        ([1, 0, 0, 0, 0, 0, 0, 0, 0, 0], 9, [1, 10]),  # in the first third only where there is no other
        ([1, 0, 0, 0, 0, 0, 0, 1, 0, 0], 9, [8, 10]),
        ([3, 3, 3], 1, [1, 2, 3]),
    ],
)
def test_where_ids_are_cut(goodness: list[int], limit: int, ends: list[int]) -> None:
    assert [end for _, end in cut(goodness, limit)] == ends


@given(TEXTS, st.integers(1, 60))
def test_blocks_cover_the_text(text: str, most: int) -> None:
    ranges = list(blocks(text, most))
    assert "".join(text[start:end] for start, end in ranges) == text
    assert all(0 < end - start <= most for start, end in ranges)


@given(
    st.lists(
        st.sampled_from(["Hello world. ", "It is 3.5, or 1,000. ", "你好，世界。", "Go on!\n"]), max_size=30
    )
)
def test_sentences_that_fit_are_in_one_block(parts: list[str]) -> None:
    text = "".join(parts)
    whole = [text[s.start : s.end] for s in sentences(text)]
    cut_up = [text[a + s.start : a + s.end] for a, b in blocks(text, 70) for s in sentences(text[a:b])]
    assert cut_up == whole


def parts(text: str, most: int) -> list[str]:
    return [text[start:end] for start, end in blocks(text, most)]


@pytest.mark.parametrize(
    ("text", "most", "expected"),
    [
        ("One. Two.\n\nThree.\nFour.\n \n Five", 100, ["One. Two.\n\n", "Three.\nFour.\n \n ", "Five"]),
        ("One\r\nTwo\r\n\r\nThree", 100, ["One\r\nTwo\r\n\r\n", "Three"]),
        ("One\fTwo\u2029Three", 100, ["One\f", "Two\u2029", "Three"]),
        ("Hello there. You all", 15, ["Hello there. ", "You all"]),
        ("Hello there, you all", 15, ["Hello there, ", "you all"]),
        ("Hello there you all", 15, ["Hello there ", "you all"]),
        ("It costs 1,234.56 in all", 15, ["It costs ", "1,234.56 in all"]),
        ("abcdefghij", 4, ["abcd", "efgh", "ij"]),
        ("abcdefg", 3, ["abc", "def", "g"]),
        ("xxe\u0301xxe\u0301", 3, ["xx", "e\u0301x", "xe\u0301"]),
        ("a\U0001f44d\U0001f3fdb", 2, ["a", "\U0001f44d\U0001f3fd", "b"]),
        ("a\ud83d\ude00b", 2, ["a", "\ud83d\ude00", "b"]),
        ("", 5, []),
        ("\n\n\n", 5, ["\n\n\n"]),
    ],
)
def test_where_a_text_is_cut(text: str, most: int, expected: list[str]) -> None:
    assert parts(text, most) == expected


def test_a_run_of_accents_is_cut_somewhere() -> None:
    assert all(len(part) <= 100 for part in parts("\u0301" * 5000, 100))


@pytest.mark.parametrize("unit", [*"a你\n\u0301 ", "\r\n", "a\n", "a\n\n", ". ", "e\u0301", "a ", " \f"])
def test_time_grows_with_the_text(unit: str) -> None:
    def seconds(size: int) -> float:
        text = (unit * size)[:size]
        begin = time.process_time()
        for _ in blocks(text):
            pass
        for _ in cut(breaks(text), 100):
            pass
        return time.process_time() - begin

    small = min(seconds(5_000) for _ in range(3))
    assert seconds(40_000) < 8 * 4 * small + 0.05


def test_places_far_apart_take_linear_time() -> None:
    goodness = ([1] + [0] * 999) * 300
    begin = time.process_time()
    ranges = list(cut(goodness, 1000))
    assert time.process_time() - begin < 1
    assert all(b > a for (a, _), (b, _) in pairwise(ranges))
