"""SSML: what each element means, what is refused and where, and that no text takes long."""

from __future__ import annotations

import json
import re
import time
import tracemalloc
from itertools import pairwise
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edged.errors import BadMarkup
from edged.text.document import PLAIN, Boundary, Document, Mark, Pause, Phonemes, Style, Words
from edged.text.markup import parse
from edged.text.markup.ssml import ATTRIBUTES, DEPTH, ELEMENTS, VALUE_CHARS
from edged.text.markup.ssml_elements import NAMES

W3C = 'xmlns="http://www.w3.org/2001/10/synthesis"'
SENTENCE, PARAGRAPH = Boundary("sentence"), Boundary("paragraph")


def read(inner: str, outer: str = "<speak>") -> Document:
    return parse(f"{outer}{inner}</speak>", "ssml")


def words(document: Document) -> str:
    return "".join(item.text for item in document if isinstance(item, Words))


def refusal(text: str) -> BadMarkup:
    with pytest.raises(BadMarkup) as caught:
        parse(text, "ssml")
    return caught.value


# -- elements -----------------------------------------------------------------------------------


def test_a_document_as_the_w3c_writes_it() -> None:
    head = f"""<?xml version="1.0" encoding="UTF-8"?>
    <!-- greeting -->
    <speak version="1.1" {W3C} xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
        xsi:schemaLocation="http://www.w3.org/2001/10/synthesis synthesis.xsd" xml:lang="en-US">"""
    document = read("\n <p><s>Door <mark name='d'/> three.</s>\n <s>你好</s></p> <p>End.</p>\n", head)
    assert document == (
        Words("Door"),
        Mark("d"),
        Words(" three."),
        SENTENCE,
        Words("你好"),
        PARAGRAPH,
        Words("End."),
    )


@pytest.mark.parametrize(
    "head", ["<speak>", f"<speak {W3C}>", "<speak version='1.0'>", "\ufeff<speak>", " \n<speak>"]
)
def test_the_namespace_and_the_version_may_be_left_out(head: str) -> None:
    assert read("x", head) == (Words("x"),)


def test_the_namespace_may_have_a_prefix() -> None:
    prefixed = '<v:speak xmlns:v="http://www.w3.org/2001/10/synthesis">a<v:break time="1s"/></v:speak>'
    assert parse(prefixed, "ssml") == (Words("a"), Pause(1.0))


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("", 0.4),
        ("time='500ms'", 0.5),
        ("time='2s'", 2.0),
        ("time='.5s'", 0.5),
        ("time='+10s'", 10.0),
        ("time=' 1.25s '", 1.25),
        ("strength='x-weak'", 0.1),
        ("strength='weak'", 0.2),
        ("strength='medium'", 0.4),
        ("strength='strong'", 0.8),
        ("strength='x-strong'", 1.2),
        ("strength='weak' time='3s'", 3.0),
    ],
)
def test_breaks(written: str, seconds: float) -> None:
    assert read(f"a <break {written}/> b") == (Words("a"), Pause(seconds), Words(" b"))


@pytest.mark.parametrize("written", ["strength='none'", "time='0s'", "time='0ms'"])
def test_a_break_of_no_length_is_none(written: str) -> None:
    assert read(f"a <break {written}/> b") == (Words("a b"),)


@pytest.mark.parametrize(
    ("written", "say_as", "detail"),
    [
        *((f"'{plain}'", plain, "") for plain in ("cardinal", "ordinal", "digits", "characters", "date")),
        *((f"'{plain}'", plain, "") for plain in ("time", "telephone", "unit")),
        ("'number'", "cardinal", ""),
        ("'spell-out'", "characters", ""),
        ("'verbatim'", "characters", ""),
        *((f"'date' format='{order}'", "date", order) for order in "mdy dmy ymd md dm ym my y m d".split()),
        ("'date' format='yyyymmdd'", "date", "ymd"),
        ("'date' format='DDMMYY'", "date", "dmy"),
        ("'date' detail='my'", "date", "my"),
        ("'date' detail='my' format='mmyy'", "date", "my"),
        ("'time' format='hms12'", "time", "hms12"),
    ],
)
def test_say_as(written: str, say_as: str, detail: str) -> None:
    document = read(f"on <say-as interpret-as={written}> 1/2 </say-as>, or")
    assert document == (Words("on "), Words("1/2", say_as=say_as, detail=detail), Words(", or"))


