"""The first look at a text."""

from __future__ import annotations

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edged.errors import EmptyText, RequestError, UnspeakableText, UnsupportedText
from edged.text.check import check

ENGLISH = ("en",)
ANY = ("*",)


@pytest.mark.parametrize(
    ("text", "clean", "skipped"),
    [
        ("Hello, world!", "Hello, world!", 0),
        ("  Hello \t", "Hello", 0),
        ("cafe\u0301", "café", 0),
        ("one\r\ntwo\rthree\u2028four", "one\ntwo\nthree\nfour", 0),
        ("a\x00b\x1b[1m", "a b [1m", 2),
        ("a\u202eb\u200bc", "abc", 2),
        ("soft\u00adhyphen", "softhyphen", 1),
        ("broken \ud800 half", "broken   half", 1),
        ("I \u2764\ufe0f you", "I   you", 2),
        ("go \U0001f680 up", "go   up", 1),
        ("20 °C ± 2, €5 = $6", "20 °C ± 2, €5 = $6", 0),
        ("\uff28\uff49 \U0001d400\U0001d401", "Hi AB", 0),
        ("naïve Ærøskøbing Łódź", "naïve Ærøskøbing Łódź", 0),
        ("non\u00a0breaking", "non breaking", 0),
    ],
)
def test_what_is_kept_and_what_is_counted(text, clean, skipped):
    result = check(text, ENGLISH)
    assert (result.text, result.skipped) == (clean, skipped)


@pytest.mark.parametrize("text", ["", " ", "\n\t \n", "\x00\x07", "\u200b\u202e", "\ud800"])
def test_empty(text):
    with pytest.raises(EmptyText):
        check(text, ENGLISH)


@pytest.mark.parametrize("text", ["...", "?!", "\U0001f600\U0001f600", "— … —", "$ %", "\u2192"])
def test_unspeakable(text):
    with pytest.raises(UnspeakableText):
        check(text, ENGLISH)


def test_a_foreign_script_is_refused_and_at_most_five_characters_named():
    with pytest.raises(UnsupportedText) as caught:
        check("Say Привет дорогой друг now", ENGLISH)
    named = caught.value.message.rpartition(": ")[2].split()
    assert named == ["П", "р", "и", "в", "е", "..."]
    assert "Say" not in caught.value.message


@pytest.mark.parametrize("text", ["5 µm", "10 kΩ", "about π", "Δ5"])
def test_single_greek_letters_are_signs_that_readers_know(text):
    for languages in (ENGLISH, ("zh", "en")):
        assert check(text, languages).text == text
        with pytest.raises(UnsupportedText):
            check(f"{text} and και", languages)


@pytest.mark.parametrize("text", ["你好", "مرحبا", "こんにちは", "γειά", "שלום", "नमस्ते", "안녕"])
def test_scripts_belong_to_voices(text):
    with pytest.raises(UnsupportedText):
        check(text, ENGLISH)
    assert check(text, ANY).text == unicodedata.normalize("NFC", text)


def test_a_voice_of_two_languages_and_of_an_unknown_one():
    assert check("你好 hello", ("zh-CN", "en")).text == "你好 hello"
    assert check("Привет", ("ru",)).text == "Привет"
    with pytest.raises(UnsupportedText):
        check("你好", ("en-GB",))


@given(st.text(), st.sampled_from([ENGLISH, ANY]))
def test_any_text_is_clean_or_refused(text, languages):
    try:
        result = check(text, languages)
    except RequestError:
        return
    assert any(map(str.isalnum, result.text))
    assert unicodedata.is_normalized("NFC", result.text) or languages == ENGLISH
    result.text.encode()  # no surrogates
    for character in result.text:
        assert character == "\n" or unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Co", "Cn")
    again = check(result.text, languages)
    assert (again.text, again.skipped) == (result.text, 0)


def test_a_long_text_takes_little_time():
    text = "aé\U0001f600\u0301 " * 200_000
    start = time.perf_counter()
    check(text, ANY)
    assert time.perf_counter() - start < 2.0


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("5 µm 和 10 kΩ", "5 µm 和 10 kΩ"),
        ("３～５", "３~５"),
        ("５＋３", "５+３"),
        ("1∶500", "1∶500"),
        ("30㎡", "30㎡"),
    ],
)
def test_signs_that_a_reader_of_chinese_has_words_for_are_kept(text: str, clean: str) -> None:
    result = check(text, ("zh", "en"))
    assert (result.text, result.skipped) == (clean, 0)


def test_a_greek_word_is_still_foreign() -> None:
    with pytest.raises(UnsupportedText):
        check("你好 γειά", ("zh",))
