"""Bytes to typed requests, typed events to bytes. No sockets, no threads, no state.

`decode_request` turns every malformed input into one of the `RequestError` classes; `schema()` prints JSON
Schema generated from the same types. Neighbours: `requests` and `events` have the types.
"""

from __future__ import annotations

import json
import re
from typing import Any, get_args, get_type_hints

import msgspec

from edged.errors import (
    BadJson,
    BadReply,
    BadValue,
    EdgedError,
    UnknownField,
    UnknownOperation,
    did_you_mean,
)
from edged.protocol.events import VERSION, AnyEvent, Event, Failed
from edged.protocol.requests import OPERATIONS, AnyRequest, Request
from edged.words import choices_of, describe

_encoder = msgspec.json.Encoder()
_event_decoder = msgspec.json.Decoder(AnyEvent)
_object_decoder = msgspec.json.Decoder()
_SURROGATE = re.compile("[\ud800-\udfff]")
_TORN = "send whole characters: a text was cut inside one, or bytes that are no text were sent as text"


def decode_request(header: bytes | memoryview) -> AnyRequest:
    """The typed request in a header frame. Raises a `RequestError` that names what is wrong."""
    try:
        data = _object_decoder.decode(header)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise _bad_json(header, exc) from None
    if not isinstance(data, dict):
        raise BadJson("the header is JSON, but not an object")
    op = data.get("op")
    if op is None:
        raise BadValue("the field 'op' is missing", f"one of: {', '.join(OPERATIONS)}")
    request_type = OPERATIONS.get(op) if isinstance(op, str) else None
    if request_type is None:
        known = ", ".join(OPERATIONS)
        guess = did_you_mean(op, OPERATIONS) if isinstance(op, str) else ""
        raise UnknownOperation(f"unknown operation {_shorten(op)}", guess or f"one of: {known}")
    fields = [f.encode_name for f in msgspec.structs.fields(request_type)]
    for key in data:
        if key != "op" and key not in fields:
            guess = did_you_mean(key, fields)
            raise UnknownField(
                f"unknown field {_shorten(key)} for operation {op!r}",
                guess or f"known fields: {', '.join(fields)}",
            )
    try:
        return msgspec.convert(data, type=request_type)  # type: ignore[return-value]
    except msgspec.ValidationError as exc:
        raise _bad_value(exc, request_type, data) from None


def request_id(header: bytes | memoryview) -> str:
    """The client's `id` in a header that failed to decode, as far as it can be read."""
    try:
        data = _object_decoder.decode(header)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        data = _with_surrogates(header)
    value = data.get("id") if isinstance(data, dict) else None
    return value[:128] if isinstance(value, str) and not _SURROGATE.search(value) else ""


def encode(message: Request | Event) -> bytes:
    """A request or event as its JSON header frame."""
    return _encoder.encode(message)


def decode_event(header: bytes | memoryview) -> AnyEvent:
    """The typed event in a header frame. Raises `BadReply` if it is not one of ours."""
    try:
        return _event_decoder.decode(header)
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        raise BadReply(f"the daemon's answer could not be read: {exc}") from None


def failed(error: EdgedError, id: str = "", job: str = "") -> Failed:
    """The `failed` event of an error."""
    return Failed(
        id=id,
        job=job,
        code=error.code,
        message=error.message,
        retryable=error.retryable,
        hint=error.hint,
    )


def schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of every request and event of protocol v1."""
    (request, event), components = msgspec.json.schema_components(
        [AnyRequest, AnyEvent], ref_template="#/$defs/{name}"
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"edged protocol v{VERSION}",
        "description": "A header frame is a request (client to daemon) or an event (daemon to client).",
        "request": request,
        "event": event,
        "$defs": components,
    }


def _bad_json(header: bytes | memoryview, exc: Exception) -> BadJson:
    data = _with_surrogates(header)
    if data is None:
        return BadJson(f"the header is not JSON: {exc}")
    fields = data.items() if isinstance(data, dict) else ()
    torn = (key for key, value in fields if isinstance(value, str) and _SURROGATE.search(value))
    name = next((key for key in torn if key.isidentifier()), "")
    return BadJson(f"{f'{name}: ' if name else ''}holds an unpaired surrogate, half of a character", _TORN)


def _with_surrogates(header: bytes | memoryview) -> Any:
    """What a header holds that is JSON but for unpaired surrogates, which the standard library lets pass;
    None of any other."""
    try:
        data = json.loads(bytes(header))
        return data if _SURROGATE.search(json.dumps(data, ensure_ascii=False)) else None
    except (ValueError, RecursionError):
        return None


def _shorten(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _bad_value(exc: msgspec.ValidationError, request_type: type[Request], data: dict[str, Any]) -> BadValue:
    """msgspec says "Expected `float`, got `str` - at `$.speed`"; people read it in other words."""
    text, _, path = str(exc).partition(" - at `$")
    name = path.rstrip("`").lstrip(".")
    quoted = text.partition("`")[2].rstrip("`")
    if not name:  # "Object missing required field `text`"
        return BadValue(f"the field {quoted!r} is missing", "it is required")
    annotation: Any = request_type
    value: Any = data
    for part in name.split("."):
        annotation = _field(annotation, part)
        value = value[part]
    if group := _struct(annotation):
        known = [field.encode_name for field in msgspec.structs.fields(group)]
        if isinstance(value, dict):  # "Object contains unknown field `fr`"
            guess = did_you_mean(quoted, known)
            return BadValue(
                f"{name}: unknown field {_shorten(quoted)}", guess or f"one of: {', '.join(known)}"
            )
        return BadValue(f"{name}: expected an object with {', '.join(known)}, got {_shorten(value)}")
    guess = did_you_mean(value, map(str, choices_of(annotation))) if isinstance(value, str) else ""
    expected = describe(annotation, name)
    return BadValue(
        f"{name}: expected {expected}, got {_shorten(value)}", guess or "all fields: edged protocol --schema"
    )


def _struct(annotation: Any) -> type[msgspec.Struct] | None:
    """The struct that a field holds, perhaps in a union with None."""
    kinds = [annotation, *get_args(annotation)]
    return next((k for k in kinds if isinstance(k, type) and issubclass(k, msgspec.Struct)), None)


def _field(annotation: Any, name: str) -> Any:
    """The type of a field of a struct, by the field's name on the wire."""
    group = _struct(annotation)
    assert group is not None
    attribute = next(f.name for f in msgspec.structs.fields(group) if f.encode_name == name)
    return get_type_hints(group, include_extras=True)[attribute]