def test_sub_says_something_else() -> None:
    assert read("The <sub alias='World Wide  Web'>WWW</sub>.") == (Words("The World Wide Web."),)
    assert read("<sub alias='a &lt; b'/>") == (Words("a < b"),)


@pytest.mark.parametrize(
    ("alphabet", "written", "means"),
    [
        ("ipa", " həˈloʊ ", Phonemes("ipa", "həˈloʊ")),
        ("pinyin", " hang2  ye4 ", Phonemes("pinyin", "hang2 ye4")),
        ("x-pinyin", "háng yè", Phonemes("pinyin", "hang2 ye4")),
    ],
)
def test_phonemes(alphabet: str, written: str, means: Phonemes) -> None:
    document = read(f"<phoneme alphabet='{alphabet}' ph='{written}'>行业</phoneme>")
    assert document == (Words("行业", phonemes=means),)
    assert words(read(f"<phoneme alphabet='{alphabet}' ph='{written}'/>")) == ""


@pytest.mark.parametrize(
    ("written", "style"),
    [
        ("rate='slow'", Style(speed=0.75)),
        ("rate='x-fast'", Style(speed=2.0)),
        ("rate='default'", PLAIN),
        ("rate='90%'", Style(speed=0.9)),
        ("rate='+10%'", Style(speed=1.1)),
        ("rate='-50%'", Style(speed=0.5)),
        ("rate='1.2'", Style(speed=1.2)),
        ("volume='soft'", Style(volume=0.5)),
        ("volume='silent'", Style(volume=0.0)),
        ("volume='+6dB'", Style(volume=1.995262)),
        ("volume='-3dB'", Style(volume=0.707946)),
        ("volume='+12dB'", Style(volume=3.981072)),
        ("pitch='+2st'", Style(pitch=2.0)),
        ("pitch='x-low'", Style(pitch=-6.0)),
        ("pitch='+100%'", Style(pitch=12.0)),
        ("pitch='-50%'", Style(pitch=-12.0)),
        ("rate='fast' volume='loud' pitch='high'", Style(speed=1.5, volume=1.5, pitch=3.0)),
    ],
)
def test_prosody(written: str, style: Style) -> None:
    assert read(f"<prosody {written}>x</prosody>") == (Words("x", style),)


def test_prosody_in_prosody_multiplies() -> None:
    inner = "<prosody rate='150%' volume='soft' pitch='+2st'>b</prosody>"
    document = read(f"<prosody rate='1.2' volume='x-loud' pitch='-3st'>a {inner} c</prosody> d")
    assert document == (
        Words("a ", Style(speed=1.2, volume=2.0, pitch=-3.0)),
        Words("b ", Style(speed=1.8, volume=1.0, pitch=-1.0)),
        Words("c ", Style(speed=1.2, volume=2.0, pitch=-3.0)),
        Words("d"),
    )


def test_factors_that_come_to_one_are_the_usual_style() -> None:
    inner = "<prosody rate='1.25'><prosody rate='0.8'>b</prosody></prosody>"
    assert read(f"a {inner} c") == (Words("a b c"),)


def test_voices_and_languages() -> None:
    document = read(
        "a <voice name='heart'>b <lang xml:lang='zh-CN'>c</lang></voice> <lang xml:lang='EN'>d</lang>"
    )
    assert document == (
        Words("a "),
        Words("b ", Style(voice="heart")),
        Words("c ", Style(voice="heart", language="zh")),
        Words("d", Style(language="en")),
    )
    assert read("<p xml:lang='zh'>1</p><p><s xml:lang='en-GB'>2</s></p>") == (
        Words("1", Style(language="zh")),
        PARAGRAPH,
        Words("2", Style(language="en")),
    )


def test_the_language_of_the_whole_is_that_of_a_text_without_letters() -> None:
    assert read("12 <mark name='m'/> 3", "<speak xml:lang='zh-CN'>") == (
        Words("12", Style(language="zh")),
        Mark("m"),
        Words(" 3", Style(language="zh")),
    )
    assert read("12 你 <s>3</s>", "<speak xml:lang='en'>") == (Words("12 你"), SENTENCE, Words("3"))
    assert read("1 <lang xml:lang='en'>2</lang>", "<speak xml:lang='zh'>") == (
        Words("1 ", Style(language="zh")),
        Words("2", Style(language="en")),
    )


