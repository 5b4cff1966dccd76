"""The first look at a text."""

from __future__ import annotations

import contextlib
import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edged.errors import EmptyText, RequestError, UnspeakableText, UnsupportedText
from edged.text import shapes
from edged.text.check import Checked, check, speakers_of
from edged.text.chinese.reader import Chinese
from edged.text.document import Boundary, Mark, Pause, Phonemes, Style, Words
from edged.text.english.reader import English
from edged.text.script import Script
from edged.text.scripts import _SIGNS
from edged.text.span import Options
from edged.voices.api import VoiceCard

ENGLISH = ("en",)
BOTH = ("zh", "en")
ANY = ("*",)
NAMED = Options(emoji="name")


def look(text: str, languages: tuple[str, ...], options: Options | None = None) -> Checked:
    return check((Words(text),), languages, options or Options())


def clean(text: str, languages: tuple[str, ...]) -> str:
    return Script(look(text, languages).document).text


def why(checked: Checked) -> dict[str, tuple[int, str]]:
    return {one.character: (one.count, one.why) for one in checked.skipped}


def card(name: str, *languages: str) -> VoiceCard:
    return VoiceCard(name, "tone", languages, 24_000, "", "", "")


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
def test_what_is_kept_and_what_is_counted(text: str, clean: str, skipped: int) -> None:
    result = look(text, ENGLISH)
    assert (Script(result.document).text, result.count) == (clean, skipped)


@pytest.mark.parametrize("text", ["", " ", "\n\t \n", "\x00\x07", "\u200b\u202e", "\ud800"])
def test_empty(text: str) -> None:
    with pytest.raises(EmptyText):
        look(text, ENGLISH)


@pytest.mark.parametrize("text", ["...", "?!", "\U0001f600\U0001f600", "— … —", "$ %", "\u2192"])
def test_unspeakable(text: str) -> None:
    with pytest.raises(UnspeakableText):
        look(text, ENGLISH)


def test_a_foreign_script_is_refused_and_at_most_five_characters_named() -> None:
    with pytest.raises(UnsupportedText) as caught:
        look("Say Привет дорогой друг now", ENGLISH)
    named = caught.value.message.rpartition(": ")[2].split()
    assert named == ["П", "р", "и", "в", "е", "..."]
    assert "Say" not in caught.value.message


@pytest.mark.parametrize("text", ["5 µm", "10 kΩ", "about π", "Δ5"])
def test_single_greek_letters_are_signs_that_readers_know(text: str) -> None:
    for languages in (ENGLISH, ("zh", "en")):
        assert clean(text, languages) == text
        with pytest.raises(UnsupportedText):
            look(f"{text} and και", languages)


@pytest.mark.parametrize("text", ["你好", "مرحبا", "こんにちは", "γειά", "שלום", "नमस्ते", "안녕"])
def test_scripts_belong_to_voices(text: str) -> None:
    with pytest.raises(UnsupportedText):
        look(text, ENGLISH)
    assert clean(text, ANY) == unicodedata.normalize("NFC", text)


def test_a_voice_of_two_languages_and_of_an_unknown_one() -> None:
    assert clean("你好 hello", ("zh-CN", "en")) == "你好 hello"
    assert clean("Привет", ("ru",)) == "Привет"
    with pytest.raises(UnsupportedText):
        look("你好", ("en-GB",))


@given(st.text(), st.sampled_from([ENGLISH, BOTH, ANY]))
def test_any_text_is_clean_or_refused(text: str, languages: tuple[str, ...]) -> None:
    try:
        result = look(text, languages)
    except RequestError:
        return
    said = Script(result.document).text
    assert any(map(str.isalnum, said))
    assert unicodedata.is_normalized("NFC", said) or languages != ANY
    said.encode()  # no surrogates
    for character in said:
        assert character == "\n" or unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Co", "Cn")
    again = look(said, languages)
    assert (Script(again.document).text, again.skipped) == (said, ())


