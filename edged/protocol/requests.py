"""What a client may ask: one struct an operation, checked as it is decoded. Types only.

Neighbours: `codec` turns bytes into them; the ranges of what steers a voice are those of `edged.controls`.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from edged.controls import (
    Break,
    DateOrder,
    Digits,
    Emoji,
    Languages,
    Laugh,
    Markup,
    Numbers,
    Oral,
    Penalty,
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
PriorityName = Literal["important", "message", "text", "notification", "progress"]
Format = Literal["wav", "flac", "ogg_opus", "mp3", "pcm_s16le", "pcm_f32le"]
Reply = Literal["ack", "final", "events"]
How = Literal["exact", "sentence", "restart"]


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

    From speed to speaker: which of them a voice takes is in its `controls`; absent is the configuration's
    or else the voice's own. languages: what is drawn otherwise where one language is spoken. refine: the
    model first rewrites the text as it would be said; oral (how colloquial), laugh and break (pauses) steer
    that and turn it on; show_refined: what came out is told in `started` and `done`. speaker: a speaker code
    instead of the voice's own speaker.
    """

    volume: Volume = 1.0
    seed: Annotated[int, Meta(ge=0, le=2**32 - 1)] = 0
    speed: Speed | None = None
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


class Control(Request, kw_only=True, frozen=True, tag="control"):
    """What is done to speech on the loudspeaker while it is heard.

    do: pause, resume, skip (the rest of a sentence) and stop are for the jobs that the other fields name as
    in `cancel`. resume goes on as `how` says: where it was, with the sentence, or with the text. With scope
    all, pause also makes later jobs wait for resume. volume (to `value`), mute and unmute: the loudspeaker.
    """

    do: Literal["pause", "resume", "skip", "stop", "volume", "mute", "unmute"]
    job: Id = ""
    target: Id = ""
    scope: Literal["job", "mine", "all"] = "job"
    how: How = "exact"
    value: Volume | None = None


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


AnyRequest = Speak | Synthesize | Explain | Cancel | Control | Status | Voices | Stats | Ping | Reload
OPERATIONS: dict[str, type[Request]] = {
    "speak": Speak,
    "synthesize": Synthesize,
    "explain": Explain,
    "cancel": Cancel,
    "control": Control,
    "status": Status,
    "voices": Voices,
    "stats": Stats,
    "ping": Ping,
    "reload": Reload,
}