# -- blanks and boundaries ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("inner", "document"),
    [
        ("  a \n\t b\r\n", (Words("a b"),)),
        ("a<!-- x -->b", (Words("ab"),)),
        ("a <!-- x --> b", (Words("a b"),)),
        ("a<![CDATA[ < & ]]>b", (Words("a < & b"),)),
        ("&lt;&amp;&gt;&quot;&apos;&#65;&#x4f60;", (Words("<&>\"'A你"),)),
        ("a<mark name='m'/>b", (Words("a"), Mark("m"), Words("b"))),
        ("a <mark name='m'/> b", (Words("a"), Mark("m"), Words(" b"))),
        ("a<lang xml:lang='en'> b </lang>c", (Words("a "), Words("b ", Style(language="en")), Words("c"))),
        (
            "<lang xml:lang='en'>b</lang> <break/> c",
            (Words("b", Style(language="en")), Pause(0.4), Words(" c")),
        ),
        ("a<s> b </s> c", (Words("a"), SENTENCE, Words("b"), SENTENCE, Words("c"))),
        ("<s>a</s><s>b</s>", (Words("a"), SENTENCE, Words("b"))),
        ("<p><s>a</s></p><s>b</s>", (Words("a"), PARAGRAPH, Words("b"))),
        ("<p> <s/> </p>", ()),
        ("<mark name='m'/><s> a</s>", (Mark("m"), SENTENCE, Words("a"))),
        ("a\u00a0 \u3000b", (Words("a\u00a0 \u3000b"),)),
        (" ", ()),
    ],
)
def test_blanks(inner: str, document: Document) -> None:
    assert read(inner) == document


def test_a_blank_between_stretches_that_are_read_in_their_own_way() -> None:
    digits = "<say-as interpret-as='digits'>1</say-as>"
    said = Words("1", say_as="digits")
    assert read(f"{digits} {digits}{digits}") == (said, Words(" "), said, said)


# -- refusals -----------------------------------------------------------------------------------

