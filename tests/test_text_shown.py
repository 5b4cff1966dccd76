"""Which words of a sentence each part of it has, by the letters that were counted."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from edged.text.document import Said
from edged.text.shown import Shown, letters


def test_marks_stay_with_the_words_before_them() -> None:
    shown = Shown([Said("He said (softly): "), Said("", tag="laugh"), Said(" “Stop!” And left.")])
    assert shown.text == "He said (softly): [laugh] “Stop!” And left."
    parts = [shown.between(*edge) for edge in [(0, 6), (6, 12), (12, 16), (16, 23)]]
    assert [part.strip() for part in parts] == ["He said", "(softly): [laugh]", "“Stop!”", "And left."]


@given(st.lists(st.text(max_size=20) | st.none(), max_size=6), st.sets(st.integers(0, 130)))
def test_the_parts_are_the_whole(texts: list[str | None], cuts: set[int]) -> None:
    shown = Shown([Said("", tag="laugh") if text is None else Said(text) for text in texts])
    count = letters("".join(text for text in texts if text))[-1]
    edges = [0, *sorted(cut for cut in cuts if 0 < cut < count), count]
    assert "".join(shown.between(a, b) for a, b in pairwise(edges)) == (shown.text if count else "")
