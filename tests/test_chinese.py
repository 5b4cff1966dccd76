"""Chinese readings: a table of cases by kind, and what holds for every text."""

from __future__ import annotations

import re
import sys
import threading
import time
import unicodedata
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from edged.errors import MissingExtra
from edged.text.chinese.numbers import cardinal
from edged.text.chinese.reader import Chinese
from edged.text.runs import MixedReader
from edged.text.span import KINDS, Options, Span, apply

TABLE = Path(__file__).parent / "data" / "readings_zh.tsv"
WANTED = 0.98  # of every kind
LIMITED = settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
CHINESE = Chinese()


class Untouched:
    """Stands for a reader of English: shows what the Chinese one leaves to it."""

    def spans(self, text: str, options: Options) -> list[Span]:
        return []


MIXED = MixedReader({"zh": CHINESE, "en": Untouched()})


def tidy(text: str) -> str:
    """Blanks beside Han characters are not heard."""
    text = re.sub(r"\s+", " ", text).strip()
    return re.sub(r" (?=[^\x00-\x7f])|(?<=[^\x00-\x7f]) ", "", text)


def said(text: str, **options: str) -> str:
    return apply(text, CHINESE.spans(text, Options(**options)))  # type: ignore[arg-type]


def cases() -> list[tuple[str, str, str]]:
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    rows = [tuple(line.split("\t")) for line in lines if line and (line[0] != "#" or "\t" in line)]
    assert all(len(row) == 3 for row in rows)
    return rows  # type: ignore[return-value]


def test_the_table_is_large_and_names_kinds() -> None:
    rows = cases()
    assert len(rows) >= 300
    assert len({text for _, text, _ in rows}) >= 300
    assert {kind for kind, _, _ in rows} <= set(KINDS)


def test_every_kind_is_read_right() -> None:
    total: Counter[str] = Counter()
    right: Counter[str] = Counter()
    wrong = []
    for kind, text, reading in cases():
        got = MIXED.read(text) if re.search("[\u4e00-\u9fff]", text) else said(text)
        total[kind] += 1
        if tidy(got) == tidy(reading):
            right[kind] += 1
        else:
            wrong.append(f"{kind}: {text!r} is read {got!r}, not {reading!r}")
    figures = {kind: right[kind] / total[kind] for kind in total}
    print("\n".join(f"{kind:12} {right[kind]:3} of {total[kind]:3}" for kind in total))
    assert not [kind for kind, share in figures.items() if share < WANTED], "\n".join(wrong)


@pytest.mark.parametrize(
    "text", ["The pipe is 5 m long.", "Load is 50% now", "The PLC is OK.", "Door 3, 24 V DC"]
)
def test_english_is_left_to_its_reader(text: str) -> None:
    assert MIXED.spans(text, Options()) == []


def check_spans(text: str, spans: Sequence[Span]) -> None:
    place = 0
    for span in spans:
        assert place <= span.start < span.end <= len(text), span
        assert span.kind in KINDS
        place = span.end


def digit_like(character: str) -> bool:
    return character.isdigit() or (
        unicodedata.numeric(character, None) is not None and unicodedata.category(character) != "Lo"
    )


SCRAPS = (
    *"""
    三 号 门 个 年 月 日 点 分 第 元 到 至 % ‰ ℃ °C ° mA kW m² m2 m/s Ω µm Hz V DC AC IP SN:
    A1B2 - -- ~ ± + = < > & # @ / \\ * × x X ^ ² ³ ½ ① Ⅲ Ⅻ . , : ： ， 。 （ ） $ ¥ € USD ￥
    １ ３ Ａ ． 電話 溫度 🔥 1/2 8:05 2024-04-05 10.0.0.1 00:1A:2B:3C:4D:5E a@b.cn www.a.com v1.2.3
    M12x1.75 1e-3 <b> </b> &nbsp; ** __ ``` PLC OK Bluetooth Φ α · “ ” " ' 拨打 13812345678 薴
    直径 日期 电话 编号 层 共
    """.split(),
    *(" ", "\n", "  ", "\ufe0f", "\u20e3", "\ud800", "\0", "\u202e", "\ue000"),
)
PIECES = st.one_of(
    st.text(max_size=8),
    st.integers(0, 10**18).map(str),
    st.sampled_from(SCRAPS),
)
TEXTS = st.lists(PIECES, max_size=10).map("".join)
OPTIONS = st.builds(
    Options,
    emoji=st.sampled_from(("skip", "name")),
    digits=st.sampled_from(("auto", "digits")),
    date_order=st.sampled_from(("mdy", "dmy", "ymd")),
)


