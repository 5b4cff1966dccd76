"""Pinyin, homophones, IPA and romanised Chinese: what is valid, and that nothing is lost on the way."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edged.text.document import Phonemes
from edged.text.phonemes import homophones, ipa, mandarin, pinyin, respell, romanize, spelling

SYLLABLES = [base + tone for base in sorted(pinyin.SYLLABLES) for tone in "12345"]
some_syllables = st.lists(st.sampled_from(SYLLABLES), min_size=1, max_size=6)
sounds = st.text(st.sampled_from(sorted("iɪɛæɑɔʌəuʊeoaɜɚpbtdkɡfvθðszʃʒhmnŋlɹwjˈˌː.ʔɾxçʲʰ")), max_size=20)
MARKS = {"1": "\u0304", "2": "\u0301", "3": "\u030c", "4": "\u0300", "5": ""}


def han(first: int, last: int) -> list[str]:
    return [chr(code) for code in range(first, last)]


COMMON = [
    character
    for row in range(0xB0, 0xD8)
    for cell in range(0xA1, 0xFF)
    for character in bytes([row, cell]).decode("gb2312", errors="ignore")
]


# -- pinyin ---------------------------------------------------------------------------------------


@given(some_syllables)
def test_the_common_form_stays(syllables: list[str]) -> None:
    written = " ".join(syllables)
    assert pinyin.normalised(written) == written
    assert pinyin.normalised("".join(syllables)) == written
    assert pinyin.normalised(written.upper()) == written


@given(some_syllables)
def test_marks_are_the_same_as_numbers(syllables: list[str]) -> None:
    if all(syllable.endswith("5") for syllable in syllables):
        return  # nothing would show that marks are used
    marked = " ".join(_marked(syllable) for syllable in syllables)
    assert pinyin.normalised(marked) == " ".join(syllables)


def _marked(syllable: str) -> str:
    """The mark on the last letter that can carry one; the rules for where it stands are not ours."""
    base, tone = syllable[:-1].replace("v", "ü"), syllable[-1]
    place = max((base.find(vowel) for vowel in "aeoêiuüm" if vowel in base), default=0)
    return base[: place + 1] + MARKS[tone] + base[place + 1 :]


@pytest.mark.parametrize(
    ("written", "form"),
    [
        ("háng yè", "hang2 ye4"),
        ("hang2ye4", "hang2 ye4"),
        ("nǚ'ér", "nv3 er2"),
        ("lu:e4", "lve4"),
        ("lüè", "lve4"),
        ("nue4", "nve4"),
        ("jü4", "ju4"),
        ("hua1r5", "hua1 er5"),
        ("de0", "de5"),
        ("māma", ""),
        ("mā ma", "ma1 ma5"),
    ],
)
def test_ways_to_write_a_syllable(written: str, form: str) -> None:
    if form:
        assert pinyin.normalised(written) == form
    else:
        with pytest.raises(ValueError, match="blank between syllables"):
            pinyin.normalised(written)


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("", "no syllable"),
        (" - ", "no syllable"),
        ("hang ye", "'hang' has no tone"),
        ("hang2 ye", "'ye' has no tone"),
        ("háng ye4", "mixed"),
        ("hang6", "no such tone"),
        ("hang22", "no such tone"),
        ("hangye4", "blank between"),
        ("brr4", "no syllable of pinyin"),
        ("行", "no syllable of pinyin"),
        ("2", "no syllable of pinyin"),
        ("x" * 3_000, "more than 2000 characters"),
    ],
)
def test_what_is_wrong_with_pinyin_is_said(written: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        pinyin.normalised(written)


@given(st.text(max_size=40))
def test_any_text_is_pinyin_or_a_value_error(written: str) -> None:
    try:
        form = pinyin.normalised(written)
    except ValueError:
        return
    assert all(syllable in SYLLABLES for syllable in form.split(" "))


def test_a_syllable_has_an_initial_and_a_final() -> None:
    assert pinyin.parted("zhuang1") == ("zh", "uang", "1")
    assert all("".join(pinyin.parted(syllable)) == syllable for syllable in SYLLABLES)


# -- homophones ---------------------------------------------------------------------------------


def test_homophones_are_han_characters_for_valid_syllables() -> None:
    table = homophones.table()
    assert set(table) <= set(SYLLABLES)
    assert all(len(c) == 1 and romanize.HAN.fullmatch(c) for c in table.values())


def test_homophones_sound_as_the_dictionary_says() -> None:
    toned = {syllable: c for syllable, c in homophones.table().items() if not syllable.endswith("5")}
    wrong = {s for s, c in toned.items() if romanize.pinyin_of(c) != [s]}
    # Common words of which the dictionary lists another reading first.
    otherwise = """a1 beng2 fo2 gei3 guang4 kang2 lin1 lun1 mi1 mo3 ni1 reng1 shao3 shei2 sou4 tuan1 yun1 za3
    zan2 zhei4"""
    assert wrong <= set(otherwise.split())


def test_common_syllables_have_a_homophone() -> None:
    syllables = {syllable for c in COMMON for syllable in romanize.pinyin_of(c)}
    without = {syllable for syllable in syllables if syllable not in homophones.table()}
    assert len(without) / len(syllables) < 0.02


@given(some_syllables)
def test_a_homophone_for_each_syllable(syllables: list[str]) -> None:
    written = homophones.written(" ".join(syllables))
    missing = homophones.missing(" ".join(syllables))
    assert set(missing) <= set(syllables)
    assert len(written) >= len(syllables)
    if not missing:
        assert len(written) == len(syllables)


# -- IPA ----------------------------------------------------------------------------------------


def vocabulary() -> set[str]:
    """The symbols that the English voice knows."""
    hibari = pytest.importorskip("hibari")
    return set(json.loads((Path(hibari.__file__).parent / "assets" / "vocab.json").read_text()))


def test_the_sounds_are_symbols_of_the_english_voice() -> None:
    assert ipa.VOWELS | ipa.CONSONANTS | set(ipa.STRESSES) <= vocabulary()


@given(sounds)
def test_any_sounds_become_american_ones(written: str) -> None:
    american = ipa.american(written)
    assert set(american) <= ipa.VOWELS | ipa.CONSONANTS | set(ipa.STRESSES)
    assert not re.search(f"[{ipa.STRESSES}](?![{''.join(ipa.VOWELS)}])", american)
    assert re.fullmatch("[a-z-]*", spelling.respelled(american))
    assert bool(spelling.respelled(american)) == bool(american)


@given(st.text(max_size=30))
def test_any_text_is_ipa_or_a_value_error(written: str) -> None:
    try:
        form = ipa.normalised(written)
    except ValueError:
        return
    assert ipa.american(form)
    assert ipa.normalised(form) == form


@pytest.mark.parametrize(
    ("written", "american", "letters"),
    [
        ("həˈloʊ", "həlˈO", "huloh"),
        ("/ˈkuːbərˌnɛtiːz/", "kˈubəɹnˌɛtiz", "kooberneteez"),
        ("[ˈnaɪs]", "nˈIs", "nighss"),
        ("t͡ʃɜːtʃ", "ʧˈɜɹʧ", "church"),
        ("bɝd", "bˈɜɹd", "burd"),
        ("ˈwɔtɚ", "wˈɔtəɹ", "wawter"),
        ("lɪtl̩", "lˈɪtᵊl", "litul"),
        ("bax", "bˈɑk", "bok"),
        ("ˈxo", "hˈO", "hoh"),
        ("ðə kæt", "ðə kˈæt", "thuh kat"),
        ("mɪsˈhæp", "mɪshˈæp", "mis-hap"),
        ("θɪŋk ˈɡɪv", "θˈɪŋk ɡˈɪv", "think ghiv"),
        ("ʒɛ̃", "ʒˈɛn", "zhen"),
    ],
)
def test_sounds_and_their_letters(written: str, american: str, letters: str) -> None:
    assert ipa.american(ipa.normalised(written)) == american
    assert spelling.respelled(american) == letters


@pytest.mark.parametrize(
    ("written", "says"), [("", "no sound"), ("ˈ", "no sound"), ("ni3", "'3'"), ("你", "'你'")]
)
def test_what_is_wrong_with_ipa_is_said(written: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        ipa.normalised(written)


# -- for voices without the alphabet ----------------------------------------------------------------


def test_respelling() -> None:
    word = respell.checked("pinyin", "háng yè")
    assert word == Phonemes("pinyin", "hang2 ye4")
    assert romanize.pinyin_of(respell.respell(word, "zh")) == ["hang2", "ye4"]
    assert respell.respell(word, "en") == "hahng yeh"
    assert respell.respell(Phonemes("ipa", "həˈloʊ"), "zh") == "huloh"
    assert respell.missing(Phonemes("pinyin", "sen3 ma1"), "zh") == ("sen3",)
    assert respell.missing(Phonemes("pinyin", "sen3 ma1"), "en") == ()


def test_each_syllable_has_english_sounds() -> None:
    for syllable in SYLLABLES:
        american = mandarin.american(syllable)
        assert set(american) <= ipa.VOWELS | ipa.CONSONANTS | set(ipa.STRESSES)
        assert ("ˈ" in american) != syllable.endswith("5")
        assert sum(symbol in ipa.VOWELS for symbol in american) == 1
        assert re.fullmatch("[a-z]+", spelling.respelled(american))


# -- Chinese text ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "syllables"),
    [
        ("银行行长", "yin2 hang2 hang2 zhang3"),
        ("重庆很重", "chong2 qing4 hen3 zhong4"),
        ("长度在生长", "chang2 du4 zai4 sheng1 zhang3"),
        ("女儿, 〇", "nv3 er2 ling2"),
    ],
)
def test_words_decide_the_reading(text: str, syllables: str) -> None:
    assert romanize.pinyin_of(text) == syllables.split()


def test_every_character_has_one_syllable() -> None:
    characters, rarer = han(0x4E00, 0x9FA6), han(0x3400, 0x4DB6) + han(0x20000, 0x20400)
    read = romanize.pinyin_of("".join(characters))
    assert len(read) == len(characters)
    assert read.count("") == 10  # made in Japan for units (兙)
    assert set(read) <= {*SYLLABLES, ""}
    read = romanize.pinyin_of("".join(rarer))
    assert len(read) == len(rarer)
    assert set(read) <= {*SYLLABLES, ""}  # some are in no dictionary


@given(st.text(st.sampled_from([*COMMON[::7], *"abc 12,。，!'", "\n", "鿿", "𠀀"]), max_size=40))
def test_one_word_of_letters_for_each_character(text: str) -> None:
    known = [c for c in text if romanize.HAN.match(c) and romanize.pinyin_of(c) != [""]]
    romanized = romanize.romanize(text)
    assert not any(c in romanized for c in known)
    kept = [c for c in text if c not in known]
    words = re.findall(r"[^\W\d_]+", romanize.romanize("".join(known)))
    assert len(words) == len(known)
    rest = iter(romanized)
    assert all(c in rest for c in kept)  # what is not Chinese stays, in its order


def test_romanized_text_reads_well() -> None:
    assert romanize.romanize("你好，ABC银行2号。") == "nee how，ABC yeen hahng 2 how。"


def test_the_dictionary_is_loaded_only_when_needed() -> None:
    code = (
        "import sys; from edged.text.phonemes import respell, romanize; from edged.text.lexicon import read;"
        "respell.respell(respell.checked('pinyin', 'ni3'), 'zh'); romanize.romanize('abc');"
        "assert 'pypinyin' not in sys.modules; romanize.romanize('好'); assert 'pypinyin' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