def test_a_long_text_takes_little_time() -> None:
    text = "aé\U0001f600\u0301 " * 200_000
    start = time.perf_counter()
    look(text, ANY)
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
    result = look(text, BOTH)
    assert (Script(result.document).text, result.count) == (clean, 0)


def test_a_greek_word_is_still_foreign() -> None:
    with pytest.raises(UnsupportedText):
        look("你好 γειά", ("zh",))


@pytest.mark.parametrize(
    ("text", "character", "count", "reason"),
    [
        ("go \U0001f680\U0001f680", "\U0001f680", 2, "an emoji without a sound"),
        ("a \u2603\ufe0f", "\ufe0f", 1, "an invisible character"),
        ("a \u2580", "\u2580", 1, "a symbol without a sound"),
        ("a\x00\x00", "\x00", 2, "a control character"),
        ("a\u202e", "\u202e", 1, "a bidirectional control"),
        ("a\u200d", "\u200d", 1, "an invisible character"),
        ("a\ud800", "\ud800", 1, "an unpaired surrogate"),
        ("a\ue000", "\ue000", 1, "a private-use character"),
        ("a\u0378", "\u0378", 1, "an unassigned character"),
        ("a" + "\u0301" * 11, "\u0301", 3, "a combining mark too many"),
        ("a\u02d0", "\u02d0", 1, "a modifier letter"),
        ("1\u20e3", "\u20e3", 1, "an enclosing mark"),
    ],
)
def test_what_is_left_out_is_counted_with_its_reason(
    text: str, character: str, count: int, reason: str
) -> None:
    assert why(look(text, ENGLISH))[character] == (count, reason)


@given(st.text(), st.sampled_from([ENGLISH, BOTH, ANY]), st.sampled_from([Options(), NAMED]))
def test_every_character_is_kept_counted_or_refused(
    text: str, languages: tuple[str, ...], options: Options
) -> None:
    text = "a" + unicodedata.normalize("NFC", text.replace("\r", "")) + "a"
    try:
        checked = look(text, languages, options)
    except RequestError:
        return
    kept = Script(checked.document).text
    left_out = why(checked)
    assert all(count > 0 and reason for count, reason in left_out.values())
    for character in set(text):
        if not character.isspace() and unicodedata.normalize("NFKC", character) == character:
            counted = left_out.get(character, (0, ""))[0]
            assert kept.count(character) + counted >= text.count(character)
    assert checked.count <= len(text)


def test_emoji_have_no_sound_or_a_name() -> None:
    with pytest.raises(UnspeakableText) as caught:
        look("\U0001f600 \u2764\ufe0f", ENGLISH)
    assert "emoji=name" in caught.value.hint
    for text in ("\U0001f600", "\u2764\ufe0f", "\U0001f469\u200d\U0001f4bb", "1\ufe0f\u20e3"):
        for languages in (ENGLISH, BOTH):
            named = look(text, languages, NAMED)
            assert (Script(named.document).text, named.skipped) == (text, ())
            assert English().spans(text, NAMED)[0].spoken


def test_an_emoji_that_nothing_names_is_counted() -> None:
    assert why(look("a \U0001faff", ENGLISH, NAMED)) == {"\U0001faff": (1, "an unassigned character")}
    assert why(look("a \U0001f680", ANY, NAMED)) == {"\U0001f680": (1, "an emoji without a name")}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_signs_that_are_kept_are_those_that_the_reader_says(language: str) -> None:
    reader = {"en": English, "zh": Chinese}[language]()

    def said(sign: str) -> bool:
        return any(
            span.spoken not in ("", sign)
            for text in ("a {} b", "5{}", "3{}4", "5 {}C", "你{}好")
            for span in reader.spans(text.format(sign), Options())
            if sign in text.format(sign)[span.start : span.end]
        )

    silent = "©®™" if language == "zh" else ""
    assert [sign for sign in _SIGNS[language] if not said(sign) and sign not in silent] == []
    others = (
        chr(code) for code in (*range(0xA0, 0x100), *range(0x2000, 0x2300)) if not shapes.is_emoji(chr(code))
    )
    symbols = (c for c in others if unicodedata.category(c) in ("So", "Sm", "Sk"))
    unknown = filter(lambda c: not shapes.is_emoji(c), symbols)
    assert [sign for sign in unknown if said(sign) and sign not in _SIGNS[language]] == []


