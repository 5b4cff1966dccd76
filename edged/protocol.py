"""Protocol v1: bytes to typed requests, typed events to bytes. No sockets, no threads, no state.

A request is one JSON object in a header frame. A reply or event is one JSON object in a header frame,
followed by one binary frame when it carries audio. `decode_request` turns every malformed input into
one of the `RequestError` classes; `schema()` prints JSON Schema generated from these same types.
Neighbours: `server` and `client` call it; it imports only leaves: controls, errors, words.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_type_hints

import msgspec
from msgspec import Meta

from edged.controls import (
    Break,
    Laugh,
    Oral,
    Penalty,
    SpeakerCode,
    Speed,
    Temperature,
    TopK,
    TopP,
)
from edged.errors import (
    BadJson,
    BadReply,
    BadValue,
    EdgedError,
    UnknownField,
    UnknownOperation,
    did_you_mean,
)
from edged.words import choices_of, describe

VERSION = 1
Id = Annotated[str, Meta(max_length=128)]
Name = Annotated[str, Meta(max_length=64)]
PriorityName = Literal["important", "message", "text", "notification", "progress"]
Format = Literal["wav", "flac", "ogg_opus", "mp3", "pcm_s16le", "pcm_f32le"]
Reply = Literal["ack", "final", "events"]


# -- requests -----------------------------------------------------------------------------------


class Request(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True, tag_field="op"):
    """Fields of every request. `id` is the client's own and comes back in every answer."""

    v: Literal[1] = 1
    id: Id = ""
    client: Name = ""


class Speech(Request, kw_only=True, frozen=True, omit_defaults=True):
    """Fields of both speech operations.

    From speed to speaker: which of them a voice takes is in its `controls`; absent is the configuration's
    or else the voice's own. refine: the model first rewrites the text as it would be said; oral (how
    colloquial), laugh and break (pauses) steer that and turn it on; show_refined: what came out is told
    in `started` and `done`. speaker: a speaker code instead of the voice's own speaker.
    """

    text: str
    voice: Name = ""
    volume: Annotated[float, Meta(ge=0.0, le=4.0)] = 1.0
    seed: Annotated[int, Meta(ge=0, le=2**32 - 1)] = 0
    speed: Speed | None = None
    temperature: Temperature | None = None
    top_p: TopP | None = None
    top_k: TopK | None = None
    repetition_penalty: Penalty | None = None
    refine: bool | None = None
    oral: Oral | None = None
    laugh: Laugh | None = None
    break_: Break | None = msgspec.field(default=None, name="break")
    show_refined: bool | None = None
    speaker: SpeakerCode | None = None
    priority: PriorityName = "text"
    deadline_ms: Annotated[int, Meta(ge=1, le=86_400_000)] | None = None
    on_disconnect: Literal["finish", "cancel"] | None = None
    reply: Reply = "final"


class Speak(Speech, kw_only=True, frozen=True, tag="speak"):
    """Speak on the local loudspeaker. A vanished client's speech is finished by default."""


class Synthesize(Speech, kw_only=True, frozen=True, tag="synthesize"):
    """Return the audio: whole, or in chunks as it is made (`stream`, with reply=events).

    sample_rate 0 is the voice's own. A vanished client's job is cancelled by default.
    """

    format: Format = "wav"
    sample_rate: Annotated[int, Meta(ge=0, le=192_000)] = 0
    stream: bool = False


class Cancel(Request, kw_only=True, frozen=True, tag="cancel"):
    """Cancel by the daemon's job number, by the client's own id, or by scope.

    scope "mine": every job of this connection, and of this user's connections with the same `client`
    name; "all": every job of the daemon.
    """

    job: Id = ""
    target: Id = ""
    scope: Literal["job", "mine", "all"] = "job"


class Status(Request, kw_only=True, frozen=True, omit_defaults=True, tag="status"):
    """Is the daemon well, what is it doing; with `memory`, what its memory is used for."""

    memory: bool = False


class Voices(Request, kw_only=True, frozen=True, tag="voices"):
    """Which voices can be used."""


class Stats(Request, kw_only=True, frozen=True, tag="stats"):
    """Counters and latency percentiles since start."""


class Ping(Request, kw_only=True, frozen=True, tag="ping"):
    """Answered at once by the socket thread."""


class Reload(Request, kw_only=True, frozen=True, tag="reload"):
    """Read the configuration and the bundles again, without dropping a job."""


