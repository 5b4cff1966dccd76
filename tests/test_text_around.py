"""What the lexicon says inside a text, and what stands beside it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edged.text.around import around
from edged.text.document import Words
from edged.text.languages import readings_of
from edged.text.lexicon.match import Lexicon
from edged.text.lexicon.read import parse
from edged.text.reading import Listener, Readings, Stretch
from edged.text.span import Options, Span, apply, pieces
from edged.voices.tone.frontend import ToneFrontend

ENTRIES = r"""
- {word: HMI, say: operator panel}
- {word: MySQL, say: my sequel}
- {word: 行业, pinyin: hang2 ye4}
- {word: 工厂, say: 工场}
- {word: →, say: leads to, language: en}
- {word: C++, say: see plus plus}
- {word: QX-5, say: queue ex 5}
- {pattern: 'PN-(\d{3,6})', say: 'part number \1'}
"""


@pytest.fixture(scope="module")
def readings() -> Readings:
    entries, problems = parse(ENTRIES, "words.yaml")
    assert not problems
    return readings_of([ToneFrontend(60, ("zh", "en"))], Lexicon(entries))


def read(readings: Readings, text: str, language: str) -> Stretch:
    return readings.read(Words(text), language, Listener("v", ("zh", "en")), Options())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("language", "text", "said"),
    [
        ("en", "HMI-02 failed.", "operator panel zero two failed."),
        ("en", "Start MySQL-8 now.", "Start my sequel eight now."),
        ("en", "HMI/2, HMI#3", "operator panel slash two, operator panel hash three"),
        ("en", "HMI 5 kW", "operator panel five kilowatts"),
        ("en", "HMI's door (HMI).", "operator panel's door (operator panel)."),
        ("en", "A→B, 5→7", "A leads to B, five leads to seven"),
        ("en", "C++11 and QX-5-2", "see plus plus eleven and queue ex five two"),
        ("en", "PN-1234 and PN-12.", "part number one two three four and P N twelve."),
        ("zh", "检查HMI-02，行业3号。", "检查operator panel杠零二，航业三号。"),
        ("zh", "打开MySQL-8", "打开my sequel杠八"),
        ("zh", "工厂-02", "工场-零二"),
    ],
)  # fmt: skip
def test_what_follows_an_entry_is_its_designation(
    readings: Readings, language: str, text: str, said: str
) -> None:
    assert "".join(part.text for part in read(readings, text, language).said) == said


PARTS = "HMI MySQL 行业 → C++ PN-123 02 -8 3/4 kW - / . ， is 号 Zaq 㐂 \ufffc".split()


@given(st.lists(st.sampled_from([*PARTS, " "])))
def test_every_character_is_said_once(readings: Readings, parts: list[str]) -> None:
    text = "".join(parts)
    for language in ("en", "zh"):
        stretch = read(readings, text, language)
        assert list(stretch.figures) == sorted(stretch.figures, key=lambda span: span.start)
        silent = {(span.start, span.end) for span in stretch.figures if not span.spoken}
        assert "".join(text[a:b] for a, b in sorted([*stretch.places, *silent])) == text


def _nothing(text: str) -> list[Span]:
    return []


@given(st.text(max_size=30), st.lists(st.integers(0, 30), max_size=8, unique=True))
def test_without_a_reader_only_the_entries_are_said_otherwise(text: str, cuts: list[int]) -> None:
    edges = sorted(cut for cut in cuts if cut <= len(text))
    known = [Span(a, b, "word", "lexicon") for a, b in zip(edges[::2], edges[1::2], strict=False)]
    assert around(text, known, _nothing) == known
    assert len(list(pieces(text, known))) <= 2 * len(known) + 1
    assert apply(text, known).count("word") == text.count("word") + len(known) or "word" in text


def test_a_reader_that_keeps_no_place_leaves_the_entries() -> None:
    def whole(text: str) -> list[Span]:
        return [Span(0, len(text), "something else", "identifier")]

    known = [Span(0, 3, "operator panel", "lexicon")]
    assert around("HMI-02", known, whole) == known
