"""What the daemon answers and tells: one struct an event. Types only; neighbour: `codec`."""

from __future__ import annotations

import msgspec

from edged.explained import ReadingInfo, RunInfo, SkippedInfo, UtteranceInfo

VERSION = 1


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
    """Synthesis of the job began; on the loudspeaker: its first sample is heard.

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


class MarkTime(msgspec.Struct, kw_only=True, frozen=True):
    """When a mark of the text comes, in seconds from the beginning of the job's audio."""

    name: str
    time_s: float


class Mark(Event, kw_only=True, frozen=True, tag="mark"):
    """A mark of the text was reached. Sent between `started` and `done`: as it is heard on the loudspeaker,
    else as the audio is made, so ahead of the audio itself.

    time_s: where the mark is, in seconds from the beginning of the job's audio. name: as in the text; "" on
    the socket that publishes events, which tells nothing of a text.
    """

    name: str
    time_s: float


class Position(Event, kw_only=True, frozen=True, tag="position"):
    """An utterance (a sentence, or a part of a long one) of the text begins to be heard on the loudspeaker.

    utterance: its number, from 0. time_s: where it begins, in seconds from the beginning of the job's audio.
    """

    utterance: int
    time_s: float


class Paused(Event, kw_only=True, frozen=True, tag="paused"):
    """The job is silent from here on. reason: asked (by `control`), or interrupted (by another job).

    time_s: how much of its audio was played, in seconds.
    """

    time_s: float
    reason: str


class Resumed(Event, kw_only=True, frozen=True, tag="resumed"):
    """The job is heard again. time_s: from where on, in seconds from the beginning of its audio."""

    time_s: float


class Done(Event, kw_only=True, frozen=True, tag="done"):
    """The job ended well. For reply=final of `synthesize` the whole audio is the next frame.

    rtf: synthesis seconds per second of audio. first_audio_ms: from receipt to the first audio
    leaving for the socket or the loudspeaker. refined: with show_refined, the text that was said, a
    sentence a line. marks: all marks of the text, in order. skipped: characters that were not spoken, also
    those that were found after `accepted`.
    """

    audio_s: float
    synthesis_s: float
    rtf: float
    first_audio_ms: float
    format: str = ""
    sample_rate: int = 0
    warnings: list[str] = []
    refined: str = ""
    marks: list[MarkTime] = []
    skipped: int = 0


class Cancelled(Event, kw_only=True, frozen=True, tag="cancelled"):
    """The job was cancelled. reason: why, when it was not asked for: interrupted, replaced, busy, expired."""

    reason: str | msgspec.UnsetType = msgspec.UNSET


class Failed(Event, kw_only=True, frozen=True, tag="failed"):
    """The job or request failed. `retryable`: the same request may succeed later."""

    code: str
    message: str
    retryable: bool
    hint: str = ""


class Appended(Event, kw_only=True, frozen=True, tag="appended"):
    """Answer to `append` and `close`. held: characters that wait for the end of their sentence."""

    held: int = 0


class Explained(Event, kw_only=True, frozen=True, tag="explained"):
    """Answer to `explain`. voice, languages: of the request.

    truncated: a list would have more than 2,000 entries, and the later ones are not told.
    """

    voice: str
    languages: list[str]
    skipped: list[SkippedInfo]
    runs: list[RunInfo]
    readings: list[ReadingInfo]
    utterances: list[UtteranceInfo]
    warnings: list[str]
    truncated: bool = False


class HeardInfo(msgspec.Struct, kw_only=True, frozen=True):
    """One job of `history_reply`. ended: done, cancelled or failed; reason: why. text: where
    `speech.history_texts` allows it."""

    job: str
    client: str
    client_id: str
    priority: str
    voice: str
    ended_at: float
    ended: str
    heard_s: float
    reason: str = ""
    text: str = ""


class HistoryReply(Event, kw_only=True, frozen=True, tag="history_reply"):
    """Answer to `history`. ended_at: seconds since 1970, by the clock of the machine."""

    jobs: list[HeardInfo]


class CancelReply(Event, kw_only=True, frozen=True, tag="cancel_reply"):
    """Answer to `cancel`: the job numbers that were cancelled by it."""

    jobs: list[str]


class ControlReply(Event, kw_only=True, frozen=True, tag="control_reply"):
    """Answer to `control`: the job numbers that it changed something for.

    volume, muted: of the loudspeaker. held: jobs that come wait for a `resume` with scope "all".
    """

    jobs: list[str]
    volume: float = 1.0
    muted: bool = False
    held: bool = False


class JobInfo(msgspec.Struct, kw_only=True, frozen=True):
    """One live job in `status_reply`; never its text. phase: text, waiting, synthesis, delivery or paused."""

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
    volume, muted, held: as in `control_reply`.
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
    volume: float = 1.0
    muted: bool = False
    held: bool = False


class VoiceInfo(msgspec.Struct, kw_only=True, frozen=True):
    """One voice in `voices_reply`. controls: the fields of a request that steer it; markups: what a text
    for it may be written in."""

    name: str
    family: str
    languages: list[str]
    sample_rate: int
    description: str
    licence: str
    bundle: str
    default: bool
    controls: list[str] = []
    markups: list[str] = []


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
    the folder of every bundle that speaks, by its name in voices.bundles. lexicon: entries of the lexicons,
    which were read anew.
    """

    changed: list[str]
    restart: list[str]
    loaded: list[str]
    bundles: dict[str, str]
    lexicon: int = 0


AnyEvent = (
    Accepted
    | Started
    | Audio
    | Mark
    | Position
    | Paused
    | Resumed
    | Done
    | Cancelled
    | Failed
    | Appended
    | Explained
    | HistoryReply
    | CancelReply
    | ControlReply
    | StatusReply
    | VoicesReply
    | StatsReply
    | Pong
    | ReloadReply
)
TERMINAL = (Done, Cancelled, Failed)
