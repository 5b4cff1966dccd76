"""Explaining a text instead of speaking it: bounds, thread, answers, and the command line."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import logging
import queue
import threading
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from edged import protocol
from edged.cli import cli
from edged.cli.context import State
from edged.cli.explain import _tell
from edged.client import AsyncClient, Client
from edged.errors import (
    BadValue,
    Busy,
    EdgedError,
    RequestError,
    ShuttingDown,
    UnknownVoice,
    UnsupportedText,
)
from edged.explanations import event_of, speech_of
from edged.first_look import look
from edged.job import Job, Params, Utterance
from edged.text.check import check
from edged.text.document import Said, Skipped, Words
from edged.text.explain import MOST, Account, Explanation
from edged.text.explainer import fill
from edged.text.languages import readings_of
from edged.text.prepare import Preparer
from edged.text.script import Prepared, Script
from edged.text.span import Options, Span
from edged.text.stage import QUESTIONS, Piece, Question, TextStage
from edged.voices.api import VoiceCard
from edged.voices.tone.frontend import ToneFrontend
from tests.daemon import Daemon, running
from tests.test_job import make_job

WITHIN_S = 10.0


def script(text: str, *languages: str) -> Script:
    checked = check((Words(text),), languages)
    return Script(checked.document, Options(), checked.skipped)


def explained(text: str, *languages: str) -> Explanation:
    account = Account("v", languages)
    frontend = ToneFrontend(160, languages)
    preparer = Preparer({"v": frontend}, readings_of([frontend]))
    for _ in fill(account, preparer, script(text, *languages), Params()):
        pass
    return account.told()


# -- the account ----------------------------------------------------------------------------------


def test_what_is_told_of_a_text() -> None:
    told = explained("It is 5 °C.\x07\n\nPump №4 \U0001f680\U0001f680", "en")
    assert [(r.written, r.spoken, r.kind) for r in told.readings] == [
        ("5 °C", "five degrees Celsius", "unit"),
        ("№4", "number four", "identifier"),
    ]
    assert "".join(run.text for run in told.runs) == "It is 5 °C.Pump №4"
    assert told.runs[0].said == "It is five degrees Celsius."
    assert [(s.codepoint, s.name, s.count) for s in told.skipped] == [
        ("U+0007", "", 1),
        ("U+1F680", "ROCKET", 2),
    ]
    assert [u.pause_s > 0 for u in told.utterances] == [True, False]
    assert not told.truncated


def test_runs_of_two_languages() -> None:
    told = explained("温度是5度。The pump is on at 5 pm.", "zh", "en")
    assert [(run.language, run.text) for run in told.runs] == [
        ("zh", "温度是5度。"),
        ("en", "The pump is on at 5 pm."),
    ]
    assert told.runs[0].said == "温度是五度。"


def test_a_voice_without_a_reader_reads_nothing() -> None:
    told = explained("5 °C", "*")
    assert [(run.language, run.said) for run in told.runs] == [("", "5 °C")]
    assert told.readings == []


def test_each_list_is_bounded_and_says_so() -> None:
    account = Account("v", ("en",))
    spans = [Span(at, at + 1, "x", "unit") for at in range(MOST + 1)]
    account.read("a" * (MOST + 1), "en", "v", spans, "a")
    account.skip(Skipped(chr(0x1000 + code), 1, "why") for code in range(MOST + 1))
    for index in range(MOST):
        account.speak(Prepared(Utterance(index, (1, 2)), (Said("said", "en"),), 2, 5, False), "en")
        assert not account.full or index == MOST - 1
    told = account.told()
    assert told.truncated
    assert len(told.readings) == len(told.skipped) == len(told.utterances) == MOST
    assert account.full


def test_characters_of_one_kind_are_counted_together() -> None:
    account = Account("v", ("en",))
    account.skip([Skipped("a", 2, "x"), Skipped("a", 1, "y")])
    account.skip([Skipped("a", 3, "x")])
    account.warn("twice")
    account.warn("twice")
    assert [(s.count, s.why) for s in account.told().skipped] == [(5, "x"), (1, "y")]
    assert account.told().warnings == ["twice"]


@given(st.text(), st.sampled_from([("en",), ("zh", "en"), ("*",)]))
def test_any_answer_can_be_sent_and_shown(text: str, languages: tuple[str, ...]) -> None:
    try:
        told = explained(text, *languages)
    except RequestError:
        return
    event = protocol.decode_event(protocol.encode(event_of(told, "mine")))
    assert isinstance(event, protocol.Explained)
    assert (event.id, len(event.runs)) == ("mine", len(told.runs))
    assert sum(s.count for s in event.skipped) >= check((Words(text),), languages).count
    for line in shown(event).splitlines():
        assert line.isprintable() or not line
        assert columns(line) <= 80


# -- the text thread ------------------------------------------------------------------------------


class Slow:
    """Sentences of jobs that wait for a permission each."""

    def __init__(self) -> None:
        self.gate = threading.Semaphore(0)
        self.begun: queue.Queue[None] = queue.Queue()

    def steps(self, script: Script, voice: str, params: Params) -> Iterator[Prepared]:
        for index in range(3):
            self.begun.put(None)
            assert self.gate.acquire(timeout=WITHIN_S)
            yield Prepared(Utterance(index, (1,)), (), 1, 10, False)


Answers = queue.Queue[Explanation | EdgedError]


@pytest.fixture
def stage() -> Iterator[tuple[TextStage, Slow, Answers]]:
    slow = Slow()
    crashes: list[BaseException] = []
    made = TextStage(slow, lambda job: None, lambda: None, crashes.append)
    made.start()
    yield made, slow, queue.Queue()
    slow.gate.release(100)
    made.stop(WITHIN_S)
    assert crashes == []


def question(answers: Answers, source: Iterator[object]) -> Question:
    return Question(Account("v", ("en",)), source, answers.put)


def job(text: str) -> Job:
    return make_job(voice="v", text=text)


def test_a_step_is_taken_between_two_sentences(stage: tuple[TextStage, Slow, Answers]) -> None:
    made, slow, answers = stage
    steps: list[int] = []

    def source() -> Iterator[None]:
        for number in range(3):
            steps.append(number)
            yield

    spoken = job("text")
    made.submit(Piece(spoken, Script(())))
    slow.begun.get(timeout=WITHIN_S)
    made.explain(question(answers, source()))
    assert made.asked
    assert steps == []  # the thread is inside a sentence
    seen = []
    for _ in range(3):
        slow.gate.release()
        if len(seen) < 2:
            slow.begun.get(timeout=WITHIN_S)
        seen.append(len(steps))
    assert seen[:2] == [1, 2]
    assert isinstance(answers.get(timeout=WITHIN_S), Explanation)


def test_more_than_a_few_at_once_are_refused(stage: tuple[TextStage, Slow, Answers]) -> None:
    made, slow, answers = stage
    made.submit(Piece(job("text"), Script(())))
    slow.begun.get(timeout=WITHIN_S)
    for _ in range(QUESTIONS):
        made.explain(question(answers, iter(())))
    with pytest.raises(Busy):
        made.explain(question(answers, iter(())))
    slow.gate.release(100)
    for _ in range(QUESTIONS):
        assert isinstance(answers.get(timeout=WITHIN_S), Explanation)
    made.explain(question(answers, iter(())))
    assert isinstance(answers.get(timeout=WITHIN_S), Explanation)


@pytest.mark.parametrize(
    ("error", "code"), [(UnsupportedText("x"), "unsupported_text"), (ValueError("secret words"), "internal")]
)
def test_a_failing_explanation_is_answered_and_the_text_stays_private(
    stage: tuple[TextStage, Slow, Answers], caplog: pytest.LogCaptureFixture, error: Exception, code: str
) -> None:
    made, _, answers = stage

    def source() -> Iterator[None]:
        yield
        raise error

    with caplog.at_level(logging.INFO, "edged"):
        made.explain(question(answers, source()))
        answer = answers.get(timeout=WITHIN_S)
    assert isinstance(answer, EdgedError)
    assert answer.code == code
    assert "secret" not in caplog.text + answer.message


def test_a_full_account_ends_its_text(stage: tuple[TextStage, Slow, Answers]) -> None:
    made, _, answers = stage
    asked = question(answers, iter(int, 1))  # without end
    for index in range(MOST + 1):
        asked.account.speak(Prepared(Utterance(index, (1,)), (), 1, 10, False), "")
    made.explain(asked)
    answer = answers.get(timeout=WITHIN_S)
    assert isinstance(answer, Explanation)
    assert answer.truncated


def test_the_stop_answers_what_is_open(stage: tuple[TextStage, Slow, Answers]) -> None:
    made, slow, answers = stage
    made.submit(Piece(job("text"), Script(())))
    slow.begun.get(timeout=WITHIN_S)
    made.explain(question(answers, iter(int, 1)))
    made.stop(0.0)
    slow.gate.release()
    assert isinstance(answers.get(timeout=WITHIN_S), ShuttingDown)
    with pytest.raises(ShuttingDown):
        made.explain(question(answers, iter(())))


# -- the first look at a request --------------------------------------------------------------------


def card(name: str, rate: int, *languages: str) -> VoiceCard:
    return VoiceCard(name, "tone", languages, rate, "", "", "")


CARDS = {c.name: c for c in (card("heart", 24_000, "en"), card("bao", 24_000, "zh"), card("any", 8_000, "*"))}


@pytest.mark.parametrize(
    ("text", "cards", "hint"),
    [
        ("你好", ("heart", "bao", "any"), "voices that can: bao, any"),
        ("Привет", ("heart", "bao", "any"), "voices that can: any"),
        ("Привет", ("heart", "bao"), "none of the loaded voices can speak it"),
    ],
)
def test_a_refusal_names_the_voices_that_can(text: str, cards: tuple[str, ...], hint: str) -> None:
    loaded = {name: CARDS[name] for name in cards}
    with pytest.raises(UnsupportedText) as caught:
        look(protocol.Speak(text=text), CARDS["heart"], loaded, Options())
    assert caught.value.hint == hint
    assert text[0] in caught.value.message


def test_what_another_voice_speaks_is_not_refused() -> None:
    seen = look(protocol.Speak(text="Exit: 出口"), CARDS["heart"], CARDS, Options(), ["zh"])
    assert (seen.text, seen.skipped) == ("Exit: 出口", ())


def test_voices_in_markup() -> None:
    def seen(voice: str, text: str = "出口") -> Script:
        marked = f"<speak>Exit: <voice name='{voice}'>{text}</voice></speak>"
        return look(protocol.Speak(text=marked, markup="ssml"), CARDS["heart"], CARDS, Options())

    assert seen("bao").text == "Exit: 出口"
    with pytest.raises(UnknownVoice, match=r"'boa' in the markup .*did you mean 'bao'"):
        seen("boa")
    with pytest.raises(BadValue, match="8000 Hz, 'heart' 24000 Hz"):
        seen("any")
    with pytest.raises(UnsupportedText) as caught:
        seen("heart")
    assert caught.value.hint == "voices that can: bao, any"


def test_a_voice_in_markup_is_refused_with_its_place() -> None:
    text = "<speak>a\n <voice name='bob'>x</voice></speak>"
    with pytest.raises(UnknownVoice, match=r"^line 2, column 2: unknown voice 'bob' in the markup"):
        look(protocol.Speak(text=text, markup="ssml"), CARDS["heart"], CARDS, Options())


def test_signs_of_the_lexicon_pass_the_first_look() -> None:
    request = protocol.Speak(text="a ⚠\ufe0f b")
    assert look(request, CARDS["heart"], CARDS, Options()).text == "a   b"
    script = look(request, CARDS["heart"], CARDS, Options(), (), frozenset("⚠"))
    assert "⚠" in script.text


def test_an_explanation_is_of_the_same_speech() -> None:
    asked = protocol.Explain(id="a", text="x", voice="v", emoji="name", digits="digits")
    speech = speech_of(asked)
    for name in protocol.Reading.__struct_fields__:
        assert getattr(speech, name) == getattr(asked, name)


# -- a daemon -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def daemon(tone_bundle: Path) -> Iterator[Daemon]:
    with running(tone_bundle, limits={"text_chars": 600_000, "frame_kb": 4096}) as started:
        yield started


def test_one_answer_which_is_never_published(daemon: Daemon) -> None:
    with daemon.subscriber() as events, daemon.socket() as socket:
        socket.send(json.dumps({"op": "synthesize", "text": "wait", "reply": "events"}).encode())
        assert events.poll(int(WITHIN_S * 1000))
        answer = daemon.request({"op": "explain", "id": "mine", "text": "One.\n\nTwo \U0001f680"})
        daemon.request({"op": "synthesize", "text": "after"})
        names = []
        while events.poll(200):
            names.append(events.recv_multipart()[0])
    assert answer["event"] == "explained"
    assert (answer["id"], answer["voice"], answer["languages"]) == ("mine", "tone", ["*"])
    assert [u["ids"] for u in answer["utterances"]] == [4, 3]
    assert [(s["codepoint"], s["count"]) for s in answer["skipped"]] == [("U+1F680", 1)]
    assert b"explained" not in names
    assert b"done" in names
    assert "One" not in daemon.log


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"text": ""}, "empty_text"),
        ({"text": "?!"}, "unspeakable_text"),
        ({"text": "\u202e\x00"}, "empty_text"),
        ({"text": "a", "voice": "nobody"}, "unknown_voice"),
        ({"text": "a" * 600_001}, "text_too_long"),
        ({"text": "a", "markup": "html"}, "bad_value"),
        ({"text": "a", "emoji": "draw"}, "bad_value"),
        ({"text": "a", "run_voices": {"zh": "nobody"}}, "bad_value"),
        ({"text": "a", "format": "wav"}, "unknown_field"),
        ({"text": "a", "speed": 1.0}, "unknown_field"),
        ({}, "bad_value"),
    ],
)
def test_it_is_refused_as_the_speech_would_be(daemon: Daemon, fields: dict[str, Any], code: str) -> None:
    answer = daemon.request({"op": "explain", "id": "mine", **fields})
    assert (answer["event"], answer["code"], answer["id"]) == ("failed", code, "mine")
    if code != "unknown_field":
        assert daemon.request({"op": "synthesize", **fields})["code"] == code


HOSTILE: list[tuple[bytes, set[str]]] = [
    (b'"a\xff\xfeb"', {"bad_json"}),
    (b'"a\xed\xa0\x80b"', {"bad_json"}),  # a surrogate in UTF-8
    (b'"a\xc0\x80b"', {"bad_json"}),  # NUL, overlong
    (b'"a\\ud800b"', {"bad_json", "done", "explained"}),
    (b'"a\\udc00\\ud800b"', {"bad_json", "done", "explained"}),
    (b'"a\\u0000b"', {"done", "explained"}),
    (b'"a\x00b"', {"bad_json"}),  # JSON has no raw control characters
    (b'"' + "\u202e".encode() * 350_000 + b'"', {"empty_text"}),
    (b'"a' + "\u202e".encode() * 350_000 + b'"', {"done", "explained"}),
    (b'"a' + "\u0301".encode() * 500_000 + b'"', {"done", "explained"}),
    (b'"a' + "\ufdfa".encode() * 1_000 + b'"', {"done", "explained"}),
    (b'"' + b"[" * 100_000 + b'"', {"unspeakable_text"}),
    (b"[" * 100_000, {"bad_json"}),
    (b'{"a": 1}', {"bad_value"}),
]


@pytest.mark.parametrize("op", ["synthesize", "explain"])
@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_hostile_texts_get_a_typed_answer(daemon: Daemon, op: str, number: int) -> None:
    text, allowed = HOSTILE[number]
    answer = daemon.request(b'{"op": "%s", "text": %s}' % (op.encode(), text))
    assert answer.get("code", answer["event"]) in allowed
    assert daemon.request({"op": "ping"})["event"] == "pong"
    assert "could not be handled" not in daemon.log


def test_any_character_gets_a_typed_answer(daemon: Daemon) -> None:
    text = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x11_0000, 17)]))
    answer = daemon.request({"op": "explain", "text": text})
    assert answer["event"] == "explained"
    assert answer["truncated"]
    assert len(answer["skipped"]) == MOST


def test_clients(daemon: Daemon) -> None:
    with Client(daemon.endpoint) as client:
        told = client.explain("One. \U0001f680", voice="tone", emoji="skip")
        assert isinstance(told, protocol.Explained)
        assert len(told.utterances) == 1
        with pytest.raises(UnknownVoice):
            client.explain("One.", voice="nobody")
        with pytest.raises(TypeError, match="explain\\(\\) has no option 'speed'"):
            client.explain("One.", speed=1.0)  # type: ignore[call-arg]

    async def ask() -> protocol.Explained:
        async with AsyncClient(daemon.endpoint) as other:
            return await other.explain("One. \U0001f680")

    assert asyncio.run(ask()).utterances == told.utterances
    assert "unknown_job" not in daemon.log  # nothing is left to be cancelled


# -- the command line -----------------------------------------------------------------------------------


def columns(line: str) -> int:
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


def shown(event: protocol.Explained) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        _tell(event)
    return out.getvalue()


def run(daemon: Daemon, *args: str) -> tuple[int, str]:
    result = CliRunner().invoke(
        cli, ["say", "--endpoint", daemon.endpoint, *args], obj=State(), standalone_mode=True
    )
    return result.exit_code, result.output


def test_it_is_printed_and_nothing_is_spoken(daemon: Daemon) -> None:
    before = daemon.request({"op": "stats"})["accepted"]
    code, told = run(daemon, "--explain", "Hello 世界。\x1b[31m " + "word " * 60)
    assert code == 0
    assert told.startswith("voice: tone (*)\n")
    assert "1 x  U+001B" in told
    assert "utterances:" in told
    assert all(columns(line) <= 80 and line.isprintable() for line in told.splitlines())
    assert daemon.request({"op": "stats"})["accepted"] == before


def test_as_json(daemon: Daemon) -> None:
    code, told = run(daemon, "--explain", "--json", "Hello")
    assert code == 0
    assert json.loads(told)["event"] == "explained"


@pytest.mark.parametrize(
    "option", [("--out", "x.wav"), ("--speed", "1"), ("--no-wait",), ("--seed", "1"), ("--priority", "text")]
)
def test_what_only_speech_has_is_refused(daemon: Daemon, option: tuple[str, ...]) -> None:
    code, told = run(daemon, "--explain", *option, "Hello")
    assert code == 2
    assert option[0] in told
    assert "makes no sense with --explain" in " ".join(told.split())
