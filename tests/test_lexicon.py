"""Lexicons: what files may hold, what is said about those that may not, and how entries are found."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edged import lexicons
from edged.errors import Problem
from edged.text.document import Phonemes
from edged.text.fold import fold
from edged.text.lexicon import pattern as patterns
from edged.text.lexicon.compiled import Cost, lower
from edged.text.lexicon.entries import Entry, Place
from edged.text.lexicon.match import Lexicon
from edged.text.lexicon.read import MOST_ENTRIES, MOST_WAYS, load, parse, read
from edged.text.phonemes.romanize import pinyin_of

ROOT = Path(__file__).resolve().parent.parent


def lexicon(text: str) -> Lexicon:
    entries, problems = parse(text, "a.yaml")
    assert problems == []
    return Lexicon(entries)


def said(lexicon: Lexicon, text: str, language: str = "zh", voice: str = "heart") -> str:
    """The text with what entries say in brackets."""
    made, at = [], 0
    for match in lexicon.matches(text, language, voice):
        sound = match.phonemes.symbols if match.phonemes else match.said
        made += [text[at : match.start], f"[{sound}]"]
        at = match.end
    return "".join([*made, text[at:]])


def problems_of(text: str) -> list[Problem]:
    return parse(text, "a.yaml")[1]


# -- words ----------------------------------------------------------------------------------------

NAMES = """
- {word: Nginx, say: engine x}
- {word: MySQL, say: my sequel}
- {word: New York, say: big apple}
- {word: York, say: old one}
- {word: can, say: tin}
- {word: S, say: south}
- {word: C++, say: see plus plus}
- {word: 行业, pinyin: hang2 ye4}
- {word: 行业协会, pinyin: hang2 ye4 xie2 hui4}
- {word: 银行, pinyin: yin2 hang2}
- {word: ℃, say: 度, language: zh}
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Nginx nginx NGINX ＮＧＩＮＸ", "[engine x] [engine x] [engine x] [engine x]"),
        ("Nginx's, nginx.", "[engine x]'s, [engine x]."),
        ("nginxy xnginx nginx2 _nginx nginx", "nginxy xnginx nginx2 _nginx [engine x]"),
        ("nginxé nginxe\u0301", "nginxé nginxe\u0301"),
        ("打开nginx服务", "打开[engine x]服务"),
        ("MySQL mysql", "[my sequel] mysql"),
        ("New York, York, newyork", "[big apple], [old one], newyork"),
        ("I can, I can't, I can’t", "I [tin], I can't, I can’t"),
        ("It's S", "It's [south]"),
        ("C++ c++11 C+", "[see plus plus] [see plus plus]11 C+"),
        ("这个行业的行业协会和银行业", "这个[hang2 ye4]的[hang2 ye4 xie2 hui4]和[yin2 hang2]业"),
        ("20℃", "20[度]"),
        ("", ""),
    ],
)
def test_words(text: str, expected: str) -> None:
    assert said(lexicon(NAMES), text) == expected


def test_a_word_of_one_language_stays_there() -> None:
    entries = lexicon("""
- {word: OK, language: zh, say: 好的}
- {word: RPM, language: en, say: turns}
- {word: PLC, say: controller}
""")
    assert said(entries, "OK RPM PLC", "zh") == "[好的] RPM [controller]"
    assert said(entries, "OK RPM PLC", "en") == "OK [turns] [controller]"
    assert said(entries, "OK RPM PLC", "") == "[好的] [turns] [controller]"
    assert [m.language for m in entries.matches("OK RPM PLC", "", "")] == ["zh", "en", "en"]


def test_the_more_special_entry_is_used() -> None:
    entries = lexicon("""
- {word: us, say: the one for some, voices: [heart, tone]}
- {word: US, say: the one in capitals, case: exact}
- {word: us, say: the one in English, language: en}
- {word: us, say: the one for all}
- {pattern: 'u[a-z]', say: a pattern}
""")
    assert said(entries, "us US", "zh", "heart") == "[the one for some] [the one for some]"
    assert said(entries, "us US", "zh", "other") == "[the one for all] [the one in capitals]"
    assert said(entries, "us US", "en", "other") == "[the one in English] [the one in capitals]"


