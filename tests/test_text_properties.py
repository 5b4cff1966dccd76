"""What holds for every text in every language: spans, figures, a second reading, growth and time."""

from __future__ import annotations

import re
import time
import unicodedata
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edged.text.chinese.reader import Chinese
from edged.text.english import English
from edged.text.runs import MixedReader, Reader
from edged.text.span import KINDS, Options, apply

READERS: dict[str, Reader] = {"en": English(), "zh": Chinese()}
READERS["mixed"] = MixedReader({"en": READERS["en"], "zh": READERS["zh"]})
GROWTH = 40  # characters said for one that is written: \U0001fa79 has a name of that length
BOUNDED = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))

RULES = """
0 1 2 05 12 2026 417 1000000 00417 3.5 .5 1,250 1/2 ½ ² ³ ⁻ - − – + ± × x / : . , ; ! ? % ‰ ° °C
℃ ² µ µm mA kV V MW mW m² m2 m/s s in kg IP A B C I IV X SN: No. Rev. Fig. p. Dr. etc. e.g. am PM $
€ ¥ USD RMB # @ & < > = * ** ` _ ~ ^ ( ) ' " Door Line Phase April Apr. Mon. the of at is press
since www. .com http:// a@b.de v v2 版本 USB PLC OK 👍 5️⃣ 🔥 １ Ａ ① Ⅻ ٣ ३ <b> </b> &amp; 24 60
00:1A 192.168 ::1 T Z h 三 号 门 个 年 月 日 点 分 第 元 至 到 比 平方 米 台 温 度 電 溫 幺 電話
拨打 编号 α Ω Φ √ ≥ ≈ ： ， 。 （ ） ￥ M8x1.25 4-20 8:05 2024-04-05 1e-3 11/5 A1B2-00417
""".split()
WRITTEN = st.lists(
    st.one_of(
        st.sampled_from(RULES),
        st.sampled_from(
            [" ", " ", " ", "\n", "\t", "\ufe0f", "\u20e3", "\u200d", "\ud800", "\x00", "\u202e", "\u2066"]
        ),
        st.integers(0, 10**18).map(str),
        st.text(max_size=4),
    ),
    max_size=16,
).map("".join)
OPTIONS = st.builds(
    Options,
    emoji=st.sampled_from(("skip", "name")),
    digits=st.sampled_from(("auto", "digits")),
    date_order=st.sampled_from(("mdy", "dmy", "ymd")),
    language=st.sampled_from(("", "zh", "en")),
)
NUMBERS = st.sampled_from(("auto", "zh", "en"))
CODES = 0x20000  # the planes of Unicode in use
LANGUAGE = pytest.mark.parametrize("language", READERS)


def said(reader: Reader, text: str, options: Options) -> str:
    return apply(text, reader.spans(text, options))


def is_figure(character: str) -> bool:
    """A decimal digit of any script, or another number that is no word of its own."""
    return character.isdigit() or unicodedata.category(character) == "Nd"


def heard(text: str) -> str:
    """Without blanks: where a word ends is not heard beside Han characters."""
    return "".join(text.split())


@LANGUAGE
@BOUNDED
@given(text=WRITTEN, options=OPTIONS)
def test_spans_are_stretches_of_the_text_in_order(language: str, text: str, options: Options) -> None:
    at = 0
    for span in READERS[language].spans(text, options):
        assert at <= span.start < span.end <= len(text)
        assert span.kind in KINDS
        at = span.end


@LANGUAGE
@BOUNDED
@given(text=WRITTEN, options=OPTIONS)
def test_no_figure_is_left_and_growth_is_bounded(language: str, text: str, options: Options) -> None:
    spoken = said(READERS[language], text, options)
    assert not any(map(is_figure, spoken))
    assert len(spoken) <= GROWTH * len(text)


@LANGUAGE
@BOUNDED
@given(text=WRITTEN, options=OPTIONS)
def test_what_was_read_is_not_read_again(language: str, text: str, options: Options) -> None:
    once = said(READERS[language], text, options)
    if language == "mixed" and not any(map(str.isalpha, once)):
        return  # what has no letters is of the default language, of whichever it was before
    assert heard(said(READERS[language], once, options)) == heard(once)


@BOUNDED
@given(text=WRITTEN, options=OPTIONS, numbers=NUMBERS)
def test_numbers_of_one_language_are_all_of_it(text: str, options: Options, numbers: str) -> None:
    spoken = said(READERS["mixed"], text, replace(options, numbers=numbers))  # type: ignore[arg-type]
    assert not any(map(is_figure, spoken))


NUMBER_WORDS = re.compile(
    "[零一二两三四五六七八九十百幺]|zero|one|two|three|four|five|six|seven|eigh|nine|ten|eleven|twel|thir|fif|twent|fort"
    "|hundred|half|quarter|first|second"
)
AROUND = st.sampled_from(
    """{} {}. Door_{} {}_kg {}% ({}) -{} 第{} 共{}台 {}号 ¥{} ${} {}:30 {}/7 {}-99 v{} A{} #{} {}x x{} {}°
    压力{}MPa
    ~{}""".split()
)


@LANGUAGE
@BOUNDED
@given(number=st.integers(0, 10**20), around=AROUND, numbers=NUMBERS)
def test_a_number_is_never_dropped(language: str, number: int, around: str, numbers: str) -> None:
    """It is heard: what is said has more words of numbers than what stands around it alone."""
    options = Options(numbers=numbers)  # type: ignore[arg-type]
    with_it, without = (
        said(READERS[language], around.format(figures).replace("_", " "), options) for figures in (number, "")
    )
    assert len(NUMBER_WORDS.findall(with_it.lower())) > len(NUMBER_WORDS.findall(without.lower()))


@LANGUAGE
@settings(max_examples=100, deadline=None)
@given(text=st.text(st.characters(exclude_categories=()), max_size=80))
def test_any_text_is_read(language: str, text: str) -> None:
    assert not any(map(is_figure, said(READERS[language], text, Options())))


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("emoji", ["skip", "name"])
def test_every_character_is_read(language: str, emoji: str) -> None:
    options = Options(emoji=emoji)  # type: ignore[arg-type]
    for first in range(0, CODES, 128):
        for between in ("", " "):
            text = between.join(map(chr, range(first, first + 128)))
            assert not any(map(is_figure, said(READERS[language], text, options)))


HOSTILE = (
    *"""1 a1 1. 1- 1: 1/ 1, -1 $1 1年 a@ a. A1- # * <b & 👍 第 ± ² ３ ≈ 三1 门a 1x 1e ::1 v1. ~1""".split(),
    *("1 ", "A ", "the 门", "1 m ", "\ud800", "12 - ", "M8x", "Dr. "),
)
SHORT, LONG = 6_000, 24_000


def seconds(read: Callable[[], object]) -> float:
    begin = time.process_time()
    read()
    return time.process_time() - begin


@pytest.mark.parametrize("piece", HOSTILE)
def test_time_grows_with_length_only(piece: str) -> None:
    reader = READERS["mixed"]

    def taken(size: int) -> float:
        text = (piece * (size // len(piece) + 1))[:size]
        return seconds(lambda: reader.spans(text, Options(language="en")))

    short = taken(SHORT)
    assert taken(LONG) < 10 * short + 0.2  # four times the text; a square would be sixteen