AnyRequest = Speak | Synthesize | Cancel | Status | Voices | Stats | Ping | Reload
OPERATIONS: dict[str, type[Request]] = {
    "speak": Speak,
    "synthesize": Synthesize,
    "cancel": Cancel,
    "status": Status,
    "voices": Voices,
    "stats": Stats,
    "ping": Ping,
    "reload": Reload,
}


# -- events -------------------------------------------------------------------------------------


class Event(msgspec.Struct, kw_only=True, frozen=True, tag_field="event"):
    """Fields of every answer and event. `job` is the daemon's own number of the job."""

    v: int = VERSION
    id: str = ""
    job: str = ""


class Accepted(Event, kw_only=True, frozen=True, tag="accepted"):
    """The job was admitted; `position` jobs are ahead of it. Sent as the answer for reply=ack.

    skipped: characters of the text that have no sound (emoji, symbols), which were left out. wait_s: the
    predicted time until its synthesis begins; none while the voice has not been measured.
    """

    position: int
    skipped: int = 0
    wait_s: float | None = None


class Started(Event, kw_only=True, frozen=True, tag="started"):
    """Synthesis of the job began.

    refined: the first sentence as it will be said; with show_refined, and then the event comes when the
    sentence is known.
    """

    voice: str
    refined: str = ""


class Audio(Event, kw_only=True, frozen=True, tag="audio"):
    """One piece of audio; the encoded bytes are the next frame.

    samples: samples in this piece at `sample_rate` (mono). last: no more audio follows.
    """

    seq: int
    samples: int
    sample_rate: int
    format: str
    last: bool = False


class Done(Event, kw_only=True, frozen=True, tag="done"):
    """The job ended well. For reply=final of `synthesize` the whole audio is the next frame.

    rtf: synthesis seconds per second of audio. first_audio_ms: from receipt to the first audio
    leaving for the socket or the loudspeaker. refined: with show_refined, the text that was said, a
    sentence a line.
    """

    audio_s: float
    synthesis_s: float
    rtf: float
    first_audio_ms: float
    format: str = ""
    sample_rate: int = 0
    warnings: list[str] = []
    refined: str = ""


class Cancelled(Event, kw_only=True, frozen=True, tag="cancelled"):
    """The job was cancelled."""


class Failed(Event, kw_only=True, frozen=True, tag="failed"):
    """The job or request failed. `retryable`: the same request may succeed later."""

    code: str
    message: str
    retryable: bool
    hint: str = ""


class CancelReply(Event, kw_only=True, frozen=True, tag="cancel_reply"):
    """Answer to `cancel`: the job numbers that were cancelled by it."""

    jobs: list[str]


class JobInfo(msgspec.Struct, kw_only=True, frozen=True):
    """One live job in `status_reply`; never its text. phase: text, waiting, synthesis or delivery."""

    job: str
    client: str
    kind: str
    state: str
    voice: str
    priority: str
    age_s: float
    phase: str = ""


class MemoryInfo(msgspec.Struct, kw_only=True, frozen=True):
    """One line of the memory plan. kind: `buffer` is allocated at start, `weights` are those of an engine,
    `bound` is the most that is taken while serving, `device` is memory of the GPU. rows: how
    many alike the line stands for."""

    name: str
    shape: list[int]
    dtype: str
    mb: float
    kind: str
    rows: int


class StatusReply(Event, kw_only=True, frozen=True, tag="status_reply"):
    """Answer to `status`. state is starting, ready, draining.

    memory: the plan, when the request asked for it; budget_mb: the most it, and the process, may be.
    used_mb: memory of the process and the GPU at the last reading, exact once it is near the budget.
    memory_state: ok, high, or full: new jobs are refused. remark: what is not as it was configured.
    """

    state: str
    version: str
    pid: int
    uptime_s: float
    rss_mb: float
    jobs: list[JobInfo]
    audio_device: str
    audio_error: str
    endpoint: str
    events: str
    tcp: str
    tcp_events: str
    buffers_mb: float
    memory: list[MemoryInfo] = []
    budget_mb: float = 0.0
    used_mb: float = 0.0
    memory_state: str = "ok"
    remark: str = ""


class VoiceInfo(msgspec.Struct, kw_only=True, frozen=True):
    """One voice in `voices_reply`. controls: the fields of a request that steer it."""

    name: str
    family: str
    languages: list[str]
    sample_rate: int
    description: str
    licence: str
    bundle: str
    default: bool
    controls: list[str] = []


class VoicesReply(Event, kw_only=True, frozen=True, tag="voices_reply"):
    """Answer to `voices`."""

    voices: list[VoiceInfo]