REFUSED = [
    # text, line, column, what the message says, what the hint says
    ("", 1, 1, "the whole text must stand in one <speak>", "plain"),
    ("Hello", 1, 1, "the whole text must stand in one <speak>", ""),
    ("<p>x</p>", 1, 1, "the whole text must stand in one <speak>", ""),
    ("<speak>x</speak>\ny", 2, 1, "nothing may follow </speak>", ""),
    ("<speak><speak/></speak>", 1, 8, "one <speak>", ""),
    ("<speak>你😀好 & 你</speak>", 1, 12, "a plain & is written &amp;", ""),
    ("<speak>你\n😀好&nbsp;</speak>", 2, 3, "only the entities", ""),
    ("<speak>AT&T</speak>", 1, 10, "a plain & is written &amp;", ""),
    ("<speak>a &lt b</speak>", 1, 10, "a plain & is written &amp;", ""),
    ("<speak>你 < 3</speak>", 1, 10, "a plain < is written &lt;", ""),
    ("<speak>你\r\n好\r<audio src='x'/></speak>", 3, 1, "<audio> is not taken", "these are"),
    ("<speak>😀<brake/></speak>", 1, 9, "<brake> is not taken", "did you mean 'break'?"),
    ("<speak><emphasis>x</emphasis></speak>", 1, 8, "<emphasis> is not taken", ""),
    ("<speak><e:break xmlns:e='urn:e'/></speak>", 1, 8, "namespace", ""),
    ("<speak><e:x/></speak>", 1, 8, "prefix", ""),
    ("<speak><p>\nx</speak>", 2, 4, "<p> must be closed first", ""),
    ("<speak>\n <p>x", 2, 2, "<p> is not closed", ""),
    ("<speak>x", 1, 1, "<speak> is not closed", ""),
    ("<speak>x</spe", 1, 9, "does not end", ""),
    ("<speak><!-- x", 1, 8, "does not end", ""),
    ("<speak><![CDATA[ x", 1, 19, "CDATA", ""),
    ("<speak>x<?php x?></speak>", 1, 9, "processing instruction", "<?"),
    (" <?xml version='1.0'?><speak/>", 1, 2, "very beginning", ""),
    ("<speak>你\ud83d</speak>", 1, 9, "surrogate", ""),
    ("<speak>你&#xD83D;</speak>", 1, 9, "no character", ""),
    ("<speak>你\x00</speak>", 1, 9, "U+0000", ""),
    ("<speak>&#0;</speak>", 1, 8, "no character", ""),
    ("<speak>\x1b[0m</speak>", 1, 8, "U+001B", ""),
    ("<speak>\uffff</speak>", 1, 8, "U+FFFF", ""),
    ("<!DOCTYPE speak><speak/>", 1, 1, "document type", "leave"),
    ("<?xml version='1.0'?>\n<!-- x -->\n <!DOCTYPE speak SYSTEM 'x'><speak/>", 3, 2, "document type", ""),
    ("<speak><!DOCTYPE x></speak>", 1, 10, "not well-formed", ""),
    ("<speak a=1></speak>", 1, 10, "in quotes", ""),
    ("<speak version='1.0' version='1.0'/>", 1, 22, "twice", ""),
    ("<speak version='2.0'/>", 1, 1, "version of <speak> must be 1.0 or 1.1", ""),
    ("<speak lang='en'/>", 1, 1, "<speak> takes version, xml:lang", "did you mean 'xml:lang'?"),
    ("<speak xml:lang='fr-FR'/>", 1, 1, "zh or en", ""),
    ("<speak xml:lang='zh_CN'/>", 1, 1, "zh or en", ""),
    ("<speak>\n<s><p>x</p></s></speak>", 2, 4, "<p> may not stand in <s>", ""),
    ("<speak><s><prosody rate='1'><s/></prosody></s></speak>", 1, 29, "<s> may not stand in <s>", ""),
    ("<speak><p><p/></p></speak>", 1, 11, "<p> may not stand in <p>", ""),
    ("<speak><break time='10.001s'/></speak>", 1, 8, "at most 10s", ""),
    ("<speak><break time='500'/></speak>", 1, 8, "500ms", ""),
    ("<speak><break time='-1s'/></speak>", 1, 8, "500ms", ""),
    ("<speak><break strength='heavy'/></speak>", 1, 8, "x-strong", ""),
    ("<speak><break strength='midium'/></speak>", 1, 8, "x-strong", "did you mean 'medium'?"),
    ("<speak><break>x</break></speak>", 1, 8, "no text may stand in <break>", "<break/>"),
    ("<speak><mark name='x'><break/></mark></speak>", 1, 23, "no element may stand in <mark>", ""),
    ("<speak><mark/></speak>", 1, 8, "<mark> needs the attribute name", ""),
    ("<speak><mark name=' '/></speak>", 1, 8, "not empty", ""),
    ("<speak><sub alias=''>x</sub></speak>", 1, 8, "not empty", ""),
    ("<speak><sub>x</sub></speak>", 1, 8, "needs the attribute alias", ""),
    ("<speak><sub alias='x'><p/></sub></speak>", 1, 23, "no element may stand in <sub>", ""),
    ("<speak><phoneme ph='x'>x</phoneme></speak>", 1, 8, "needs the attribute alphabet", ""),
    ("<speak><phoneme alphabet='x-sampa' ph='x'>x</phoneme></speak>", 1, 8, "ipa, pinyin, x-pinyin", ""),
    ("<speak><phoneme alphabet='ipa' ph=''>x</phoneme></speak>", 1, 8, "not empty", ""),
    ("<speak><phoneme alphabet='ipa'>x</phoneme></speak>", 1, 8, "needs the attribute ph", ""),
    ("<speak><say-as>x</say-as></speak>", 1, 8, "needs the attribute interpret-as", ""),
    ("<speak><say-as interpret-as='data'>x</say-as></speak>", 1, 8, "telephone", "did you mean 'date'?"),
    ("<speak><say-as interpret-as='date' format='dym'>x</say-as></speak>", 1, 8, "mdy, dmy, ymd", ""),
    ("<speak><say-as interpret-as='date' format='m' detail='d'>x</say-as></speak>", 1, 8, "contradict", ""),
    ("<speak><say-as interpret-as='digits' format='d'>x</say-as></speak>", 1, 8, "not format", ""),
    ("<speak><say-as interpret-as='date'> </say-as></speak>", 1, 8, "no text in <say-as>", ""),
    ("<speak><prosody>x</prosody></speak>", 1, 8, "give at least one", ""),
    ("<speak><prosody rat='1'>x</prosody></speak>", 1, 8, "not rat", "did you mean 'rate'?"),
    ("<speak><prosody contour='x'>x</prosody></speak>", 1, 8, "not contour", ""),
    ("<speak><prosody rate='x-slow'><prosody rate='slow'/></prosody></speak>", 1, 31, "0.5 to 2", "around"),
    ("<speak><prosody rate='2.01'>x</prosody></speak>", 1, 8, "0.5 to 2", ""),
    ("<speak><prosody rate='0'>x</prosody></speak>", 1, 8, "0.5 to 2", ""),
    ("<speak><prosody rate='quick'>x</prosody></speak>", 1, 8, "factor such as 1.2", ""),
    ("<speak><prosody rate='nan'>x</prosody></speak>", 1, 8, "factor such as 1.2", ""),
    ("<speak><prosody rate='1e0'>x</prosody></speak>", 1, 8, "factor such as 1.2", ""),
    ("<speak><prosody rate='٣'>x</prosody></speak>", 1, 8, "factor such as 1.2", ""),
    ("<speak><prosody volume='+13dB'>x</prosody></speak>", 1, 8, "0 to 4", ""),
    ("<speak><prosody volume='999999dB'>x</prosody></speak>", 1, 8, "decibels", ""),
    ("<speak><prosody volume='50'>x</prosody></speak>", 1, 8, "decibels", ""),
    ("<speak><prosody pitch='+12.5st'>x</prosody></speak>", 1, 8, "-12 to 12", ""),
    ("<speak><prosody pitch='+20Hz'>x</prosody></speak>", 1, 8, "semitones", ""),
    ("<speak><prosody pitch='-100%'>x</prosody></speak>", 1, 8, "semitones", ""),
    ("<speak><voice gender='female'>x</voice></speak>", 1, 8, "needs the attribute name", ""),
    ("<speak><voice name='a' xml:lang='en'>x</voice></speak>", 1, 8, "not xml:lang", ""),
    ("<speak><lang>x</lang></speak>", 1, 8, "needs the attribute xml:lang", ""),
    ("<speak><lang xml:lang='ja'>x</lang></speak>", 1, 8, "zh or en", ""),
]


