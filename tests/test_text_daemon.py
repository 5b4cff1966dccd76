"""Texts through the running daemon: markup, marks, voices that change with the language, a lexicon."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.bundles import build_chattts
from tests.daemon import ENDINGS, Daemon, receive_until, running, send

LEXICON = "- word: QX-5\n  say: queue ex five\n"


@pytest.fixture(scope="module")
def chattts_bundle(tiny_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("chattts") / "chat"
    return build_chattts(out, tiny_checkpoint, positions=256)


@pytest.fixture(scope="module")
def daemon(hibari_bundle: Path, chattts_bundle: Path) -> Iterator[Daemon]:
    with running(hibari_bundle, chattts_bundle) as started:
        yield started


@pytest.fixture(scope="module")
def chinese(daemon: Daemon) -> str:
    """The name of the voice that speaks Chinese too."""
    voices = daemon.request({"op": "voices"})["voices"]
    return next(voice["name"] for voice in voices if "zh" in voice["languages"])


def events_of(daemon: Daemon, **request: Any) -> list[dict[str, Any]]:
    with daemon.socket() as socket:
        send(
            socket,
            **{"op": "synthesize", "format": "pcm_s16le", "reply": "events", "stream": True, **request},
        )
        return receive_until(socket, *ENDINGS, timeout_s=60.0)


def speak(*parts: str) -> str:
    return f"<speak>{''.join(parts)}</speak>"


def test_marks_come_with_their_times_in_order(daemon: Daemon) -> None:
    text = speak("<mark name='a'/>One.<break time='2s'/><mark name='b'/>Two.<mark name='c'/>")
    events = events_of(daemon, text=text, markup="ssml")
    assert events[-1]["event"] == "done", events[-1]
    names = [event["event"] for event in events]
    assert names[:2] == ["accepted", "started"]
    marks = [(event["name"], event["time_s"]) for event in events if event["event"] == "mark"]
    assert [name for name, _ in marks] == ["a", "b", "c"]
    (_, a), (_, b), (_, c) = marks
    assert a == 0.0
    assert b > 2.0
    assert c == pytest.approx(events[-1]["audio_s"], abs=0.01)
    assert [(mark["name"], mark["time_s"]) for mark in events[-1]["marks"]] == marks


def test_a_break_is_as_long_as_it_says_and_a_gain_as_loud(daemon: Daemon) -> None:
    plain = events_of(daemon, text="One. Two.")[-1]["audio_s"]
    broken = events_of(daemon, text=speak("One.<break time='750ms'/>Two."), markup="ssml")[-1]["audio_s"]
    assert broken == pytest.approx(plain + 0.75, abs=0.01)
    loud, soft = (
        daemon.request({"op": "synthesize", "format": "pcm_s16le", "text": text, "markup": "ssml"})[
            "audio_bytes"
        ]
        for text in (speak("One."), speak("<prosody volume='-6dB'>One.</prosody>"))
    )
    assert len(loud) == len(soft)
    assert _peak(soft) == pytest.approx(_peak(loud) * 10 ** (-6 / 20), rel=0.02)


def _peak(data: bytes) -> int:
    return max(abs(int.from_bytes(data[at : at + 2], "little", signed=True)) for at in range(0, len(data), 2))


def test_plain_text_is_plain(daemon: Daemon) -> None:
    answer = daemon.request({"op": "explain", "text": "a < b & c, <speak> [laugh]"})
    said = " ".join(run["said"] for run in answer["runs"])
    assert "less than" in said
    assert "and" in said
    assert "laugh" in said


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("<speak>One <brake/> two</speak>", "line 1, column 12"),
        ("<speak>\n  <voice name='heart'>ok</voice>\n  &bad;</speak>", "line 3, column 3"),
        ("<!DOCTYPE speak [<!ENTITY a 'b'>]><speak>&a;</speak>", "line 1"),
    ],
)
def test_bad_markup_is_refused_with_its_place(daemon: Daemon, text: str, place: str) -> None:
    answer = daemon.request({"op": "synthesize", "text": text, "markup": "ssml"})
    assert (answer["event"], answer["code"]) == ("failed", "bad_markup")
    assert place in answer["message"]


def test_phonemes_change_what_is_heard(daemon: Daemon) -> None:
    def audio(inner: str) -> bytes:
        request = {"op": "synthesize", "format": "pcm_s16le", "text": speak(inner), "markup": "ssml"}
        data = daemon.request(request)["audio_bytes"]
        assert isinstance(data, bytes)
        return data

    named = audio("Call <phoneme alphabet='ipa' ph='ˈnaɪkɑn'>X</phoneme> now")
    assert named != audio("Call X now")
    bad = {
        "op": "synthesize",
        "text": speak("<phoneme alphabet='pinyin' ph='hx4'>行</phoneme>"),
        "markup": "ssml",
    }
    assert daemon.request(bad)["code"] == "bad_markup"


def test_voices_change_with_the_language_and_every_word_is_spoken(daemon: Daemon, chinese: str) -> None:
    text = "Pump two is off. 你好你好。Thank you."
    refused = daemon.request({"op": "synthesize", "text": text, "voice": "heart"})
    assert refused["code"] == "unsupported_text"
    assert chinese in refused["hint"]
    request = {"text": text, "voice": "heart", "run_voices": {"zh": chinese}}
    told = daemon.request({"op": "explain", **request})
    assert [u["voice"] for u in told["utterances"]] == ["heart", chinese, "heart"]
    done = events_of(daemon, **request)[-1]
    assert done["event"] == "done", done
    alone = events_of(daemon, text="Pump two is off. Thank you.", voice="heart")[-1]
    assert done["audio_s"] > alone["audio_s"]
    marked = speak(f"Hello. <voice name='{chinese}'>你好。</voice>")
    told = daemon.request({"op": "explain", "text": marked, "voice": "heart", "markup": "ssml"})
    assert [u["voice"] for u in told["utterances"]] == ["heart", chinese]


def test_tokens_of_the_model_need_its_markup(daemon: Daemon, chinese: str) -> None:
    text = "你好[uv_break]你好"
    marked = daemon.request({"op": "explain", "text": text, "voice": chinese, "markup": "chattts"})
    plain = daemon.request({"op": "explain", "text": text, "voice": chinese})
    assert "[uv_break]" in marked["utterances"][0]["said"]
    assert marked["utterances"][0]["ids"] < plain["utterances"][0]["ids"] or not plain["utterances"][0]["ids"]
    for other in ("[spk_emb]", "[speed_9]", "[Ptts]"):
        answer = daemon.request(
            {"op": "synthesize", "text": other + "你好", "voice": chinese, "markup": "chattts"}
        )
        assert answer["code"] == "bad_markup"
    elsewhere = daemon.request(
        {"op": "synthesize", "text": "Hi [laugh]", "voice": "heart", "markup": "chattts"}
    )
    assert elsewhere["code"] == "bad_value"
    assert chinese in elsewhere["hint"]
    markups = {voice["name"]: voice["markups"] for voice in daemon.request({"op": "voices"})["voices"]}
    assert markups["heart"] == ["plain", "ssml"]
    assert markups[chinese] == ["plain", "ssml", "chattts"]


def test_what_is_left_out_is_counted_to_the_end(daemon: Daemon) -> None:
    events = events_of(daemon, text="Tank \U0001f525 two \u202e is on.")
    assert events[0]["skipped"] == 2
    assert events[-1]["skipped"] >= 2


def test_a_lexicon_is_read_again_and_a_bad_one_changes_nothing(hibari_bundle: Path) -> None:
    def reads(daemon: Daemon) -> str:
        told = daemon.request({"op": "explain", "text": "The QX-5 is on."})
        return " ".join(u["said"] for u in told["utterances"])

    with running(hibari_bundle) as daemon:
        file = daemon.directory / "words.yaml"
        before = reads(daemon)
        file.write_text(LEXICON)
        daemon.configure(reading={"lexicons": ["words.yaml"]})
        assert daemon.request({"op": "reload"})["event"] == "reload_reply"
        assert reads(daemon) == "The queue ex five is on."
        file.write_text(LEXICON.replace("five", "six"))  # the settings stay as they are
        assert daemon.request({"op": "reload"})["event"] == "reload_reply"
        assert reads(daemon) == "The queue ex six is on."
        file.write_text("- word: QX-5\n  pinyin: xx\n- wrd: a\n")
        refused = daemon.request({"op": "reload"})
        assert (refused["event"], refused["code"]) == ("failed", "config")
        assert "words.yaml:2" in refused["message"]
        assert "words.yaml:3" in refused["message"]
        assert reads(daemon) == "The queue ex six is on."
        daemon.stop()
        daemon.start()  # a box that speaks without an entry is better than a silent one
        assert reads(daemon) == before
        assert "words.yaml:2" in daemon.log