@LIMITED
@given(text=TEXTS, options=OPTIONS)
@example(text="5 ~周", options=Options())
def test_any_text_is_read_and_no_digit_left(text: str, options: Options) -> None:
    spans = CHINESE.spans(text, options)
    check_spans(text, spans)
    spoken = apply(text, spans)
    assert not [c for c in spoken if digit_like(c)]
    again = apply(spoken, CHINESE.spans(spoken, options))
    assert tidy(again) == tidy(spoken)


@LIMITED
@given(text=TEXTS)
def test_nothing_is_dropped_but_by_a_span(text: str) -> None:
    spans = CHINESE.spans(text, Options())
    place = 0
    kept = []
    for span in spans:
        kept.append(text[place : span.start])
        kept.append(span.spoken)
        place = span.end
    kept.append(text[place:])
    assert "".join(apply(text, spans).split()) == "".join("".join(kept).split())


@given(value=st.integers(0, 10**16 - 1))
def test_a_number_can_be_heard_back(value: int) -> None:
    assert heard(cardinal(str(value))) == value


def heard(spoken: str) -> int:
    """The number that Chinese words say."""
    scales = {"十": 10, "百": 100, "千": 1000}
    total = section = group = digit = 0
    for word in spoken.replace("两", "二"):
        if word in scales:
            group += (digit or 1) * scales[word]
            digit = 0
        elif word == "万":
            section = (section + group + digit) * 10**4
            group = digit = 0
        elif word == "亿":
            total = (total + section + group + digit) * 10**8
            section = group = digit = 0
        else:
            digit = "零一二三四五六七八九".index(word)
    return total + section + group + digit


HOSTILE = """
1 a 1. 1- -1 1: 1/ a1 a- a. a@ A http://a # * & ~ 🔥 電 1, 00: 第 拨打1 x1 1x ² 1年 ¥1 mA 5m/ . Ⅲ - / +1 (0
 a1- 1x1 1e
""".split()


@pytest.mark.parametrize("unit", [*HOSTILE, "1 ", "<b ", "1 1/2 ", "\ud800", "a ", "1:1 ", "+1-", "\ue000"])
def test_time_grows_with_length_only(unit: str) -> None:
    size = 200_000
    text = unit * (size // len(unit))
    start = time.process_time()
    CHINESE.spans(text[: size // 4], Options())
    short = time.process_time() - start
    start = time.process_time()
    CHINESE.spans(text, Options())
    whole = time.process_time() - start
    assert whole < 8 * short + 0.5  # four times the text; a square would be sixteen
    assert whole < 5.0


def test_without_its_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opencc", None)
    with pytest.raises(MissingExtra, match="opencc") as caught:
        Chinese()
    assert "chattts" in caught.value.hint


def test_letters_of_other_alphabets_are_no_signs() -> None:
    assert said("København 的 Ø20 孔") == "København 的 直径二十 孔"


def test_case_decides() -> None:
    assert said("0.5 mW") == "零点五毫瓦"
    assert said("0.5 MW") == "零点五兆瓦"


def test_options() -> None:
    assert said("04/05/2026", date_order="dmy") == "二零二六年五月四日"
    assert said("13/05/2026") == "二零二六年五月十三日"
    assert said("共305件", digits="digits") == "共三零五件"
    assert said("🔥着火", emoji="name") == "火着火"
    assert said("🔥着火") == "着火"


def test_threads_share_a_reader() -> None:
    texts = [text for _, text, _ in cases()][:120]
    wanted = [said(text) for text in texts]
    seen: list[list[str]] = []
    workers = [threading.Thread(target=lambda: seen.append([said(t) for t in texts])) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert seen == [wanted] * 4