@pytest.mark.parametrize(("text", "line", "column", "says", "hint"), REFUSED)
def test_refusals_name_place_and_reason(text: str, line: int, column: int, says: str, hint: str) -> None:
    error = refusal(text)
    assert error.message.startswith(f"line {line}, column {column}: ")
    assert says in error.message
    assert hint in error.hint


def test_words_of_the_text_are_in_no_message() -> None:
    for wrong in (
        "& ",
        "< ",
        "\x00",
        "&x;",
        "<p>",
        "<sub alias=''/>",
        "<phoneme ph='秘密'/>",
        "\ud800",
        "</p>",
    ):
        assert not re.search("秘密|secret", str(refusal(f"<speak>secret 秘密{wrong}秘密 secret</speak>")))
    assert "secret" not in str(refusal("<speak><prosody rate='secret'>x</prosody></speak>"))


# -- bounds -------------------------------------------------------------------------------------

MB = 1_000_000
LAUGHS = "".join(f"<!ENTITY l{n} '{f'&l{n - 1};' * 10}'>" for n in range(1, 10))
HOSTILE = {
    "laughs": f"<!DOCTYPE speak [<!ENTITY l0 'ha'>{LAUGHS}]><speak>&l9;</speak>",
    "quadratic": f"<!DOCTYPE speak [<!ENTITY a '{'a' * MB}'>]><speak>{'&a;' * 1000}</speak>",
    "external": "<!DOCTYPE speak [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><speak>&x;</speak>",
    "parameter": "<!DOCTYPE speak [<!ENTITY % x SYSTEM 'http://127.0.0.1/x'>%x;]><speak/>",
    "external subset": "<!DOCTYPE speak SYSTEM 'file:///etc/passwd'><speak/>",
    "less": "<" * MB,
    "less inside": "<speak>" + "<" * MB,
    "more": ">" * MB,
    "ampersands": "<speak>" + "&" * MB,
    "deep": "<speak>" + "<voice name='a'>" * (MB // 16),
    "deep and alien": "<speak>" + "<a>" * (MB // 3),
    "flat": "<speak>" + "<break/>" * (MB // 8) + "</speak>",
    "a value": f"<speak><sub alias='{'a' * MB}'>x</sub></speak>",
    "a value of references": f"<speak><sub alias='{'&amp;' * (MB // 5)}'>x</sub></speak>",
    "attributes": "<speak" + "".join(f" a{n}=''" for n in range(MB // 10)) + "/>",
    "namespaces": "<speak" + "".join(f" xmlns:a{n}='u{n}'" for n in range(MB // 20)) + "/>",
    "a name": f"<{'a' * MB}/>",
    "a prefix": f"<speak {'a' * MB}:b=''/>",
    "a tag without an end": "<speak " + "a" * MB,
    "a comment without an end": "<speak><!--" + "-" * MB,
    "comments before": "<!---->" * (MB // 7) + "<!--",
    "instructions": "<speak>" + "<?x ?>" * (MB // 6),
    "CDATA without an end": "<speak><![CDATA[" + "]" * MB,
    "a reference": f"<speak>&{'a' * MB};</speak>",
    "a number": f"<speak>&#{'9' * MB};</speak>",
    "prosody": "<speak>" + "<prosody rate='2'><prosody rate='0.5'>" * 10_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_are_refused_soon(name: str) -> None:
    started = time.process_time()
    error = refusal(HOSTILE[name])
    assert time.process_time() - started < 2
    assert len(str(error)) < 500


HARMLESS = {
    "blanks": f"<speak>{' ' * MB}x</speak>",
    "lines": "<speak>" + "a\r\n" * (MB // 3) + "</speak>",
    "references": "<speak>" + "&amp;" * (MB // 5) + "</speak>",
    "CDATA": "<speak>" + "<![CDATA[a]]>" * (MB // 13) + "</speak>",
    "comments": "<speak>" + "a <!-- b -->" * (MB // 12) + "</speak>",
    "one comment": f"<speak><!--{'a' * MB}-->x</speak>",
    "Chinese": f"<speak>{'你好，世界。' * (MB // 6)}</speak>",
    "before": f"{'<!---->' * (MB // 7)}<speak>x</speak>",
}


@pytest.mark.parametrize("name", HARMLESS)
def test_long_texts_take_time_linear_in_their_length(name: str) -> None:
    started = time.process_time()
    document = parse(HARMLESS[name], "ssml")
    assert time.process_time() - started < 4
    assert len(document) == 1


def test_a_refusal_does_not_read_the_rest() -> None:
    deep = HOSTILE["deep"] * 10
    tracemalloc.start()
    refusal(deep)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * len(deep)


def test_the_bounds_are_what_they_say() -> None:
    deepest = "<voice name='a'>" * (DEPTH - 1) + "x" + "</voice>" * (DEPTH - 1)
    assert words(read(deepest)) == "x"
    assert f"{DEPTH} deep" in refusal(f"<speak><lang xml:lang='zh'>{deepest}</lang></speak>").message
    assert len(read("<break time='1ms'/>" * (ELEMENTS - 1))) == ELEMENTS - 1
    breaks = "<break time='1ms'/>" * ELEMENTS
    assert str(ELEMENTS) in refusal(f"<speak>{breaks}</speak>").message
    alias = "好" * VALUE_CHARS
    assert words(read(f"<sub alias='{alias}'>x</sub>")) == alias
    assert str(VALUE_CHARS) in refusal(f"<speak><sub alias='{alias}好'>x</sub></speak>").message
    spaces = " ".join(f'xmlns:a{n}="urn:{n}"' for n in range(ATTRIBUTES))
    assert read("x", f"<speak {spaces}>") == (Words("x"),)
    assert str(ATTRIBUTES) in refusal(f"<speak {spaces} version='1.0'>x</speak>").message


# -- any document -------------------------------------------------------------------------------

PLAIN_TEXT = st.text("ab 你\n&<>.", min_size=1, max_size=8)
REAL_TEXT = PLAIN_TEXT.filter(str.strip)
LEAVES = st.one_of(
    PLAIN_TEXT.map(lambda text: (escape(text), text)),
    st.sampled_from(["<break/>", "<mark name='m'/>", "<!-- no -->"]).map(lambda tag: (tag, "")),
    REAL_TEXT.map(lambda text: (f"<sub alias={quoteattr(text)}>x</sub>", " ".join(text.split()))),
    REAL_TEXT.map(
        lambda text: (f"<say-as interpret-as='characters'>{escape(text)}</say-as>", " ".join(text.split()))
    ),
)
AROUND = st.sampled_from(
    ["voice name='v'", "prosody rate='1.02'", "lang xml:lang='en'", "prosody volume='+.1dB'"]
)


def around(inner: st.SearchStrategy[tuple[str, str]]) -> st.SearchStrategy[tuple[str, str]]:
    return st.tuples(AROUND, st.lists(inner, max_size=4)).map(
        lambda made: (
            f"<{made[0]}>{''.join(tags for tags, _ in made[1])}</{made[0].split()[0]}>",
            "".join(text for _, text in made[1]),
        )
    )


@given(st.lists(st.recursive(LEAVES, around, max_leaves=12), max_size=6))
def test_a_document_keeps_its_words_in_order(parts: list[tuple[str, str]]) -> None:
    document = read("".join(tags for tags, _ in parts))
    expected = re.sub(r"\s+", " ", "".join(text for _, text in parts)).strip()
    assert words(document).strip() == expected
    for before, after in pairwise(document):
        if isinstance(before, Words) and isinstance(after, Words):
            assert before.style != after.style or before.say_as or after.say_as


@given(
    st.recursive(LEAVES, around, max_leaves=12),
    st.integers(0, 200),
    st.sampled_from(["", "<", "&", "</p>", "\x01"]),
)
def test_a_document_cut_anywhere_is_refused(part: tuple[str, str], at: int, junk: str) -> None:
    whole = f"<speak>{part[0]}</speak>"
    refusal(whole[: min(at, len(whole) - 1)] + junk)


@pytest.mark.parametrize("name", NAMES)
def test_every_element_is_refused_with_an_attribute_that_it_does_not_know(name: str) -> None:
    needed = {"lang": "xml:lang='zh'", "voice": "name='a'", "mark": "name='a'", "sub": "alias='a'"}
    needed |= {"say-as": "interpret-as='unit'", "phoneme": "alphabet='ipa' ph='a'"}
    tag = f"<{name} {needed.get(name, '')} surprise='1'/>"
    assert "not surprise" in refusal(tag if name == "speak" else f"<speak>{tag}</speak>").message


def test_the_examples_of_the_manual_are_read() -> None:
    manual = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
    section = manual.partition("### Markup\n")[2].partition("\n### ")[0]
    requests = [json.loads(line) for line in section.splitlines() if line.startswith('{"op"')]
    assert {request["markup"] for request in requests} == {"ssml", "chattts"}
    for request in requests:
        assert parse(request["text"], request["markup"])
    for name in NAMES:
        assert re.search(rf"^\| .*`{name}`", section, re.MULTILINE), name
    words_of_it = section.split()
    for bound in (DEPTH, ELEMENTS, ATTRIBUTES, VALUE_CHARS):
        assert f"{bound:,}" in words_of_it


def test_breaks_together_and_what_is_read_as_a_client_says_are_bounded() -> None:
    assert parse("<speak>a" + "<break time='10s'/>" * 60 + "</speak>", "ssml")
    with pytest.raises(BadMarkup, match="600 s"):
        parse("<speak>a" + "<break time='10s'/>" * 61 + "</speak>", "ssml")
    inside = "<speak><say-as interpret-as='digits'>{}</say-as></speak>"
    assert parse(inside.format("1" * 1_000), "ssml")
    with pytest.raises(BadMarkup, match=r"line 1, column 8: .*1000 characters"):
        parse(inside.format("1" * 1_001), "ssml")
