"""Protocol v1: bytes in, typed requests out, or a typed error; never anything else."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edged import protocol
from edged.client.results import checked
from edged.errors import (
    BadJson,
    BadReply,
    BadValue,
    EdgedError,
    JobCancelled,
    RequestError,
    UnknownField,
    UnknownOperation,
)
from edged.protocol import decode_event, decode_request, encode

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
KNOWN = sorted({f for cls in protocol.OPERATIONS.values() for f in cls.__struct_encode_fields__} | {"op"})


def request(**fields: Any) -> bytes:
    return json.dumps(fields).encode()


@given(st.binary(max_size=200))
def test_any_bytes_give_a_request_or_a_request_error(data: bytes) -> None:
    try:
        code = type(decode_request(data)).__struct_config__.tag
    except RequestError as error:
        code = error.code
    assert code in (*protocol.OPERATIONS, "bad_json", "bad_value", "unknown_operation", "unknown_field")


@given(
    st.sampled_from([*protocol.OPERATIONS, "speek", 3]),
    st.dictionaries(st.sampled_from(KNOWN) | st.text(max_size=6), JSON, max_size=6),
)
def test_any_object_gives_a_request_or_a_request_error(op: Any, fields: dict[str, Any]) -> None:
    data = json.dumps({**fields, "op": op}).encode()
    try:
        decoded = decode_request(data)
    except RequestError:
        return
    # What was accepted means the same when it is sent again.
    assert decode_request(encode(decoded)) == decoded
    assert set(fields) - {"op"} <= set(type(decoded).__struct_encode_fields__)


@pytest.mark.parametrize(
    ("data", "error", "says"),
    [
        (b"not json", BadJson, "JSON"),
        (b"\xff\xfe", BadJson, "JSON"),
        (b"[]", BadJson, "object"),
        (b"[" * 100_000, BadJson, "JSON"),
        (b'{"op":"speak","text":"a","speed":NaN}', BadJson, "JSON"),
        (b'{"op":"speak","text":"\\ud800"}', BadJson, "text: holds an unpaired surrogate"),
        (b'{"op":"speak","text":"a\\ud83d b"}', BadJson, "text: holds an unpaired surrogate"),
        (b'{"op":"speak","text":"a\\udc00\\ud83d"}', BadJson, "text: holds an unpaired surrogate"),
        (b'{"op":"speak","text":"a\xed\xa0\x80"}', BadJson, "text: holds an unpaired surrogate"),
        (b'{"op":"speak","text":"a","speed":NaN}', BadJson, "the header is not JSON: "),
        (b'{"op":"speak","text":["\\ud800"]}', BadJson, "holds an unpaired surrogate"),
        (request(), BadValue, "op"),
        (request(op="speek", text="a"), UnknownOperation, "'speak'"),
        (request(op=7), UnknownOperation, "speak"),
        (request(op="speak", text="a", voise="x"), UnknownField, "'voice'"),
        (request(op="speak"), BadValue, "text"),
        (request(op="speak", text=5), BadValue, "text"),
        (request(op="speak", text="a", speed="fast"), BadValue, "speed"),
        (request(op="speak", text="a", speed=0.1), BadValue, "speed"),
        (request(op="speak", text="a", speed=9), BadValue, "speed"),
        (request(op="speak", text="a", volume=-1), BadValue, "volume"),
        (request(op="speak", text="a", priority="urgent"), BadValue, "priority"),
        (request(op="speak", text="a", queue="first"), BadValue, "queue"),
        (request(op="speak", text="a", interrupt=1), BadValue, "interrupt"),
        (request(op="speak", text="a", expires_ms=0), BadValue, "expires_ms"),
        (request(op="explain", text="a", replace="own"), UnknownField, "replace"),
        (request(op="speak", text="a", deadline_ms=0), BadValue, "deadline_ms"),
        (request(op="speak", text="a", id="x" * 129), BadValue, "id"),
        *(
            (request(op="speak", text="a", **{name: wrong}), BadValue, f"{name}: expected {expected}, got ")
            for name, expected, wrongs in (
                ("speed", "a number from 0.5 to 2", (0.49, 2.01)),
                ("temperature", "a number from 0.01 to 10", (0, 11, -1, "1", True)),
                ("top_p", "a number from 0.01 to 1", (0, 1.01)),
                ("top_k", "a whole number from 1 to 1000", (0, 1001, 1.5)),
                ("repetition_penalty", "a number from 0.1 to 10", (0, 11)),
                ("oral", "a whole number from 0 to 9", (-1, 10, 0.5)),
                ("laugh", "a whole number from 0 to 2", (-1, 3)),
                ("break", "a whole number from 0 to 7", (-1, 8)),
                ("refine", "true or false", (1, "yes")),
                ("show_refined", "true or false", (0, "")),
                ("speaker", "text of at most 8192 characters", (5, "x" * 8193)),
            )
            for wrong in wrongs
        ),
        *(
            (request(op=op, text="a", **{name: wrong}), BadValue, f"{says}")
            for op in ("speak", "synthesize")
            for name, wrong, says in (
                ("markup", "xml", "markup: expected one of plain, ssml, chattts, got 'xml'"),
                ("language", "fr", "language: expected one of '', zh, en, got 'fr'"),
                ("numbers", "", "numbers: expected one of auto, zh, en"),
                ("digits", "digit", "did you mean 'digits'?"),
                ("emoji", True, "emoji: expected one of skip, name"),
                ("date_order", "dym", "date_order: expected one of mdy, dmy, ymd"),
                ("languages", 3, "languages: expected an object with zh, en, got 3"),
                ("languages", {"fr": {}}, "languages: unknown field 'fr' (one of: zh, en)"),
                ("languages", {"zh": None}, "languages.zh: expected an object with temperature"),
                ("languages", {"en": {"top_q": 1}}, "languages.en: unknown field 'top_q' (did you mean"),
                ("languages", {"zh": {"top_p": 2}}, "languages.zh.top_p: expected a number from 0.01 to 1"),
                ("run_voices", {"zh": 3}, "run_voices.zh: expected text of at most 64 characters"),
                ("run_voices", {"de": "a"}, "run_voices: unknown field 'de'"),
            )
        ),
        (request(op="speak", text="a", break_=1), UnknownField, "'break'"),
        (request(op="speak", text="a", v=2), BadValue, "v"),
        (request(op="speak", text="a", v="2"), BadValue, "v"),
        (request(op="synthesize", text="a", format="aiff"), BadValue, "format"),
        (request(op="synthesize", text="a", sample_rate=-1), BadValue, "sample_rate"),
    ],
)
def test_each_fault_has_its_class_and_names_the_field(
    data: bytes, error: type[EdgedError], says: str
) -> None:
    with pytest.raises(error) as caught:
        decode_request(data)
    assert type(caught.value) is error
    assert says in str(caught.value)


def test_a_control_that_is_not_asked_for_is_not_sent() -> None:
    """A daemon of an earlier version knows nothing of it."""
    sent = msgspec.json.decode(encode(protocol.Speak(text="a", break_=0)))
    assert set(sent) <= {"op", "v", "id", "client", "text", "break", "reply"}
    assert sent["break"] == 0
    for unsaid in ("", None):
        assert protocol.decode_request(request(op="speak", text="a", priority=unsaid)).priority == unsaid
    absent = protocol.decode_request(request(op="speak", text="a", temperature=None, refine=None))
    assert absent == protocol.Speak(text="a")


def test_the_id_of_a_bad_request_is_still_found() -> None:
    assert protocol.request_id(request(op="nope", id="mine")) == "mine"
    assert protocol.request_id(b"garbage") == ""
    assert protocol.request_id(request(id=3)) == ""
    assert len(protocol.request_id(request(id="x" * 5000))) == 128
    assert protocol.request_id(b'{"id":"mine","text":"a\\ud83d b"}') == "mine"
    assert protocol.request_id(b'{"id":"\\ud83d","text":"a"}') == ""


def test_events_round_trip_and_foreign_ones_are_refused() -> None:
    event = protocol.Done(id="a", job="b", audio_s=1.5, synthesis_s=0.1, rtf=0.06, first_audio_ms=12.0)
    assert decode_event(encode(event)) == event
    for foreign in (b"", b"{}", b'{"event":"unheard_of"}', b'{"event":"done"}', b"\xff"):
        with pytest.raises(BadReply):
            decode_event(foreign)


def test_why_a_job_was_dropped_is_told_and_nothing_where_it_was_cancelled() -> None:
    sent = msgspec.json.decode(encode(protocol.Cancelled(id="a", job="b")))
    assert sent == {"event": "cancelled", "v": 1, "id": "a", "job": "b"}
    for event in (protocol.Cancelled(), protocol.Cancelled(reason="busy")):
        told = decode_event(encode(event))
        assert told == event
        with pytest.raises(JobCancelled, match=r"^the job was cancelled(: busy)?$") as caught:
            checked(told)
        assert ("busy" in str(caught.value)) == bool(event.reason)


def test_the_schema_describes_what_is_really_sent() -> None:
    schema = protocol.schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    definitions = {"$defs": schema["$defs"]}
    requests = jsonschema.Draft202012Validator({**schema["request"], **definitions})
    events = jsonschema.Draft202012Validator({**schema["event"], **definitions})

    assert list(requests.iter_errors({"op": "speak", "text": "hello", "speed": 1.2, "break": 7})) == []
    assert list(requests.iter_errors({"op": "speak", "text": "hello", "break": 8})) != []
    sent = msgspec.json.decode(encode(protocol.Speak(text="a", break_=2, top_k=3, speaker="x")))
    assert list(requests.iter_errors(sent)) == []
    reading = {"markup": "ssml", "languages": {"zh": {"top_k": 2}}, "run_voices": {"en": "spell"}}
    assert list(requests.iter_errors({"op": "speak", "text": "a", **reading})) == []
    assert list(requests.iter_errors({"op": "speak", "text": "a", "languages": {"zh": {"top_k": 0}}})) != []
    assert list(requests.iter_errors({"op": "speak"})) != []
    assert list(requests.iter_errors({"op": "speak", "text": "a", "speed": 9})) != []
    assert list(requests.iter_errors({"op": "speak", "text": "a", "other": 1})) != []
    sent = msgspec.json.decode(encode(protocol.failed(BadValue("m"), id="i")))
    assert list(events.iter_errors(sent)) == []
    assert list(events.iter_errors({"event": "failed"})) != []


def test_every_operation_and_event_is_in_the_schema() -> None:
    names = set(protocol.schema()["$defs"])
    assert {cls.__name__ for cls in protocol.OPERATIONS.values()} <= names
    assert {cls.__name__ for cls in protocol.Event.__subclasses__()} <= names
