"""Sentences: a table of cases, and what holds for every text."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edged.text.split import CLAUSE, INSIDE, SENTENCE, WORD, Pauses, breaks, sentences

# A bar stands where a sentence ends and another begins.
TABLE = r"""
Open the door. |Close the door.
Open the door! |Is it open? |It is.
It is 3.5 volts. |Then 0.5.
A value of .5 is low. |Raise it.
Use version 1.2.3. |Then restart.
Firmware v2.10 is out. |Install it.
Ping 10.0.0.1. |Then wait.
The port is 10.0.0.1:8080. |Open it.
Dr. Smith and Mr. Jones met Mrs. Brown. |They left.
Ask Prof. Lee. |She knows.
Sgt. Pepper and Capt. Ahab
St. John lives on Main St. |He is old.
Turn left on Park Ave. |Then stop.
Go to 5 Elm Rd. and wait.
Some fruits, e.g. Apples, are red.
Some fruits (e.g. apples) are red. |Others are not.
The last one, i.e. number five, is broken.
Red vs. Green. |Who won?
It takes approx. 5 minutes. |Wait.
See cf. Miller. |It is old.
Apples, pears, etc. |They are ripe.
Apples, pears, etc. are ripe.
Apples, pears, etc., are ripe.
Smith et al. showed it. |Then came others.
Apple Inc. was founded early.
He works at Apple Inc. |She does not.
He works at Apple Inc. Cupertino is far.
Acme Corp. and Foo Ltd. merged. |We left.
John Smith Jr. spoke. |John Smith Jr. |He spoke.
At 5 a.m. the siren sounds.
Come at 5 p.m. |Then we start.
Come at 5 p.m. |Bring tools.
Come at 5 p.m. Monday.
Come at 5 p.m. EST. |Bring tools.
Come at 5 p.m. Eastern time.
On Jan. 5 it snowed. |In Feb. |It rained.
On Mon. Sept. 3 we met.
The U.S. Army is here. |It is big.
He lives in the U.S. |She lives in the U.K. |They write.
The U. S. Army is here.
J. R. R. Tolkien wrote it. |George W. Bush did not.
J.R.R. Tolkien wrote it.
She has a Ph.D. in physics. |He has a Ph.D. |They met.
Choose plan B. |Close the valve.
Vitamin C. |Eat it.
Take type B. |Drivers wait.
Look at Fig. 3. |It shows the pump.
Look at Fig. A. |It shows the pump.
Figs. 3 and 4 show it.
Machine No. 5 is down. |Use No. 6.
No. |That is wrong.
No. |I am here.
Is it on? |No. |It is off.
See vol. 3, ch. 2, p. 15. |Read it.
See pp. 3-5. |Read them.
See sec. 4.2. |Read it.
It is 5 in. wide. |Come in. |Sit down.
It is 10 ft. |Then it ends.
Wait 5 min. |Then go.
The temp. is high.
Smith v. Jones was a case.
Open www.example.com. |Then log in.
Open https://example.com/a?b=1&c=2.html. |Then log in.
Is it at https://example.com/? |Yes.
Mail to a.b@example.com. |Then wait.
Open setup.exe. |Then read readme.txt. |Done.
Use Node.js and System.Out. |Then go.
Wait... what is that?
Wait… what is that?
Wait... |What is that?
Wait… |What is that?
Well . . . maybe.
Well . . . |Maybe.
So... |5 of them? |Yes.
What?! |No!!! |Yes?? |Go.
What ?! |No.
He said "Stop!" and left.
He said "Stop!" |Then he left.
He said, "It works." |She left.
“你好。”|他说。
Use option A. |Press it.
"Is it on?" |"It is."
“Why?” she asked. |“Because.” |He left.
'Go.' |He left.
(See the manual.) |Then go.
It (the pump!) is off.
It (?) is off. |Why?
[It is off.] |Go.
He said: "Go. |Stop." |Then he left.
1. Open the door. |2. Close it.
1. Open the door.
a. Open the door. |b. Close it.
iv. Open the door.
1.1. Open the door.
- 1. Open the door.
1) Open the door. |2) Close it.
Step 1. |Open the door.
hello. |how are you? |fine.
hello! |how are you.
Hello!|Bye. |Now
Check the U S B. |Press it.
At five P M. |Drivers leave.
It is on , he said.
... and then it stopped.
Done. ... |Next.
Done! 👍
The end.) |Next
He left.” |Next.
你好。|再见。
你好！|再见？|好。
你好！！！|真的吗？！|好。
第一；|第二；|第三。
我不知道……|好吧。
我不知道…… |好吧。
他说：“你好。”|然后走了。
「你好。」|『再见！』|好
（你好。）|再见
"你好。"|他说。
他说。|"你好！"
他说，“走！”，然后走了。
“走！”的声音很大。
《你好！》是一部电影。|好看。
这个（？）不对。|对吗？
1.打开门。|2.关门。
1. 打开门。|2. 关门。
一. 打开门。|二. 关门。
一、打开门。|二、关门。
（一）打开门。|（二）关门。
圆周率是3.14。|大约。
圆周率是３．１４。|大约．|对
版本v1.2。|见www.a.com。|下午5点。
打开 App. |然后登录。
打开setup.exe。|然后等待。
Hello.|你好.|再见。
Hello. |你好。|Bye.
你好!|Hello?|再见
Dr.王来了。|好。
请用Wi-Fi。|Then restart. |好
温度是3.5度！|快跑！
好的~没问题。
DR. SMITH IS HERE. |MR. LEE IS NOT.
ｶﾅ｡|ｶﾅ
Open the door\n|Close it\n|Done
Open the door.\n\n|Close it.
1.检查泵。|2.复位。
1.检查 2.复位 3.启动
温度12.|然后停机
"""
CASES = [line.replace(r"\n", "\n") for line in TABLE.strip().splitlines()]


def split(text: str) -> list[str]:
    return [text[s.start : s.end] for s in sentences(text)]


@pytest.mark.parametrize("case", CASES)
def test_the_table_is_split_right(case: str) -> None:
    assert split(case.replace("|", "")) == [piece.strip() for piece in case.split("|")]


def test_the_table_is_large() -> None:
    assert len(set(CASES)) == len(CASES) >= 120


@pytest.mark.parametrize(
    ("text", "endings"),
    [
        ("Go. Stop! Why? Well... So", ["sentence", "exclamation", "question", "ellipsis", ""]),
        ("走。停！吗？嗯……好；对", ["sentence", "exclamation", "question", "ellipsis", "sentence", ""]),
        ("What?! No!? Oh!!! Hm?..", ["question", "question", "exclamation", "question"]),
        ("He said “Go!” Then", ["exclamation", ""]),
        ("One\nTwo.\nThree", ["line", "sentence", ""]),
        ("One\r\nTwo?\r\n\r\nThree", ["line", "paragraph", ""]),
        ("One\n \t\nTwo\n\n\n", ["paragraph", "paragraph"]),
        ("One\u2028Two\u2029Three\fFour", ["line", "paragraph", "paragraph", ""]),
        ("One\n", ["line"]),
        ("Hello ... ...", ["ellipsis"]),
        ("...", ["ellipsis"]),
        ("", []),
        (" \n\n \t", []),
    ],
)
def test_endings(text: str, endings: list[str]) -> None:
    assert [s.ending for s in sentences(text)] == endings


def test_pauses() -> None:
    pauses = Pauses()
    assert pauses.after("sentence") == pauses.after("question") == pauses.after("exclamation") == 0.0
    assert pauses.after("") == 0.0
    assert 0 < pauses.after("line") < pauses.after("paragraph")
    assert Pauses(ellipsis=0.7).after("ellipsis") == 0.7


ATOMS = st.sampled_from(
    [
        *""". .. ... … ! ? 。 ！ ？ ； …… , ， ： : " ' “ ” ( ) （ ） 《 》 - — / = @""".split(),
        *"a b A B I No Dr etc".split(),
        *"a.m U.S e.g Inc Fig The Bob monday 1 2 3.5 10 one www.a.com x.exe".split(),
        *"你 好 的 王 三 百 é 👍 👍🏽".split(),
        *("e\u0301", "\u200d", "\ufe0f", "\n", "\n\n", "\r\n", "\u3000", "\u00a0", "\u2029"),
        *[" "] * 12,
    ]
)
TEXTS = st.one_of(st.lists(ATOMS, max_size=40).map("".join), st.text(max_size=60))