def test_an_entry_for_another_voice_leaves_the_shorter_one() -> None:
    entries = lexicon("- {word: 银行业, say: 一, voices: tone}\n- {word: 银行, say: 二}")
    assert said(entries, "银行业") == "[二]业"
    assert said(entries, "银行业", voice="tone") == "[一]"


words = st.text(st.sampled_from("ab'A银行业好 "), min_size=1, max_size=4).map(str.strip).filter(bool)


@given(st.lists(words, min_size=1, max_size=8), st.text(st.sampled_from("ab'A银行业好 ,"), max_size=30))
def test_matches_are_the_longest_leftmost_and_apart(known: list[str], text: str) -> None:
    made = [Entry(fold(w), "", False, "zh", False, f"<{w}>", None, (), Place("a.yaml", 1, 1)) for w in known]
    found = Lexicon(made).matches(text, "zh", "")
    keys = {lower(fold(w)) for w in known}
    at = 0
    for match in found:
        assert at <= match.start < match.end <= len(text)
        stretch = lower(fold(text[match.start : match.end]))
        assert stretch in keys
        at = match.end
    if all("'" not in w for w in known) and "'" not in text:
        assert [(m.start, m.end) for m in found] == list(_slowly(keys, lower(fold(text))))


def _slowly(keys: set[str], text: str) -> Iterator[tuple[int, int]]:
    """The same by trying everything."""
    at = 0
    while at < len(text):
        ends = [
            at + len(key)
            for key in keys
            if text.startswith(key, at) and _parted(text, at) and _parted(text, at + len(key))
        ]
        if ends:
            yield at, max(ends)
        at = max(ends, default=at + 1)


def _parted(text: str, at: int) -> bool:
    return not re.fullmatch("[a-z]{2}", text[max(0, at - 1) : at + 1])


# -- patterns -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "say", "text", "expected"),
    [
        (r"PN-(\d{3,6})", r"part \1", "PN-123 PN-12 PN-1234567 pn-123", "[part 123] PN-12 PN-1234567 pn-123"),
        (r"AGV(\d{1,2})", r"小车\1号", "AGV12到了", "[小车12号]到了"),
        (r"AB|ABC", "x", "AB ABC ABCD", "[x] [x] ABCD"),
        (r"v(\d)(?:\.(\d))?", r"version \1 \2", "v1.2 v3 xv1", "[version 1 2] [version 3] xv1"),
        (r"[A-Z]{2}\-[^\d]", "x", "AB-c AB-1", "[x] AB-1"),
        (r"第(\d{1,3})号", r"\1", "第12号线", "[12]线"),
        (r"(?:a|b){2}", "x", "ab ba abc", "[x] [x] abc"),
        (r"\(\d\)", "x", "(1) (a)", "[x] (a)"),
        (r"\w{1,3}年", "x", "abc年 １２年 中年", "[x] [x] 中年"),
    ],
)
def test_patterns(pattern: str, say: str, text: str, expected: str) -> None:
    yaml = json.dumps([{"pattern": pattern, "say": say, "language": "zh"}])
    assert said(lexicon(yaml), text) == expected


