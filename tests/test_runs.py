"""Languages of one text: which stretch is read by whom."""

from __future__ import annotations

import re
import time
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edged.text.chinese.reader import Chinese
from edged.text.english import English
from edged.text.runs import MixedReader, Run, runs
from edged.text.span import Options, Span, apply

TABLE = Path(__file__).parent / "data" / "readings_mixed.tsv"
MIXED = MixedReader({"zh": Chinese(), "en": English()})


def parts(text: str) -> list[tuple[str, str]]:
    return [(run.language, text[run.start : run.end]) for run in runs(text)]


@pytest.mark.parametrize(
    "text", ["打开 Bluetooth 设置", "按 STOP 按钮 3 次", "iPhone 15 手机", "电压24 V DC", "三号门"]
)
def test_names_inside_chinese_are_part_of_it(text: str) -> None:
    assert parts(text) == [("zh", text)]


@pytest.mark.parametrize("text", ["Door 3 is open.", "24 V DC", "The pipe is 5 m long", "v2.10.3"])
def test_a_text_without_han_is_english(text: str) -> None:
    assert parts(text) == [("en", text)]


@pytest.mark.parametrize(
    ("text", "english"),
    [
        ("提示 the pipe is 5 m long 结束", "the pipe is 5 m long"),
        ("请读：press the red button 3次", "press the red button"),
        ("第3 keep your hands off 12号", "keep your hands off"),
        ("请说 stop it 谢谢", "stop it"),
    ],
)
def test_a_clause_is_english_with_its_numbers(text: str, english: str) -> None:
    assert [part for language, part in parts(text) if language == "en"] == [english]


def test_a_sentence_is_read_in_its_own_language() -> None:
    assert parts("警报。The door opens at 8:05. 请离开3号门。") == [
        ("zh", "警报。"),
        ("en", "The door opens at 8:05."),
        ("zh", " 请离开3号门。"),
    ]
    assert parts("温度: 3.5. 12:30") == [("zh", "温度: 3.5. 12:30")]


def test_a_text_without_letters_has_the_default_language() -> None:
    assert runs("12:30", "zh") == [Run(0, 5, "zh")]
    assert runs("12:30", "en") == [Run(0, 5, "en")]
    assert runs("", "zh") == []


@given(st.text(alphabet=st.sampled_from("ab Iz 3.5,。!?\n三门\ud800/@-%'")), st.sampled_from(("zh", "en")))
def test_runs_cover_the_text(text: str, default: str) -> None:
    found = runs(text, default)  # type: ignore[arg-type]
    assert "".join(text[run.start : run.end] for run in found) == text
    assert all(run.start < run.end for run in found)
    assert all(a.language != b.language for a, b in pairwise(found))


@pytest.mark.parametrize("unit", ["a", "a ", ".", "the 门", "1 ", "三", "a.b ", "a'", "\n", "x1 the of "])
def test_time_grows_with_length_only(unit: str) -> None:
    text = unit * (400_000 // len(unit))
    start = time.process_time()
    runs(text)
    assert time.process_time() - start < 3.0


class Marking:
    """Marks the digits it was given."""

    def __init__(self, mark: str) -> None:
        self._mark = mark

    def spans(self, text: str, options: Options) -> list[Span]:
        return [Span(n, n + 1, self._mark, "cardinal") for n, c in enumerate(text) if c.isdigit()]


def test_spans_are_places_in_the_whole_text() -> None:
    reader = MixedReader({"zh": Marking("二"), "en": Marking("two")})
    assert reader.read("共2台。Take 2 of them. 还有2") == "共二台。Take two of them. 还有二"


def test_apply_parts_words_of_scripts_with_spaces_only() -> None:
    spans = [Span(1, 2, "three", "cardinal"), Span(3, 4, "", "markup")]
    assert apply("D3x*y", spans) == "D three x y"
    assert apply("共3台", [Span(1, 2, "三", "cardinal")]) == "共三台"


def cases() -> list[tuple[str, str, str]]:
    """Language of numbers, text, reading."""
    rows = [line.split("\t") for line in TABLE.read_text(encoding="utf-8").splitlines() if line[0] != "#"]
    return [(numbers, text, reading) for _, numbers, text, reading in rows]


def tidy(text: str) -> str:
    """Blanks beside Han characters are not heard."""
    text = re.sub(r"\s+", " ", text).strip()
    return re.sub(r" (?=[^\x00-\x7f])|(?<=[^\x00-\x7f]) ", "", text)


def test_the_table_is_read_right() -> None:
    wrong = []
    for numbers, text, reading in cases():
        said = MIXED.read(text, Options(numbers=numbers))  # type: ignore[arg-type]
        if tidy(said) != tidy(reading):
            wrong.append(f"{text!r} ({numbers}) is read {said!r}, not {reading!r}")
    assert len(cases()) >= 60
    assert not wrong, "\n".join(wrong)


def test_the_language_of_a_text_without_letters_is_the_option_s() -> None:
    assert MIXED.read("12:30", Options(language="en")) == "twelve thirty"
    assert MIXED.read("12:30", Options(language="zh")) == "十二点三十分"
    assert MIXED.read("12:30") == "十二点三十分"


@pytest.mark.parametrize(
    ("numbers", "text", "reading"),
    [
        ("zh", "Mail a1@b2.example.com", "Mail A one at B two dot example dot com"),
        ("zh", "Part A1B2-00417 is here", "Part A one B two dash zero zero four one seven is here"),
        ("zh", "Call 4417.", "Call 四四幺七."),
        ("zh", "Error 404", "Error 四零四"),
        ("zh", "built in 2026.", "built in 二零二六."),
        ("zh", "Version 2.10", "Version 二点十"),
        ("en", "升级到2.10", "升级到two point ten"),
        ("en", "2026年", "twenty twenty-six年"),
        ("en", "型号XJ-300A", "型号X J杠三零零A"),
        ("en", "拨打119", "拨打one one nine"),
    ],
)
def test_numbers_of_another_language_are_read_as_what_they_are(numbers: str, text: str, reading: str) -> None:
    assert tidy(MIXED.read(text, Options(numbers=numbers))) == tidy(reading)  # type: ignore[arg-type]
