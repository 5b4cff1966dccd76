"""Points behind words: what ends a sentence before it is read ends it afterwards, too."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edged.text.english import English
from edged.text.points import is_end, kept
from edged.text.span import Options, apply
from edged.text.split import sentences

ENGLISH = English()


def split(text: str) -> list[str]:
    return [text[s.start : s.end] for s in sentences(text)]


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("The end. Then", True),
        ("The end. then", True),
        ("See Dr. Then", False),
        ("See Dr. 王", False),
        ("At 5 p.m. Then", True),
        ("At 5p.m. Then", True),
        ("At 5 p.m. Monday", False),
        ("At 5 p.m. 20", False),
        ("Plums etc. Apples", True),
        ("Plums etc. apples", False),
        ("Plums etc. “Apples", True),
        ("Foo Inc. Apples", False),
        ("Foo Inc. The", True),
        ("Answer: no. 5", False),
        ("Answer: No. I", True),
        ("It is 5 in. wide", False),
        ("It is 5 in. The", True),
        ("Come in. wide", True),
        ("George W. Bush", False),
        ("Option W. Bush", True),
        ("The U S B. Press", True),
        ("12. Open", False),
        ("1.2. Open", False),
        ("Seats: 12. Open", True),
    ],
)
def test_which_point_ends(text: str, ends: bool) -> None:
    at = text.rindex(". ")
    assert is_end(text, 0, at, at + 2) is ends


@pytest.mark.parametrize(
    "text",
    [
        "Come at 5 p.m. Then we start.",
        "Come at 10:30 p.m. Bring tools.",
        "Come at 5 p.m. Monday we start.",
        "Come at 5-6 p.m. Then we start.",
        "He lives in the U.S. She lives in the U.K. They write.",
        "The U.S. Army is here. It is big.",
        "He works at Acme Inc. She does not. Acme Inc. Berlin is far.",
        "John Smith Jr. spoke. John Smith Jr. He spoke.",
        "St. John lives on Main St. He is old.",
        "Turn left on Park Ave. Then stop.",
        "It is 5 in. Then it is 5 in. wide. It is 6 ft. Then it ends.",
        "We met on 5 Jan. Then we left. We met on 5 Jan. 2020. Then we left.",
        "Open Mon-Fri. Then closed.",
        "Run 1.2.3-beta. Then stop. Run v2.0-rc.1. Then stop.",
        "See Fig. 3. It shows vol. 3, ch. 2, p. 15. Read it.",
        "Is it on? No. I am sure. Use No. 5. Then stop.",
        "Apples, etc. Pears, etc. and plums.",
        "He said, “Come at 5 p.m.” Then he left.",
        "See www.example.com. Mail a.b@example.com. Ping 10.0.0.1. Then wait.",
        "It is 3.5. Then 5 kg. Then 20%. Then $5. Then 10:30. Then 5 °C. Then stop.",
    ],
)
def test_reading_keeps_the_ends_of_sentences(text: str) -> None:
    read = apply(text, ENGLISH.spans(text, Options()))
    assert len(split(read)) == len(split(text))


def test_a_point_at_the_end_of_a_line_is_kept() -> None:
    assert [kept(text, 4) for text in ("p.m.", "p.m.\n", "p.m. ", "p.m.)", "p.m., ", "p.m.x")] == [
        *[".", ".", ".", "."],
        *["", ""],
    ]
    assert kept("p.m", 3) == kept("", 0) == ""


@given(st.text(max_size=40), st.integers(0, 40))
def test_every_place_has_an_answer(text: str, at: int) -> None:
    assert kept(text, min(at, len(text))) in ("", ".")