def test_what_stands_between_words_is_kept() -> None:
    document = (
        Boundary("paragraph"),
        Words("  one\x07 "),
        Pause(0.5),
        Words("\u200b"),
        Mark("here"),
        Words("two ", Style(speed=1.5), say_as="characters"),
        Words("", phonemes=Phonemes("ipa", "wʌn")),
        Words(" \x00 "),
    )
    checked = check(document, ENGLISH)
    assert checked.document == (
        Boundary("paragraph"),
        Words("one  "),
        Pause(0.5),
        Mark("here"),
        Words("two ", Style(speed=1.5), say_as="characters"),
        Words("", phonemes=Phonemes("ipa", "wʌn")),
    )
    assert why(checked) == {
        "\x07": (1, "a control character"),
        "\u200b": (1, "an invisible character"),
        "\x00": (1, "a control character"),
    }


def test_silence_alone_is_no_speech() -> None:
    with pytest.raises(EmptyText):
        check((Pause(1.0), Mark("m")), ENGLISH)
    assert check((Words("", phonemes=Phonemes("ipa", "a")),), ENGLISH).skipped == ()


def test_words_of_another_voice_are_checked_for_it() -> None:
    document = (Words("Door "), Words("门", Style(voice="chat")))
    checked = check(document, ENGLISH, others={"chat": BOTH})
    assert checked.document == document
    with pytest.raises(UnsupportedText, match="en, not: 门"):
        check(document, ENGLISH)
    with pytest.raises(UnsupportedText, match="zh, en, not: П"):
        check((Words("Пора", Style(voice="chat")),), ENGLISH, others={"chat": BOTH})


def test_signs_of_the_lexicon_are_kept() -> None:
    checked = check((Words("\U0001f680\u2580"),), ENGLISH, known=frozenset("\U0001f680"))
    assert Script(checked.document).text == "\U0001f680"
    assert list(why(checked)) == ["\u2580"]


def test_voices_that_can_speak_a_text() -> None:
    cards = [card("en", "en-GB"), card("both", "zh", "en"), card("all", "*"), card("ru", "ru")]
    assert speakers_of((Words("Hello 5 µm e\u0301"),), cards) == ["en", "both", "all", "ru"]
    assert speakers_of((Words("Hello"), Words("你好")), cards) == ["both", "all", "ru"]
    assert speakers_of((Words("Привет"),), cards[:2]) == []
    assert speakers_of((Words("Hello"), Words("你好", Style(voice="en"))), cards[:2]) == ["both"]


@given(st.text(min_size=1), st.sampled_from([ENGLISH, BOTH]))
def test_a_voice_is_offered_when_it_would_not_refuse(text: str, languages: tuple[str, ...]) -> None:
    offered = speakers_of((Words(text),), [card("v", *languages)])
    try:
        look(text, languages)
    except UnsupportedText:
        assert offered == []
    except RequestError:
        assert offered == ["v"]
    else:
        assert offered == ["v"]


@pytest.mark.parametrize(
    "piece", ["\u202e", "\u0301", "\ud800", "\U0001f469\u200d", "α", "你\x00", "1\ufe0f\u20e3"]
)
@pytest.mark.parametrize("options", [Options(), NAMED])
def test_a_megabyte_of_anything_takes_little_time(piece: str, options: Options) -> None:
    text = "a" + piece * (350_000 // len(piece))
    start = time.perf_counter()
    with contextlib.suppress(RequestError):
        look(text, BOTH, options)
    assert time.perf_counter() - start < 2.0