class Percentiles(msgspec.Struct, kw_only=True, frozen=True):
    """Percentiles of the last jobs; count is how many they are taken over."""

    count: int
    p50: float
    p90: float
    p99: float
    max: float


NOTHING = Percentiles(count=0, p50=0.0, p90=0.0, p99=0.0, max=0.0)


class StatsReply(Event, kw_only=True, frozen=True, tag="stats_reply"):
    """Answer to `stats`: counters since start, percentiles over the last jobs.

    first_audio_ms: of streams and of the loudspeaker. to_engine_ms: receipt to the first engine step,
    preparation of the text left out. from_engine_ms: end of the engine step to the first audio leaving.
    overhead_ms: the sum of these two in each job, the daemon's own share. text_ms: preparation of the first
    sentence.

    underruns: gaps that were heard on the loudspeaker; stream_underruns: pieces of streams that were sent too
    late for one who plays them as they come.

    steps: calls of a voice since start, with row_steps utterances in them; steps_per_s and rows_per_step
    (the occupancy of a batch) are of the last 10 s. step_ms: of the last steps. slot_wait_ms: from a job's
    first sentence being ready to its first step. cpu_s: processor seconds of the whole daemon;
    engine_cpu_s: of its own threads inside the engines, without the runtime's helper threads.
    """

    uptime_s: float
    accepted: int
    done: int
    cancelled: int
    failed: dict[str, int]
    rejected: dict[str, int]
    lost_replies: int
    queued: int
    running: int
    audio_s: float
    synthesis_s: float
    underruns: int
    rss_mb: float
    first_audio_ms: Percentiles
    rtf: Percentiles
    text_ms: Percentiles
    to_engine_ms: Percentiles
    from_engine_ms: Percentiles
    overhead_ms: Percentiles
    stream_underruns: int = 0
    steps: int = 0
    row_steps: int = 0
    steps_per_s: float = 0.0
    rows_per_step: float = 0.0
    step_ms: Percentiles = NOTHING
    slot_wait_ms: Percentiles = NOTHING
    cpu_s: float = 0.0
    engine_cpu_s: float = 0.0


class Pong(Event, kw_only=True, frozen=True, tag="pong"):
    """Answer to `ping`."""

    version: str
    protocol: int = VERSION


class ReloadReply(Event, kw_only=True, frozen=True, tag="reload_reply"):
    """Answer to `reload`, when it is done; `failed` tells that nothing was changed.

    changed: settings with a new value, which counts from here. restart: settings that differ in the file, and
    count after a restart. loaded: voices that were loaded anew, for the jobs that come from here on. bundles:
    the folder of every bundle that speaks, by its name in voices.bundles.
    """

    changed: list[str]
    restart: list[str]
    loaded: list[str]
    bundles: dict[str, str]


AnyEvent = (
    Accepted
    | Started
    | Audio
    | Done
    | Cancelled
    | Failed
    | CancelReply
    | StatusReply
    | VoicesReply
    | StatsReply
    | Pong
    | ReloadReply
)
TERMINAL = (Done, Cancelled, Failed)

_encoder = msgspec.json.Encoder()
_event_decoder = msgspec.json.Decoder(AnyEvent)
_object_decoder = msgspec.json.Decoder()


def decode_request(header: bytes | memoryview) -> AnyRequest:
    """The typed request in a header frame. Raises a `RequestError` that names what is wrong."""
    try:
        data = _object_decoder.decode(header)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise BadJson(f"the header is not JSON: {exc}") from None
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
        return ""
    value = data.get("id") if isinstance(data, dict) else None
    return value[:128] if isinstance(value, str) else ""


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


def _shorten(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _bad_value(exc: msgspec.ValidationError, request_type: type[Request], data: dict[str, Any]) -> BadValue:
    """msgspec says "Expected `float`, got `str` - at `$.speed`"; people read it in other words."""
    text, _, path = str(exc).partition(" - at `$")
    name = path.rstrip("`").lstrip(".")
    attributes = {field.encode_name: field.name for field in msgspec.structs.fields(request_type)}
    annotation = get_type_hints(request_type, include_extras=True).get(attributes.get(name, ""))
    if annotation is None:  # "Object missing required field `text`"
        missing = text.partition("`")[2].rstrip("`")
        return BadValue(f"the field {missing!r} is missing", "it is required")
    value = data.get(name)
    guess = did_you_mean(value, map(str, choices_of(annotation))) if isinstance(value, str) else ""
    expected = describe(annotation, name)
    return BadValue(
        f"{name}: expected {expected}, got {_shorten(value)}", guess or "all fields: edged protocol --schema"
    )
