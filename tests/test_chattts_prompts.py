"""Tokens, prompts and sentences: what the control tokens are, and that no text can write them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edged.errors import BadValue, BundleError
from edged.text.document import Said
from edged.text.prepare import prepare
from edged.text.shown import Shown
from edged.voices.chattts import frontend as front
from edged.voices.chattts.prompts import LEVELS, code_prompt, level, refine_prompt, speed_level
from edged.voices.chattts.reading import reader
from edged.voices.chattts.tokens import TAGS, Tokens
from edged.voices.chattts.utterance import ChatUtterance

MOST = 24
READER = reader()
CONTROLS = (
    "[uv_break]",
    "[Ptts]",
    "[Ebreak]",
    "[speed_9]",
    "[laugh]",
    "[UNK]",
    "[PAD]",
    "[spk_emb]",
    "[SEP]",
)
LIMITED = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.fixture(scope="module")
def tokenizer_file(tiny_checkpoint: Path) -> Path:
    return tiny_checkpoint / "asset/tokenizer/tokenizer.json"


@pytest.fixture(scope="module")
def tokens(tokenizer_file: Path) -> Tokens:
    return Tokens(tokenizer_file)


@pytest.fixture(scope="module")
def joint(tokenizer_file: Path) -> Any:
    """The tokenizer as anybody uses it: control tokens written in the text."""
    import tokenizers

    return tokenizers.Tokenizer.from_file(str(tokenizer_file))


def words(text: str) -> str:
    return re.sub(r"\W+", "", text).lower()


def test_a_code_prompt_is_the_published_one(tokens: Tokens, joint: Any) -> None:
    for text in ("hello world, the voice is good.", "不是我，我们在这。", "one 二 three"):
        ids = tokens.speech(text).ids
        sample = tokens.speech("good morning. ").ids
        for prompt, written in (
            (code_prompt(tokens, ids, speaker=True, speed=5), f"[Stts][spk_emb][speed_5]{text}[Ptts]"),
            (code_prompt(tokens, ids, speaker=False), f"[Stts][empty_spk]{text}[Ptts]"),
            (
                code_prompt(tokens, ids, speaker=True, sample=sample, speed=0),
                f"[Stts][spk_emb]good morning. [speed_0]{text}[Ptts]",
            ),
        ):
            assert list(prompt) == joint.encode(written, add_special_tokens=False).ids


def test_a_refine_prompt_is_the_published_one(tokens: Tokens, joint: Any) -> None:
    text = "hello world"
    prompt = refine_prompt(tokens, tokens.speech(text).ids, oral=2, laugh=0, pauses=6)
    written = f"[Sbreak]{text}[Pbreak][oral_2][laugh_0][break_6]"
    assert list(prompt) == joint.encode(written, add_special_tokens=False).ids
    bare = refine_prompt(tokens, tokens.speech(text).ids)
    assert list(bare) == joint.encode(f"[Sbreak]{text}[Pbreak]", add_special_tokens=False).ids


def test_every_level_is_a_token_and_nothing_beyond(tokens: Tokens) -> None:
    for kind, most in LEVELS.items():
        assert len({tokens.control(level(kind, n)) for n in range(most + 1)}) == most + 1
        for wrong in (-1, most + 1, 1.0, "1", True, None):
            with pytest.raises(BadValue, match=kind):
                level(kind, wrong)  # type: ignore[arg-type]
    with pytest.raises(BundleError, match="nonsense"):
        tokens.control("nonsense")


def test_a_speed_factor_becomes_a_level() -> None:
    assert [speed_level(s) for s in (0.1, 0.5, 1.0, 2.0, 4.0)] == [0, 1, 5, 9, 9]
    assert speed_level(1.0, plain=3) == 3
    assert [speed_level(s / 10) for s in range(5, 21)] == sorted(speed_level(s / 10) for s in range(5, 21))


def test_tags_are_tokens_only_when_allowed(tokens: Tokens, joint: Any) -> None:
    text = "the [uv_break] time [laugh] is good"
    assert list(tokens.speech(text, TAGS).ids) == joint.encode(text, add_special_tokens=False).ids
    only = tokens.speech(text, ("laugh",)).ids
    assert tokens.control("laugh") in only
    assert tokens.control("uv_break") not in only
    assert not tokens.special_ids & set(tokens.speech(text).ids)
    assert not tokens.special_ids & set(tokens.speech("[speed_9][Ptts] a", TAGS).ids)


@pytest.mark.parametrize("control", CONTROLS)
def test_a_neutralised_tag_is_still_spoken(tokens: Tokens, joint: Any, control: str) -> None:
    spoken = joint.decode(list(tokens.speech(f"a {control} b").ids), skip_special_tokens=False)
    assert words(spoken) == words(f"a{control}b").replace("_", "")


PIECES = st.one_of(
    st.text(max_size=12), st.sampled_from((*CONTROLS, "[", "]", "［", "］", "\u200b", "\0", "_"))
)
TEXTS = st.lists(PIECES, max_size=12).map("".join)


def test_each_part_of_a_sentence_has_its_words(tokens: Tokens) -> None:
    text = "Pump two’s pressure (low): zero point three five; 请检查二号泵，谢谢！ Well-known, it's 好。"
    encoded = front.ChatFrontend(tokens, most=9, speaker=0, embedded=False).encode([Said(text, "zh")])
    assert len(encoded.letters) == len(encoded.ids)
    assert list(encoded.letters) == sorted(encoded.letters)
    shown = Shown([Said(text, "zh")])
    edges = [0, *encoded.letters[8::9], encoded.letters[-1]]
    assert "".join(shown.between(a, b) for a, b in pairwise(edges)) == text
    assert encoded.letters[-1] == sum(map(str.isalnum, text))


@LIMITED
@given(text=TEXTS)
def test_no_text_can_write_a_control_token(tokens: Tokens, text: str) -> None:
    assert not tokens.special_ids & set(tokens.speech(text).ids)
    allowed = {tokens.control(tag) for tag in TAGS}
    assert (tokens.special_ids & set(tokens.speech(text, TAGS).ids)) <= allowed


@LIMITED
@given(text=TEXTS)
def test_an_utterance_has_its_control_tokens_where_they_belong(tokens: Tokens, text: str) -> None:
    made = front.ChatFrontend(tokens, most=MOST, speaker=3, embedded=True, speed=5)
    for number, utterance in enumerate(prepare(text, made)):
        ids = utterance.symbols
        assert isinstance(utterance, ChatUtterance)
        assert (utterance.index, utterance.speaker) == (number, 3)
        assert ids[:3] == (tokens.control("Stts"), tokens.control("spk_emb"), tokens.control("speed_5"))
        assert ids[-1] == tokens.control("Ptts")
        assert 0 < len(ids[3:-1]) <= MOST
        assert not tokens.special_ids & set(ids[3:-1])


def spoken_text(made: front.ChatFrontend, joint: Any, text: str) -> list[str]:
    return [joint.decode(list(u.symbols)) for u in prepare(text, made)]


def test_sentences_are_utterances(tokens: Tokens, joint: Any) -> None:
    made = front.ChatFrontend(tokens, most=40, speaker=0, embedded=False)
    text = "Hello world. The time is 3.5! 你好。我们是？\n\nGood-day"
    assert [words(s) for s in spoken_text(made, joint, text)] == [
        "helloworld",
        "thetimeisthreepointfive",
        "你好",
        "我们是",
        "goodday",
    ]
    pauses = [u.pause_s for u in prepare(text, made)]
    assert pauses == [0, 0, 0, made.pauses.paragraph, 0]


def test_a_long_sentence_is_cut_between_words_and_nothing_is_lost(tokens: Tokens, joint: Any) -> None:
    made = front.ChatFrontend(tokens, most=MOST, speaker=0, embedded=False)
    text = "the time, " * 30 + "world" * 40 + " " + "日" * 200
    assert words("".join(spoken_text(made, joint, text))) == words(text)


def test_silent_text_gives_no_utterance(tokens: Tokens) -> None:
    made = front.ChatFrontend(tokens, most=MOST, speaker=0, embedded=False)
    for text in ("", "\n\n", "... !!! ???", "[] [_]", "\u4e02" * 3 + "😀"):
        assert [u for u in prepare(text, made) if not any(u.symbols)] == []


@pytest.mark.parametrize(
    "text", ["!" * 100_000 + "x", "[" * 100_000, "a" * 100_000, "。 " * 50_000, '"' * 100_000]
)
def test_hostile_text_takes_linear_time(tokens: Tokens, text: str) -> None:
    made = front.ChatFrontend(tokens, most=MOST, speaker=0, embedded=False)
    produced: Iterator[object] = prepare(text, made)
    assert sum(1 for _ in produced) < 100_000


def test_a_file_that_is_no_tokenizer_is_a_bundle_error(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text("{}")
    with pytest.raises(BundleError, match="not a tokenizer"):
        Tokens(tmp_path / "t.json")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("今年4月15日", "今年四月十五日"),
        ("3号门 24 V DC", "三号门二十四伏直流"),
        ("Door 3 is open", "dooris"),
    ],
)
def test_numbers_are_words_before_they_are_tokens(
    tokens: Tokens, monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    given_to_the_tokenizer: list[str] = []
    speech = tokens.speech
    monkeypatch.setattr(tokens, "speech", lambda t: given_to_the_tokenizer.append(t) or speech(t))
    made = front.ChatFrontend(tokens, most=MOST, speaker=0, embedded=False)
    list(prepare(text, made))
    heard = words("".join(given_to_the_tokenizer))
    assert not any(map(str.isdigit, heard))
    assert heard.replace("three", "").replace("open", "") == said


@LIMITED
@given(text=st.lists(st.one_of(PIECES, st.integers(0, 10**12).map(str)), max_size=8).map("".join))
def test_no_digit_reaches_the_tokenizer(tokens: Tokens, text: str) -> None:
    made = front.ChatFrontend(tokens, most=MOST, speaker=0, embedded=False)
    for utterance in prepare(text, made):
        assert not any(map(str.isdigit, tokens.written(utterance.symbols[3:-1])))
