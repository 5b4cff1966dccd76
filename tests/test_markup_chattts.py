"""ChatTTS's own tokens: three kinds stand in a text, all others are refused at their place."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edged.errors import BadMarkup
from edged.text.document import Document, Tag, Words
from edged.text.markup import parse
from edged.voices.chattts.tokens import SAYABLE, TAGS


def read(text: str) -> Document:
    return parse(text, "chattts")


def written(document: Document) -> str:
    return "".join(f"[{item.name}]" if isinstance(item, Tag) else item.text for item in document)  # type: ignore[union-attr]


def test_tokens_become_tags_between_words() -> None:
    text = "真好笑[laugh]，等等 [uv_break]well.[lbreak]"
    assert read(text) == (
        Words("真好笑"),
        Tag("laugh"),
        Words("，等等 "),
        Tag("uv_break"),
        Words("well."),
        Tag("lbreak"),
    )
    assert read("[laugh][laugh]") == (Tag("laugh"), Tag("laugh"))
    assert read("") == ()


@pytest.mark.parametrize(
    "text",
    [
        "[see page 3]",
        "[你好]",
        "a[0.5]b",
        "[]",
        "[ ]",
        "[laugh",
        "laugh]",
        "[la\nugh]",
        "［laugh］",
        "【笑】",
        "<speak>x & y</speak>",
        "(1)",
    ],
)
def test_what_does_not_look_like_a_token_is_text(text: str) -> None:
    assert read(text) == (Words(text),)


@pytest.mark.parametrize(
    "token",
    """[Stts] [Ptts] [Etts] [spk_emb] [empty_spk] [speed_5] [oral_2] [laugh_0] [break_6] [music] [pure]
    [v_break] [llbreak] [Sasr] [Pasr] [undefine] [UNK] [PAD] [CLS] [laughs] [Laugh] [uvbreak] [1]
    [breath]""".split(),
)
def test_other_tokens_are_refused_at_their_place(token: str) -> None:
    with pytest.raises(BadMarkup, match=r"^line 2, column 4: .*\[uv_break\], \[lbreak\], \[laugh\]"):
        read(f"一。\n你😀 {token} x")


def test_none_of_the_models_other_tokens_passes() -> None:
    for name in set(SAYABLE) - set(TAGS):
        with pytest.raises(BadMarkup):
            read(f"[{name}]")


@pytest.mark.parametrize(
    ("token", "meant"), [("[laughs]", "laugh"), ("[Laugh]", "laugh"), ("[ lbreak ]", "lbreak")]
)
def test_a_token_mistyped_is_guessed(token: str, meant: str) -> None:
    with pytest.raises(BadMarkup) as caught:
        read(token)
    assert caught.value.hint == f"did you mean {meant!r}?"


def test_a_refused_word_is_not_repeated() -> None:
    with pytest.raises(BadMarkup) as caught:
        read("[secret_code_4711]")
    assert "secret" not in str(caught.value)


@given(st.lists(st.one_of(st.sampled_from(TAGS).map(Tag), st.text("a 你.<&", min_size=1).map(Words))))
def test_nothing_is_lost(items: list[Tag | Words]) -> None:
    text = written(tuple(items))
    document = read(text)
    assert written(document) == text
    assert [item for item in document if isinstance(item, Tag)] == [i for i in items if isinstance(i, Tag)]


@pytest.mark.parametrize("piece", ["[", "[ ", "[a", "[a ", "]", "[laugh]", " ", "[laugh_"])
def test_it_takes_time_linear_in_the_text(piece: str) -> None:
    started = time.process_time()
    read(piece * (1_000_000 // len(piece)))
    assert time.process_time() - started < 4