def test_a_pattern_may_ignore_capitals_and_have_phonemes() -> None:
    entries = lexicon(r"""
- {pattern: 'pn-(\d)', say: 'part \1', case: any}
- {pattern: 'colou?r', ipa: ˈkʌlɚ}
- {word: PN-1, say: the first}
""")
    assert said(entries, "PN-2 pN-3 PN-1 colour") == "[part 2] [part 3] [the first] [ˈkʌlɚ]"
    match = entries.matches("a colour", "en", "")[0]
    assert (match.said, match.phonemes) == ("colour", Phonemes("ipa", "ˈkʌlɚ"))


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        ("a+", "+ has no bound"),
        ("a*", "* has no bound"),
        ("a{2,}", "both numbers"),
        ("a{,2}", "both numbers"),
        ("a{1,65}", "up to 64"),
        ("a{9,2}", "backwards"),
        ("a{x}", "both numbers"),
        ("a.c", "point"),
        ("^a", "whole words"),
        ("a$", "whole words"),
        (r"(a)\1", "refers back"),
        (r"\bword", r"\\b is not taken"),
        (r"\s", r"\\s is not taken"),
        ("(?<=a)b", r"only \(\?: is taken"),
        ("(?=a)b", r"only \(\?: is taken"),
        ("(?P<n>a)", r"only \(\?: is taken"),
        ("(?i)a", r"only \(\?: is taken"),
        ("(a", "without its"),
        ("a)", "without its"),
        ("[a", "without its"),
        ("a]", "without its"),
        ("[]", "holds nothing"),
        ("[z-a]", "no regular expression"),
        ("[a[b]", "written"),
        ("[a--b]", "write the sign once"),
        ("a??", "right behind"),
        ("a{2}{3}", "right behind"),
        ("?a", "nothing before"),
        ("{2}a", "nothing before"),
        ("a?", "where there is nothing"),
        ("a{0,3}", "where there is nothing"),
        ("a|", "where there is nothing"),
        ("()", "where there is nothing"),
        ("(" * 12 + "a" + ")" * 12, "deep"),
        ("(a{0,64}){0,64}b", "more than 256 characters"),
        ("(a?){8}b", "more than 128 ways"),
        ("(a|a|a){1,5}", "more than 128 ways"),
        ("(((a?b?){4}c?){2}d)", "more than 128 ways"),
        ("a" * 300, "more than 256 characters"),
        ("a\\", "not taken"),
    ],
)
def test_what_a_pattern_may_not_be_is_said(pattern: str, says: str) -> None:
    with pytest.raises(ValueError, match=says.replace("+ has", r"\+ has").replace("* has", r"\* has")):
        patterns.shape(pattern)


