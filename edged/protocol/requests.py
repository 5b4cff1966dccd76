"""What a client may ask: one struct an operation, checked as it is decoded. Types only.

Neighbours: `codec` turns bytes into them; the ranges of what steers a voice are those of `edged.controls`.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from edged.controls import (
    AfterInterrupt,
    Break,
    DateOrder,
    Digits,
    Emoji,
    ExpiresMs,
    Languages,
    Laugh,
    Markup,
    Numbers,
    Oral,
    Penalty,
    Pitch,
    PriorityName,
    Queue,
    Replace,
    RunVoices,
    SpeakerCode,
    Speed,
    Spoken,
    Temperature,
    TopK,
    TopP,
    Volume,
)

Id = Annotated[str, Meta(max_length=128)]
Name = Annotated[str, Meta(max_length=64)]
Format = Literal["wav", "flac", "ogg_opus", "mp3", "pcm_s16le", "pcm_f32le"]
Reply = Literal["ack", "final", "events"]


class Request(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True, tag_field="op"):
    """Fields of every request. `id` is the client's own and comes back in every answer."""

    v: Literal[1] = 1
    id: Id = ""
    client: Name = ""


class Reading(Request, kw_only=True, frozen=True, omit_defaults=True):
    """Fields that say what is to be read, by whom and how. None: as the configuration says.

    markup: what the text is written in. language: of a text that does not show its own, "" for the voice's.
    numbers: the language of numbers; digits: "digits" reads plain numbers one digit at a time; emoji: left
    out, or by name; date_order: of dates in figures whose order their form does not show. run_voices: by
    language, the voice that speaks what `voice` cannot, or "spell".
    """

    text: str
    voice: Name = ""
    markup: Markup = "plain"
    language: Literal["", Spoken] = ""
    numbers: Numbers | None = None
    digits: Digits | None = None
    emoji: Emoji | None = None
    date_order: DateOrder | None = None
    run_voices: RunVoices | None = None


class Speech(Reading, kw_only=True, frozen=True, omit_defaults=True):
    """Fields of both speech operations, with those of `Reading`.

    Every voice takes a speed and a pitch (semitones up). From temperature to speaker: which of them a voice
    takes is in its `controls`. Absent is the configuration's or else the voice's own.

    languages: what is drawn otherwise where one language is spoken. refine: the
    model first rewrites the text as it would be said; oral (how colloquial), laugh and break (pauses) steer
    that and turn it on; show_refined: what came out is told in `started` and `done`. speaker: a speaker code
    instead of the voice's own speaker. open: more text follows, by `append`, until `close`; only plain text.

    volume, priority: None (of the priority "", too) is as the client's entry in the configuration says, else
    1.0 and text. From interrupt to after_interrupt: when it is heard on the loudspeaker, so of `speak` only;
    None is as the entry says, else as the priority has it.
    """

    volume: Volume | None = None
    seed: Annotated[int, Meta(ge=0, le=2**32 - 1)] = 0
    speed: Speed | None = None
    pitch: Pitch | None = None
    temperature: Temperature | None = None
    top_p: TopP | None = None
    top_k: TopK | None = None
    repetition_penalty: Penalty | None = None
    languages: Languages | None = None
    refine: bool | None = None
    oral: Oral | None = None
    laugh: Laugh | None = None
    break_: Break | None = msgspec.field(default=None, name="break")
    show_refined: bool | None = None
    speaker: SpeakerCode | None = None
    priority: Literal["", PriorityName] | None = None
    interrupt: bool | None = None
    queue: Queue | None = None
    replace: Replace | None = None
    drop_if_busy: bool | None = None
    expires_ms: ExpiresMs | None = None
    after_interrupt: AfterInterrupt | None = None
    deadline_ms: Annotated[int, Meta(ge=1, le=86_400_000)] | None = None
    on_disconnect: Literal["finish", "cancel"] | None = None
    reply: Reply = "final"
    open: bool = False


class Speak(Speech, kw_only=True, frozen=True, tag="speak"):
    """Speak on the local loudspeaker. A vanished client's speech is finished by default."""


class Synthesize(Speech, kw_only=True, frozen=True, tag="synthesize"):
    """Return the audio: whole, or in chunks as it is made (`stream`, with reply=events).

    sample_rate 0 is the voice's own. A vanished client's job is cancelled by default.
    """

    format: Format = "wav"
    sample_rate: Annotated[int, Meta(ge=0, le=192_000)] = 0
    stream: bool = False


class Explain(Reading, kw_only=True, frozen=True, tag="explain"):
    """How the text would be spoken: what is left out, how it is read, where it is cut. Nothing is spoken."""


class Cancel(Request, kw_only=True, frozen=True, tag="cancel"):
    """Cancel by the daemon's job number, by the client's own id, or by scope.

    scope "mine": every job of this connection, and of this user's connections with the same `client`
    name; "all": every job of the daemon.
    """

    job: Id = ""
    target: Id = ""
    scope: Literal["job", "mine", "all"] = "job"


class Control(Cancel, kw_only=True, frozen=True, tag="control"):
    """What is to become of jobs on the loudspeaker, which are named as in `cancel`.

    A paused job goes on at the very sample; meanwhile others are heard. skip: a sentence of the job that is
    being heard, or is paused. volume, speed: needed by the `do` of that name. A speed counts from the next
    sentence on. With scope "all", a pause also holds the jobs that come until a `resume` of all, but for
    important ones, and volume, mute and unmute are those of the loudspeaker.
    """

    do: Literal["pause", "resume", "skip", "volume", "mute", "unmute", "speed"]
    volume: Volume | None = None
    speed: Speed | None = None


class Part(Request, kw_only=True, frozen=True):
    """Fields of what is said of an open job, which is named as in `cancel`."""

    job: Id = ""
    target: Id = ""


class Append(Part, kw_only=True, frozen=True, tag="append"):
    """More text for an open job. It is spoken by whole sentences, whatever pieces it comes in; flush: nothing
    of it waits for the end of its sentence."""

    text: str
    flush: bool = False


class Close(Part, kw_only=True, frozen=True, tag="close"):
    """The text of an open job is complete: what waits is spoken, and the job ends when all of it was."""


class Repeat(Request, kw_only=True, frozen=True, tag="repeat"):
    """Speak once more what was heard: the job with that number, or the last one.

    It is a job of this client, and answered as `speak` is. Needs `speech.history_texts`.
    """

    job: Id = ""
    priority: Literal["", PriorityName] | None = None
    reply: Reply = "final"


class History(Request, kw_only=True, frozen=True, tag="history"):
    """What was heard on the loudspeaker lately, the last one first."""

    last: Annotated[int, Meta(ge=1, le=1_000)] = 20


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


AnyRequest = (
    Speak
    | Synthesize
    | Append
    | Close
    | Repeat
    | History
    | Explain
    | Cancel
    | Control
    | Status
    | Voices
    | Stats
    | Ping
    | Reload
)
OPERATIONS: dict[str, type[Request]] = {
    "speak": Speak,
    "synthesize": Synthesize,
    "append": Append,
    "close": Close,
    "repeat": Repeat,
    "history": History,
    "explain": Explain,
    "cancel": Cancel,
    "control": Control,
    "status": Status,
    "voices": Voices,
    "stats": Stats,
    "ping": Ping,
    "reload": Reload,
}
