"""English readings: a table of cases from public rules, and what holds for every text."""

from __future__ import annotations

import time
import unicodedata
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edged.text.english import English, words
from edged.text.span import KINDS, Options, Span, apply

TABLE = Path(__file__).parent / "data" / "readings_en.tsv"
LEAST = 0.98  # right readings of each kind
ENGLISH = English()


def cases() -> list[tuple[str, str, str]]:
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines if line and not line.startswith("# ") and line != "#"]
    return [(kind, text, reading) for kind, text, reading in rows]


def read(text: str, reader: English = ENGLISH, **options: str) -> str:
    return apply(text, reader.spans(text, Options(**options)))  # type: ignore[arg-type]


def test_the_table_is_read_right(record_property) -> None:
    wrong: dict[str, list[str]] = defaultdict(list)
    total: Counter[str] = Counter()
    for kind, text, reading in cases():
        total[kind] += 1
        said = read(text)
        if said.strip() != reading.strip():
            wrong[kind].append(f"{text!r} is read {said!r}, not {reading!r}")
    report = {kind: 1 - len(wrong[kind]) / count for kind, count in total.items()}
    for kind, share in sorted(report.items()):
        print(f"{kind:12} {total[kind]:3} cases {share:7.1%}")
        record_property(kind, share)
    assert all(share >= LEAST for share in report.values()), dict(wrong)


def test_the_table_covers_every_kind() -> None:
    kinds = Counter(kind for kind, _, _ in cases())
    assert set(kinds) == KINDS - {"traditional", "lexicon"}
    assert kinds.total() >= 300
    assert len({text for _, text, _ in cases()}) == kinds.total()
    assert all(not any(c.isdigit() for c in reading) for _, _, reading in cases())


def test_what_was_read_is_not_read_again() -> None:
    for _, text, _ in cases():
        once = read(text)
        assert read(once) == once, text


@pytest.mark.parametrize(
    ("options", "text", "reading"),
    [
        ({"date_order": "dmy"}, "04/05/2026", "May fourth, twenty twenty-six"),
        ({"date_order": "ymd"}, "26/05/04", "May fourth, twenty twenty-six"),
        ({"digits": "digits"}, "Code 21", "Code two one"),
        ({"emoji": "name"}, "Done \U0001f44d", "Done thumbs up sign"),
    ],
)
def test_options(options: dict[str, str], text: str, reading: str) -> None:
    assert read(text, **options) == reading


def test_british() -> None:
    british = English(british=True)
    assert read("1,115 units", british) == "one thousand one hundred and fifteen units"
    assert read("1,015", british) == "one thousand and fifteen"
    assert read("2026-04-15", british) == "the fifteenth of April, twenty twenty-six"


@pytest.mark.parametrize(
    "text",
    [
        "Door three is open.",
        "NASA and the FBI",
        "I am in. So is she.",
        "Stop! Please, wait (there) - now.",
        "“Don’t,” she said.",
        "The sun. It is hot.",
    ],
)
def test_plain_words_are_left_alone(text: str) -> None:
    assert [s for s in ENGLISH.spans(text, Options()) if s.kind != "acronym"] == []


def figures(text: str) -> list[str]:
    """Characters that are figures still. Those of Chinese and Japanese are words there."""
    return [
        c
        for c in text
        if c.isdigit() or (unicodedata.category(c) in ("Nd", "Nl", "No") and not "\u3000" <= c <= "\u33ff")
    ]


def holds(text: str, options: Options) -> None:
    spans = ENGLISH.spans(text, options)
    at = 0
    for span in spans:
        assert isinstance(span, Span)
        assert at <= span.start < span.end <= len(text)
        assert span.kind in KINDS
        assert span.spoken == span.spoken.strip() or span.kind == "width"
        at = span.end
    said = apply(text, spans)
    assert [c for c in figures(said) if c < "\U00010000" and unicodedata.name(c, "")[:3] != "CJK"] == []
    again = apply(said, ENGLISH.spans(said, options))
    assert again == said


WRITTEN = st.lists(
    st.one_of(
        st.sampled_from(
            """0 1 2 05 12 2026 417 1000000 00417 3.5 .5 1,250 1/2 ½ ² ³ ⁻ - − – + ± × x / : . , ; ! ?
            % ° °C µ µm mA V MW m s in kg IP A B C I V X SN SN: No. Rev. Fig. p. Dr. St. etc. e.g.
            am PM $ € USD # @ & < > = * ** ` _ ~ ^ ( ) ' " Door Line Phase Henry April Apr. Mon. in
            since www. .com http:// a@b.de v v2 version USB PLC 👍 5️⃣ １ Ａ ① Ⅻ ٣ <b> </b> &amp; the
            at 24 60 00:1A 192.168 ::1 T Z h won ratio call""".split()
        ),
        st.sampled_from([" ", " ", " ", "\n"]),
    ),
    max_size=24,
).map("".join)


@settings(max_examples=1500, deadline=None)
@given(
    WRITTEN,
    st.sampled_from([Options(), Options(emoji="name"), Options(digits="digits"), Options(date_order="dmy")]),
)
def test_no_figure_is_left_and_nothing_is_read_twice(text: str, options: Options) -> None:
    holds(text, options)


@settings(max_examples=500, deadline=None)
@given(st.text(st.characters(), max_size=120))
def test_any_text_is_read(text: str) -> None:
    holds(text, Options())


@given(st.integers(0, 10**21 - 1))
def test_cardinals_can_be_read_back(number: int) -> None:
    assert value(words.cardinal(number)) == value(words.cardinal(number, british=True)) == number


def value(said: str) -> int:
    """The number that number words name."""
    total = part = 0
    for word in said.replace("-", " ").replace(" and ", " ").split():
        if word in words.ONES:
            part += words.ONES.index(word)
        elif word in words.TENS:
            part += 10 * words.TENS.index(word)
        elif word == "hundred":
            part *= 100
        else:
            total += part * 1000 ** words.SCALES.index(f" {word}")
            part = 0
    return total + part


@pytest.mark.parametrize(
    "piece",
    [
        *"""9 1, 1. 1/ 1- 1: a1 1a A A. a. #a @a a@ a.b. http:// <b <b> & &a ; * ** *a _ - -- ° 1x
        1x1x 1² ½ 👍 5️⃣ Ａ IV I V m/ m/s/ µ $ $1 1$ (555) +1 00: ::1 1:1: a- v1. .1 ' " 1' Rev.
        e.g. \u200d \x00 \ud800 [ ( 1e <!-- 中 1中 word ٣ 1_ x^2""".split(),
        *("1 ", "1 2 ", "- ", "A ", "a ", " ", "call 1 ", "1 000 ", "12 - "),
    ],
)
def test_the_time_is_linear_in_the_text(piece: str) -> None:
    def seconds(length: int) -> float:
        text = (piece * (length // len(piece) + 1))[:length]
        best = 1e9
        for _ in range(2):
            begin = time.process_time()
            ENGLISH.spans(text, Options())
            best = min(best, time.process_time() - begin)
        return best

    short, long = seconds(10_000), seconds(40_000)
    assert long < 10 * short + 0.1, (short, long)
    assert long < 2.0