@given(st.text(st.sampled_from(r"ab12[](){},?|\^-dw:.*+ 龙"), max_size=24))
def test_any_pattern_is_bounded_or_a_value_error(pattern: str) -> None:
    try:
        shape = patterns.shape(pattern)
    except ValueError:
        return
    regex = re.compile(pattern, re.ASCII)
    assert 1 <= shape.least <= shape.most <= patterns.LONGEST_MATCH
    assert 1 <= shape.ways <= patterns.MOST_WAYS
    assert shape.groups == regex.groups
    first = re.compile("|".join(shape.firsts), re.ASCII)
    for text in ("ab12", "aaaa", "1", "龙", "-", "[", "bbb222", "a b", shape.literal + "ab"):
        match = regex.match(text)
        if match:
            assert shape.least <= match.end() <= shape.most
            assert first.match(text)
            assert text.startswith(shape.literal)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("(a?){6}b", "aaaaaaa "),
        ("(龙?){7}凤", "龙"),
        ("龙{1,64}凤", "龙"),
        ("[^x]{1,64}y", "龙"),
        ("(龙{1,9}|龙{1,9}){1}龙{1,6}凤", "龙"),
        ("[^x]{64}[^x]{64}[^x]{60}[^y]{1,64}y", "龙"),
        ("[龙]{1,2}[0-9]", "龙"),
    ],
)
def test_hostile_texts_take_time_that_grows_with_them(pattern: str, text: str) -> None:
    entries, problems = parse(
        json.dumps([{"pattern": pattern, "say": "一", "language": "zh"}] * 300), "a.yaml"
    )
    assert not problems
    cost, kept = Cost(), []
    for entry in entries:
        if cost.with_one(entry.pattern) > MOST_WAYS:
            break
        kept.append(entry)
    assert 0 < len(kept) < 300
    found = Lexicon(kept)
    took = [_seconds(found, text * (count // len(text))) for count in (1_000, 4_000)]
    assert took[1] < 3  # 0.6 s at worst on a free machine
    assert took[1] < max(0.05, took[0]) * 10


def _seconds(entries: Lexicon, text: str) -> float:
    begun = time.process_time()
    entries.matches(text, "zh", "")
    return time.process_time() - begun


def test_patterns_of_files_together_are_bounded(tmp_path: Path) -> None:
    yaml = [{"pattern": r"\d{1,60}x", "say": "x"}] * 30 + [{"word": "last", "say": "word"}]
    (tmp_path / "a.yaml").write_text(json.dumps(yaml))
    loaded, problems = load(["a.yaml"], tmp_path)
    assert loaded.entries[-1].word == "last"
    assert "too many" in problems[0].message
    many = [{"pattern": rf"A{number}-\d{{1,60}}", "say": "x"} for number in range(900)]
    (tmp_path / "a.yaml").write_text(json.dumps(many))
    loaded, problems = load(["a.yaml"], tmp_path)
    assert (len(loaded.entries), problems) == (900, [])  # they begin differently
    assert said(loaded, "A899-12 A7-1") == "[x] [x]"


# -- files ------------------------------------------------------------------------------------------


def test_a_problem_names_the_entry_and_the_field() -> None:
    _, problems = parse("- word: 行业\n  pinyin: hang2\n- pattern: 'a(b'\n  say: x\n- say: y", "a.yaml")
    assert [problem.key for problem in problems] == ["行业: pinyin", "a(b: pattern", ""]
    assert ": 行业: pinyin: expected a syllable for each" in str(problems[0])


def test_entries_for_voices_that_are_not_there_are_told(caplog: pytest.LogCaptureFixture) -> None:
    entries, _ = parse("- {word: a, say: b, voices: [hart, bao]}\n- {word: c, say: d}", "a.yaml")
    lexicons.tell_strangers(Lexicon(entries), ["heart", "bao"])
    (record,) = caplog.records
    assert record.message == "lexicon: a.yaml:1: a: no voice is named 'hart' (did you mean 'heart'?)"


def test_signs_that_are_words_are_known_whatever_their_colour() -> None:
    signs = ("- {word: ⚠\ufe0f, say: warning, language: en}", "- {word: →, say: to, language: en}")
    entries, _ = parse("\n".join([*signs, "- {word: C→, say: x}"]), "a.yaml")
    assert Lexicon(entries).signs == {"⚠", "→"}
    assert [match.said for match in Lexicon(entries).matches("a ⚠ b", "en", "v")] == ["warning"]


@pytest.mark.parametrize(
    ("yaml", "place", "says"),
    [
        ("- word: a\n  sya: b\n  say: c", (2, 3), "no such field"),
        ("- word: a\n  say: c\n  say: d", (3, 3), "already there on line 2"),
        ("- word: a", (1, 3), "one of say, pinyin and ipa"),
        ("- {word: a, say: b, ipa: b}", (1, 3), "got say and ipa"),
        ("- say: a", (1, 3), "one of word and pattern"),
        ("- {word: a, pattern: a, say: b}", (1, 3), "one of word and pattern"),
        ("- word: [a]\n  say: b", (1, 9), "expected a text"),
        ("- word:\n  say: b", (1, 8), "got nothing"),
        ("- {word: '', say: b}", (1, 10), "got nothing"),
        ("- word: !!binary aGk=\n  say: b", (1, 9), ""),
        ("- word: !python/object:os.system a\n  say: b", (1, 9), "without the tag"),
        ("- {word: '" + "a" * 65 + "', say: b}", (1, 10), "at most 64 characters"),
        ('- {word: "a\\u202eb", say: b}', (1, 10), "cannot be seen"),
        ("- {word: a, say: '...'}", (1, 18), "no sound"),
        ("- {word: a, say: 好}", (1, 18), "Han characters"),
        ("- {word: a, say: 'b \\1'}", (1, 18), "no group"),
        ("- {pattern: '(a)', say: 'b \\2'}", (1, 25), "no group"),
        ("- {word: 好, pinyin: hao3 de5}", (1, 21), "1 characters, got 2"),
        ("- {word: 好a, pinyin: hao3 a1}", (1, 22), "Han characters only"),
        ("- {word: 好, pinyin: hao}", (1, 21), "has no tone"),
        ("- {word: a, ipa: 你}", (1, 18), "no symbol of IPA"),
        ("- {word: '+', say: plus}", (1, 3), "language"),
        ("- {word: a, say: b, language: fr}", (1, 31), "zh or en"),
        ("- {word: a, say: b, case: lower}", (1, 27), "exact or any"),
        ("- {word: a, say: b, voices: []}", (1, 29), "names of voices"),
        ("- {word: a, say: b, voices: [{}]}", (1, 30), "expected a text"),
        ("- {pattern: a+, say: b}", (1, 13), "has no bound"),
        ("- {pattern: ａ, say: b, language: en}", (1, 13), "found in texts as 'a'"),
        ("- x", (1, 3), "expected an entry"),
        ("x", (1, 1), "expected a list"),
        ("entry: []", (1, 1), "only 'entries:'"),
        ("entries: {}", (1, 10), "expected a list"),
        ("entries: []\nentries: []", (2, 1), "already there"),
        ("- {<<: {word: a}, say: b}", (1, 4), "merge keys"),
        ("- &a {word: a, say: b}\n- *a", (1, 3), "alias"),
        ("- &a [*a]", (1, 3), "expected an entry"),
        ("- word: &w a\n  say: *w", (1, 9), "alias"),
        ("- word: a\n\tsay: b", (2, 1), "YAML"),
        ("- word: 'a", (1, 11), "YAML"),
        ("- word: a\n  say: b: c", (2, 9), "YAML"),
        ("- word: *w\n", (1, 9), "YAML"),
        ("a\x00b", (1, 0), "may not stand"),
        ("--- []\n--- []", (2, 1), "YAML"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_with_its_place(
    yaml: str, place: tuple[int, int], says: str
) -> None:
    entries, problems = parse(yaml, "a.yaml")
    if not problems:
        assert says == ""
        return
    assert entries == [] or "alias" in says
    assert any(says in problem.message for problem in problems), [str(problem) for problem in problems]
    problem = next(problem for problem in problems if says in problem.message)
    assert (problem.file, problem.line) == ("a.yaml", place[0])
    assert problem.column == place[1] or says in ("YAML", "may not stand")
    assert str(problem).startswith(f"a.yaml:{place[0]}:")


@pytest.mark.parametrize("yaml", ["", "---\n", "# nothing\n", "[]", "entries:\n", "entries: []", "null"])
def test_files_without_entries(yaml: str) -> None:
    assert parse(yaml, "a.yaml") == ([], [])


def test_values_are_taken_as_they_are_written() -> None:
    found, problems = parse("- {word: no, say: 007}\n- {word: 1e3, language: en, say: yes}", "a.yaml")
    assert [(entry.word, entry.say) for entry in found] == [("no", "007"), ("1e3", "yes")]
    assert problems == []


BOMB = "a: &a [x]\n" + "".join(
    f"{name}: &{name} [{','.join([f'*{before}'] * 9)}]\n"
    for before, name in zip("abcdefghi", "bcdefghij", strict=True)
)
DEEP = ["[" * 100_000, "- " * 100_000, "? " * 100_000, "{a: " * 50_000]
ODD = ["&a " * 9, '"\\UFFFFFFFF"', "%YAML 1.999\n--- a"]


@pytest.mark.parametrize("yaml", [BOMB, *DEEP, *ODD])
def test_hostile_files_are_problems_and_quick(yaml: str) -> None:
    begun = time.process_time()
    entries, problems = parse(yaml, "a.yaml")
    assert entries == []
    assert problems
    assert time.process_time() - begun < 5


@given(st.text(max_size=80))
def test_any_text_is_read_without_failing(text: str) -> None:
    parse(text, "a.yaml")


fields = st.sampled_from(["word", "pattern", "say", "ipa", "pinyin", "voices", "x"])
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(fields, inner, max_size=4),
    max_leaves=12,
)


@given(values)
def test_any_structure_is_read_without_failing(value: object) -> None:
    entries, _ = parse(json.dumps([value]), "a.yaml")
    for entry in entries:
        Lexicon([entry]).matches("word a 行业 1", "zh", "x")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_text("#" * (1024 * 1024 + 1))
    (tmp_path / "latin").write_bytes(b"- word: a\n  say: \xe9\n")
    (tmp_path / "bom.yaml").write_bytes(b"\xef\xbb\xbf- {word: a, say: b}\n")
    names = ["none", "pipe", "large", "latin", ".", "a\0b", "bom.yaml"]
    loaded, problems = load(names, tmp_path)
    assert [entry.word for entry in loaded.entries] == ["a"]
    assert [problem.file for problem in problems] == names[:-1]
    assert [problem.line for problem in problems] == [0, 0, 0, 2, 0, 0]
    assert read(tmp_path / "bom.yaml", "bom.yaml")[1] == []


def test_problems_and_entries_are_bounded(tmp_path: Path) -> None:
    lines = [f"- {{word: w{number}, say: x}}" for number in range(MOST_ENTRIES + 5)]
    entries, problems = parse("\n".join(lines), "a.yaml")
    assert len(entries) == MOST_ENTRIES
    assert [(problem.line, problem.message) for problem in problems] == [
        (MOST_ENTRIES + 1, f"expected at most {MOST_ENTRIES} entries, got {MOST_ENTRIES + 5}")
    ]
    (tmp_path / "a").write_text("\n".join(lines[:6_000]))
    (tmp_path / "b").write_text("\n".join(lines[6_000:]))
    loaded, problems = load(["a", "b"], tmp_path)
    assert len(loaded.entries) == MOST_ENTRIES
    assert [(problem.file, problem.line) for problem in problems] == [("b", 4_001)]
    assert said(loaded, "w9999 w1 w10004") == "[x] [x] w10004"
    told = problems_of("- x\n" * 500)
    assert len(told) == 101
    assert told[-1].message == "and 400 more problems"


def test_the_later_entry_is_used_and_both_places_are_told(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("- {word: Nginx, say: first}\n- {word: nginx, say: second}\n")
    (tmp_path / "b.yaml").write_text("- {word: NGINX, case: any, say: third}\n- {word: NGINX, say: fourth}\n")
    loaded, problems = load(["a.yaml", "b.yaml"], tmp_path)
    assert problems == []
    assert [(note.file, note.line) for note in loaded.notes] == [("a.yaml", 2), ("b.yaml", 1)]
    assert "a.yaml:1" in loaded.notes[0].message
    assert "a.yaml:2" in loaded.notes[1].message
    assert [entry.say for entry in loaded.entries] == ["third", "fourth"]
    assert said(loaded, "nginx NGINX") == "[third] [fourth]"


def test_entries_for_other_voices_or_languages_are_no_conflict(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(
        "- {word: a, say: b}\n- {word: a, say: c, language: en}\n- {word: a, say: d, voices: x}\n"
        "- {word: a, say: e, voices: [y, x]}\n"
    )
    loaded, _ = load(["a.yaml"], tmp_path)
    assert [note.line for note in loaded.notes] == [4]
    assert [entry.say for entry in loaded.entries] == ["b", "c", "e"]


def test_a_syllable_without_a_character_is_noted(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("- {word: 森, pinyin: sen3}\n- {word: 好, pinyin: hao3}\n")
    loaded, problems = load(["a.yaml"], tmp_path)
    assert problems == []
    assert [(note.line, note.key) for note in loaded.notes] == [(1, "森")]
    assert "sen3" in loaded.notes[0].message


# -- the example and the command -----------------------------------------------------------------------


def test_the_example_is_right() -> None:
    loaded, problems = load(["config/lexicon.yaml"], ROOT)
    assert problems == []
    assert loaded.notes == ()
    for entry in loaded.entries:
        if entry.word and entry.phonemes is not None and entry.phonemes.alphabet == "pinyin":
            assert pinyin_of(entry.word) == entry.phonemes.symbols.split()
    assert said(loaded, "银行行长在重庆重启AGV12") == (
        "[yin2 hang2][hang2 zhang3]在[chong2 qing4][chong2 qi3][小车12号]"
    )
    assert said(loaded, "Nginx, PN-1234, v1.2", "en") == "[engine x], [part number 1234], [version 1 point 2]"


def edged(*args: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "edged", *args]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment, timeout=60)


def test_the_command_tells_people() -> None:
    done = edged("lexicon", "check", "config/lexicon.yaml")
    assert (done.returncode, done.stderr) == (0, "")
    assert "config/lexicon.yaml:" in done.stdout
    assert "行业 -> [pinyin] hang2 ye4" in done.stdout
    assert done.stdout.splitlines()[-1].endswith("0 notes, 0 problems")


def test_the_command_tells_scripts(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("- {word: a, say: b}\n- {word: a, say: c}\n- {word: d}\n")
    done = edged("lexicon", "check", "--json", "a.yaml", "none.yaml", cwd=tmp_path)
    assert done.returncode == 2
    answer = json.loads(done.stdout)
    assert answer["ok"] is False
    assert answer["entries"] == [
        {"word": "a", "say": "c", "case": "any", "language": "", "voices": [], "file": "a.yaml", "line": 2}
    ]
    assert [note["line"] for note in answer["notes"]] == [2]
    assert [(problem["file"], problem["line"]) for problem in answer["problems"]] == [
        ("a.yaml", 3),
        ("none.yaml", 0),
    ]
    assert edged("lexicon", "check").returncode == 2