@given(TEXTS)
def test_only_blanks_are_left_out(text: str) -> None:
    at = 0
    for sentence in sentences(text):
        assert text[at : sentence.start].strip() == ""
        piece = text[sentence.start : sentence.end]
        assert piece
        assert piece == piece.strip()
        assert "\n" not in piece
        at = sentence.end
    assert text[at:].strip() == ""


@given(TEXTS)
def test_a_sentence_is_one_sentence(text: str) -> None:
    for piece in split(text):
        assert split(piece) == [piece]


@given(TEXTS)
def test_breaks_follow_the_sentences(text: str) -> None:
    made = breaks(text)
    assert len(made) == len(text)
    assert set(made) <= {INSIDE, WORD, CLAUSE, SENTENCE}
    assert all(made[s.end - 1] >= CLAUSE for s in sentences(text))
    assert all(made[i] > INSIDE for i, c in enumerate(text) if c.isspace())


def marked(text: str) -> str:
    """Behind each place where a cut is good: a slash between words, a bar for a clause, # for a sentence."""
    return "".join(c + ("", "/", "|", "#")[good] for c, good in zip(text, breaks(text), strict=True))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Go on, then. Stop", "Go/ /on,| |then.# #Stop#"),
        ("At 10:30, 1,000 (about): yes", "At/ /10:30,| |1,000/ /(about):| |yes#"),
        ("你好，世界。再见", "你/好，|世/界。#再/见#"),
        ("打开WiFi：好", "打/开/WiFi：|好#"),
        ("三百二十个", "三百二十/个#"),
        ("他说“好”，走", "他/说/“好”，|走#"),
        ("a - b—c", "a/ /-| |b—|c#"),
        ('"Yes," he', '"Yes,"| |he#'),
        ("第一；第二", "第一；|第二#"),
    ],
)
def test_how_good_a_place_is(text: str, expected: str) -> None:
    assert marked(text) == expected


UNITS = [
    *('. .. ... … !a !A ?( ( ) " ." .( 。 。” a a. 你 你。 , ， - e\u0301 \u0301 Hello!Bye /!A'.split()),
    *(
        " ",
        "\n",
        "\r\n",
        "\u3000",
        ". ",
        "a. ",
        "A. ",
        "! ",
        "… ",
        ". . ",
        "1. ",
        "a\n",
        ", ",
        " - ",
        "etc. ",
    ),
    *("etc. ", "x" * 30 + ". "),
]


@pytest.mark.parametrize("unit", UNITS)
def test_time_grows_with_the_text(unit: str) -> None:
    def seconds(size: int) -> float:
        text = (unit * size)[:size]
        begin = time.process_time()
        for _ in sentences(text):
            pass
        breaks(text)
        return time.process_time() - begin

    small = min(seconds(5_000) for _ in range(3))
    assert seconds(40_000) < 8 * 4 * small + 0.05
