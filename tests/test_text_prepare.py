"""Text to utterances: sentences, pauses, marks, styles, other voices, and what holds for any text."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edged.errors import EdgedError, UnspeakableText
from edged.job import Draw, Params
from edged.text.check import check
from edged.text.document import (
    Boundary,
    Document,
    Encoded,
    Item,
    Mark,
    Pause,
    Phonemes,
    Said,
    Skipped,
    Style,
    Tag,
    Words,
)
from edged.text.languages import readings_of
from edged.text.lexicon.match import Lexicon
from edged.text.lexicon.read import load
from edged.text.markup import parse
from edged.text.prepare import Preparer, prepare
from edged.text.reading import Readings, Stretch
from edged.text.script import Prepared, Script
from edged.text.span import Options
from edged.voices.tone.frontend import ToneFrontend, symbol

MOST = 60
ENGLISH, CHINESE, BOTH = (ToneFrontend(MOST, tags) for tags in (("en-US",), ("zh",), ("zh", "en")))
VOICES = {"both": BOTH, "anna": ENGLISH, "li": CHINESE}


@pytest.fixture(scope="module")
def readings() -> Readings:
    return readings_of(VOICES.values())


def steps(
    document: Document | str,
    readings: Readings,
    voice: str = "both",
    options: Options | None = None,
    **params: object,
) -> list[Prepared]:
    script = Script((Words(document),) if isinstance(document, str) else document, options or Options())
    preparer = Preparer(VOICES, readings)
    return list(preparer.prepared(script, voice, Params(**params)))  # type: ignore[arg-type]


def said(prepared: Sequence[Prepared]) -> list[str]:
    return [" ".join("".join(one.text for one in each.said).split()) for each in prepared]


def test_sentences_of_a_text_are_utterances_in_order(readings: Readings) -> None:
    made = steps("Door 3 is open. See Fig. 4!\n\n今年4月15日停电。Pump 2 runs at 3.5 kW.", readings)
    assert said(made) == [
        "Door three is open.",
        "See Figure four!",
        "今年四月十五日停电。",
        "Pump two runs at three point five kilowatts.",
    ]
    assert [each.utterance.index for each in made] == [0, 1, 2, 3]
    assert [each.utterance.pause_s for each in made] == [0.0, BOTH.pauses.paragraph, 0.0, 0.0]


def test_a_pause_of_its_own_accord_goes_with_the_speed_and_an_asked_one_does_not(readings: Readings) -> None:
    made = steps("One.\n\nTwo.", readings, speed=2.0)
    assert made[0].utterance.pause_s == BOTH.pauses.paragraph / 2
    document = (Words("One."), Pause(0.25), Words("Two."), Boundary("paragraph"), Words("Three."), Pause(1.5))
    made = steps(document, readings, speed=2.0)
    assert [each.utterance.pause_s for each in made] == [0.25, BOTH.pauses.paragraph / 2, 1.5]


def test_silence_and_marks_before_the_first_word_and_after_the_last(readings: Readings) -> None:
    document = (
        Mark("a"),
        Pause(0.5),
        Mark("b"),
        Words("One"),
        Mark("c"),
        Words(" two."),
        Mark("d"),
        Pause(1.0),
    )
    first, second = (each.utterance for each in steps(document, readings))
    assert (first.lead_s, first.marks, first.pause_s) == (0.5, ("a", "b"), 0.0)
    assert (second.lead_s, second.marks, second.marks_after, second.pause_s) == (0.0, ("c",), ("d",), 1.0)


def test_a_style_is_of_the_utterances_that_have_it(readings: Readings) -> None:
    document = (
        Words("One "),
        Words("two ", Style(speed=0.75, volume=2.0)),
        Words("three", Style(voice="anna")),
    )
    made = [each.utterance for each in steps(document, readings, speed=1.2, seed=7)]
    assert [each.params for each in made] == [None, Params(speed=pytest.approx(0.9), seed=7), None]
    assert [each.gain for each in made] == [1.0, 2.0, 1.0]
    assert [each.voice for each in made] == ["", "", "anna"]
    slow, fast = (
        steps((Words("x", Style(speed=factor)),), readings, speed=0.9)[0].utterance.params
        for factor in (0.5, 2)
    )
    assert slow is not None
    assert fast is not None
    assert (slow.speed, fast.speed) == (0.5, 1.8)


@pytest.mark.parametrize(("asked", "style", "heard"), [(0.0, 2.0, 2.0), (3.0, -4.0, -1.0), (9.0, 9.0, 12.0)])
def test_pitches_add_up(readings: Readings, asked: float, style: float, heard: float) -> None:
    (one,) = steps((Words("one", Style(pitch=style)),), readings, pitch=asked, speed=1.5)
    assert one.utterance.params == Params(pitch=heard, speed=1.5)
    assert one.warnings == ()


@pytest.mark.parametrize(
    ("written", "language", "heard"),
    [
        ("请打开 Bluetooth 设置，第3页。", "", "请打开 Bluetooth 设置，第三页。"),
        ("Open valve 3. 第3页。", "", "Open valve three. 第三页。"),
        ("12", "", "十二"),
        ("12", "en", "twelve"),
    ],
)
def test_numbers_are_read_in_the_language_around_them(
    readings: Readings, written: str, language: str, heard: str
) -> None:
    options = Options(language=language)  # type: ignore[arg-type]
    assert " ".join(said(steps(written, readings, options=options))) == heard


def test_numbers_in_the_language_that_is_asked_for(readings: Readings) -> None:
    made = steps("Press button 5 on the left panel.", readings, options=Options(numbers="zh"))
    assert "五" in said(made)[0]
    assert "five" not in said(made)[0]


def test_a_language_that_markup_gives_is_read_in(readings: Readings) -> None:
    document = (Words("3 "), Words("4 ", Style(language="en")), Words("5", Style(language="zh")))
    assert said(steps(document, readings)) == ["三 four 五"]


def test_runs_in_a_language_that_the_voice_lacks_go_to_another_voice(readings: Readings) -> None:
    text = "Warning: the pump is off. 请立即离开3号门。Thank you."
    made = steps(text, readings, "anna", run_voices={"zh": "li"})
    assert [(one.utterance.voice, words) for one, words in zip(made, said(made), strict=True)] == [
        ("", "Warning: the pump is off."),
        ("li", "请立即离开三号门。"),
        ("", "Thank you."),
    ]


def test_runs_can_be_spelled(readings: Readings) -> None:
    pytest.importorskip("pypinyin", reason="pypinyin is not installed (extra chattts)")
    (one,) = steps("Press 3门 now please and go", readings, "anna", run_voices={"zh": "spell"})
    assert not any("\u4e00" <= c <= "\u9fff" for c in said([one])[0])
    letters = steps("请看USB口", readings, "li", run_voices={"en": "spell"})
    assert said(letters) == ["请看U S B口"]


def test_each_language_can_be_drawn_its_own_way(readings: Readings) -> None:
    languages = {"zh": Draw(temperature=0.2), "en": Draw(temperature=0.6, top_k=9)}
    made = steps("请注意，please leave the hall now，谢谢。", readings, languages=languages, top_p=0.5)
    drawn = [each.utterance.params for each in made]
    assert [(p.temperature, p.top_k, p.top_p) for p in drawn if p] == [
        (0.2, None, 0.5),
        (0.6, 9, 0.5),
        (0.2, None, 0.5),
    ]


def test_without_parameters_of_languages_a_sentence_stays_whole(readings: Readings) -> None:
    assert len(steps("请注意，please leave the hall now，谢谢。", readings)) == 1


def lexicon(tmp_path: Path, text: str) -> Lexicon:
    (tmp_path / "words.yaml").write_text(text, encoding="utf-8")
    made, problems = load(["words.yaml"], tmp_path)
    assert problems == []
    return made


def test_the_lexicon_goes_before_the_readers(tmp_path: Path) -> None:
    mine = readings_of(VOICES.values())
    assert said(steps("The QX-5 runs at 5 kW.", mine))[0] != "The queue ex runs at five kilowatts."
    mine.lexicon = lexicon(tmp_path, "- word: QX-5\n  say: queue ex\n- word: 重庆\n  pinyin: chong2 qing4\n")
    assert said(steps("The QX-5 runs at 5 kW.", mine)) == ["The queue ex runs at five kilowatts."]
    (one,) = steps("重庆3号线", mine)
    heard = said([one])[0]
    assert "重" not in heard
    assert heard.endswith("三号线")
    assert len(heard) == 5


def test_phonemes_go_to_a_voice_that_takes_them_and_are_respelled_for_one_that_does_not(
    readings: Readings,
) -> None:
    class Sounding(ToneFrontend):
        alphabets = frozenset({"ipa"})

        def encode(self, said: Sequence[Said]):  # type: ignore[no-untyped-def]
            self.given = [part.phonemes for part in said if part.phonemes]
            return super().encode(said)

    phonemes = Phonemes("ipa", "ˈnaɪkɑn")
    frontend = Sounding(MOST, ("en",))
    script = Script((Words("Buy a "), Words("Nikon", phonemes=phonemes), Words(" now.")))
    (utterance,) = prepare(script, frontend, readings=readings)
    assert frontend.given == [phonemes]
    assert len(utterance.symbols) == len("Buy a Nikon now.")
    (one,) = steps(script.document, readings, "anna")
    assert "Nikon" not in said([one])[0]
    assert said([one])[0].startswith("Buy a ")


@pytest.mark.parametrize(
    ("kind", "detail", "language", "written", "heard"),
    [
        ("cardinal", "", "en", "007", "seven"),
        ("cardinal", "", "en", "-1,250.50", "minus one thousand two hundred fifty point five zero"),
        ("cardinal", "", "zh", "2026", "两千零二十六"),
        ("cardinal", "", "en", "abc", "abc"),
        ("ordinal", "", "en", "21", "twenty-first"),
        ("ordinal", "", "en", "3rd", "third"),
        ("ordinal", "", "zh", "21", "第二十一"),
        ("digits", "", "en", "1250", "one two five zero"),
        ("digits", "", "zh", "1250", "一二五零"),
        ("characters", "", "en", "A1-b/2", "A one dash B slash two"),
        ("characters", "", "zh", "A1-b", "A一杠B"),
        ("telephone", "", "en", "+49 (30) 123-45", "plus four nine, three zero, one two three, four five"),
        ("telephone", "", "zh", "110", "幺幺零"),
        ("date", "dmy", "en", "04/05/2026", "May fourth, twenty twenty-six"),
        ("date", "mdy", "en", "04/05/2026", "April fifth, twenty twenty-six"),
        ("date", "ymd", "en", "20261130", "November thirtieth, twenty twenty-six"),
        ("date", "", "zh", "2026-11-30", "二零二六年十一月三十日"),
        ("date", "md", "zh", "11/30", "十一月三十日"),
        ("date", "ym", "en", "2026-04", "April, twenty twenty-six"),
        ("date", "mdy", "en", "13/45/2026", None),
        ("time", "", "en", "1430", "fourteen thirty"),
        ("unit", "", "en", "mW", "milliwatts"),
        ("unit", "", "en", "MW", "megawatts"),
        ("unit", "", "zh", "kPa", "千帕"),
        ("unit", "", "en", "5 mW", "five milliwatts"),
    ],
)
def test_what_is_said_as_a_kind(
    readings: Readings, kind: str, detail: str, language: str, written: str, heard: str | None
) -> None:
    style = Style(language=language)  # type: ignore[arg-type]
    (one,) = steps((Words(written, style, kind, detail),), readings)
    assert not any(map(str.isdigit, said([one])[0]))
    if heard is not None:
        assert said([one]) == [heard]


def test_what_has_no_sound_is_counted_once(readings: Readings) -> None:
    made = steps("One 🔥 two 🔥. Three ✨", readings, "anna")
    counted = [one for each in made for one in each.skipped]
    assert counted == [Skipped(c, 1, "an emoji without a sound") for c in "🔥🔥✨"]
    named = steps("One 🔥 two.", readings, "anna", options=Options(emoji="name"))
    assert [one for each in named for one in each.skipped] == []
    assert said(named) != said(steps("One  two.", readings, "anna"))


def test_a_sentence_that_is_too_long_is_cut_and_its_words_are_told_once(readings: Readings) -> None:
    made = steps("word " * 100 + "end.", readings)
    assert len(made) > 5
    assert [each.goes_on for each in made] == [False] + [True] * (len(made) - 1)
    assert all(0 < each.ids <= each.limit == MOST for each in made)


@pytest.mark.parametrize("text", ["x" * 5_000, "啊" * 5_000, "e" * 500, "9" * 3_000, "!?" * 2_000 + "x"])
def test_text_without_a_boundary_is_cut_hard(readings: Readings, text: str) -> None:
    made = steps(text, readings)
    assert made
    assert all(len(each.utterance.symbols) <= MOST and any(each.utterance.symbols) for each in made)
    if text[0].isalpha():
        assert sum(len(each.utterance.symbols) for each in made) == len(text)


def test_the_first_sentence_does_not_wait_for_the_rest(readings: Readings) -> None:
    script = Script((Words("Door 3 is open. " + "Pump 4 runs at 3.5 kW. " * 4_000),))
    begin = time.perf_counter()
    first = next(Preparer(VOICES, readings).prepared(script, "both", Params()))
    assert time.perf_counter() - begin < 1.0
    assert said([first]) == ["Door three is open."]


def test_what_is_read_is_told_with_its_places(readings: Readings) -> None:
    script = Script((Words("Door 3. 第3页。"),))
    made = [s for s in Preparer(VOICES, readings).steps(script, "both", Params()) if isinstance(s, Stretch)]
    figures = [(s.language, s.written[f.start : f.end], f.spoken) for s in made for f in s.figures]
    assert figures == [("en", "3", "three"), ("zh", "3", "三")]


ITEMS = st.one_of(
    st.builds(
        Words,
        st.one_of(
            st.text(max_size=40),
            st.sampled_from(["Door 3. ", "第3页。", "5 kW", "🔥", "a.b", "\n\n", "“Stop!” ", "12/11/2026"]),
        ),
        st.builds(
            Style,
            st.sampled_from(["", "zh", "en"]),
            st.sampled_from(["", "", "anna", "li"]),
            st.sampled_from([1.0, 1.0, 0.5, 2.0]),
        ),
    ),
    st.builds(
        Words,
        st.text("0123456789-/.:abc+ ", max_size=14),
        say_as=st.sampled_from(
            ["cardinal", "ordinal", "digits", "characters", "date", "time", "telephone", "unit"]
        ),
    ),
    st.builds(Pause, st.sampled_from([0.1, 2.0])),
    st.builds(Mark, st.sampled_from(["m", "n"])),
    st.builds(Tag, st.just("laugh")),
    st.builds(Boundary, st.sampled_from(["sentence", "paragraph"])),
)


@settings(deadline=None, max_examples=150)
@given(st.lists(ITEMS, max_size=8), st.sampled_from(["both", "anna", "li"]))
def test_what_holds_for_any_document(items: list[Item], voice: str) -> None:
    mine = READINGS
    try:
        made = steps(tuple(items), mine, voice)
    except UnspeakableText:
        assert not any(c.isalnum() for item in items if isinstance(item, Words) for c in item.text)
        return
    utterances = [each.utterance for each in made]
    assert [u.index for u in utterances] == list(range(len(utterances)))
    assert all(0 < each.ids <= each.limit for each in made)
    marks = [name for u in utterances for name in (*u.marks, *u.marks_after)]
    assert marks == [item.name for item in items if isinstance(item, Mark)]
    asked = sum(item.seconds for item in items if isinstance(item, Pause))
    silent = sum(u.lead_s + u.pause_s for u in utterances)
    assert silent >= asked - 1e-9 or utterances[0].lead_s + asked >= silent
    assert not any(c.isdecimal() for each in made for one in each.said for c in one.text)


READINGS = readings_of(VOICES.values())


@settings(deadline=None, max_examples=150)
@given(st.text(max_size=300), st.sampled_from(["plain", "ssml", "chattts"]))
def test_any_text_is_prepared_or_refused(text: str, markup: str) -> None:
    try:
        checked = check(parse(text, markup), BOTH.languages)
    except EdgedError:
        return
    script = Script(checked.document, Options(), checked.skipped)
    try:
        assert list(Preparer(VOICES, READINGS).prepared(script, "both", Params()))
    except UnspeakableText:
        assert not any(map(symbol, script.text)) or checked.count


class FewLetters(ToneFrontend):
    """A voice that knows no capital."""

    def encode(self, said: Sequence[Said]) -> Encoded:
        known = [replace(one, text="".join(c for c in one.text if not c.isupper())) for one in said]
        lost = tuple(c for one in said for c in one.text if c.isupper())
        return replace(super().encode(known), lost=lost)


def test_what_a_voice_has_no_sound_for_is_named_and_counted(readings: Readings) -> None:
    preparer = Preparer({"few": FewLetters(MOST, ("*",))}, readings)
    script = Script((Words("A is. B is. AC, D, E, F, G, H is."),))
    made = list(preparer.prepared(script, "few", Params()))
    assert [each.warnings for each in made[:-1]] == [()] * (len(made) - 1)
    assert made[-1].warnings == ("left out: the voice has no sound for: A B C D E ...",)
    assert "".join(one.character for each in made for one in each.skipped) == "ABACDEFGH"
    with pytest.raises(UnspeakableText) as refused:
        list(preparer.prepared(Script((Words("XY. Z."),)), "few", Params()))
    assert refused.value.hint == "the voice has no sound for: X Y Z"


def test_a_text_that_comes_to_nothing_is_refused_spoken_or_explained(readings: Readings) -> None:
    preparer = Preparer(VOICES, readings)
    for document in ((), (Words("..."),), (Pause(1.0), Mark("a"))):
        with pytest.raises(UnspeakableText):
            list(preparer.steps(Script(document), "both", Params()))
    assert list(prepare("...", BOTH, readings=readings)) == []


@pytest.mark.parametrize(
    ("item", "markup"),
    [
        ("a[laugh]", "chattts"),
        ("<say-as interpret-as='digits'>1</say-as> ", "ssml"),
        ("<sub alias='1111111111'>x</sub>", "ssml"),
        ("<mark name='m'/>a ", "ssml"),
        ("!", "plain"),
        ("1.", "plain"),
        ("a第", "plain"),
    ],
)
def test_many_items_in_one_sentence_are_taken_in_short_steps_and_linear_time(
    readings: Readings, item: str, markup: str
) -> None:
    """An important message waits for one step of another text at most."""

    def seconds(count: int) -> tuple[float, float]:
        text = f"<speak>x {item * count}</speak>" if markup == "ssml" else f"x {item * count}"
        script = Script(parse(text, markup))
        begin = before = time.process_time()
        longest = 0.0
        for _ in Preparer(VOICES, readings).steps(script, "both", Params()):
            now = time.process_time()
            longest, before = max(longest, now - before), now
        return time.process_time() - begin, longest

    seconds(50)
    (small, _), (large, longest) = seconds(230), seconds(1_840)
    assert large < 8 * 3 * small + 0.05
    assert longest < 0.5


@pytest.mark.parametrize("order", ["m", "y", "dmy", "ymd", ""])
def test_figures_that_are_no_date_are_read_as_what_they_are(readings: Readings, order: str) -> None:
    for text in ("1" * 4_400, "1/2/33333", "111/2/2026"):
        made = steps((Words(text, say_as="date", detail=order),), readings)
        assert made
        assert not any(map(str.isdigit, "".join(said(made))))


def test_preparing_takes_time_in_proportion_to_the_text(readings: Readings) -> None:
    def seconds(count: int) -> float:
        begin = time.process_time()
        assert steps("Pump 4, run at 3.5 kW; 第3页 " * count, readings)
        return time.process_time() - begin

    seconds(20)
    small, large = seconds(150), seconds(1_200)
    assert large < 8 * 3 * small
