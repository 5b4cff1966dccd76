"""The settings of edged as frozen, typed values; every default works for an unprivileged user.

Leaf module: only types, units and defaults. `config.py` reads them from YAML, `config/edged.yaml`
documents every one of them. Times end in `_s` or `_ms`, sizes in their unit.
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
    Numbers,
    Oral,
    Penalty,
    Pitch,
    PriorityName,
    Queue,
    Replace,
    RunVoices,
    Speed,
    Temperature,
    TopK,
    TopP,
    Volume,
)

Text = Annotated[str, Meta(min_length=1)]
Count = Annotated[int, Meta(ge=1)]
Fraction = Annotated[float, Meta(ge=0.0, le=1.0)]
Seconds = Annotated[float, Meta(ge=0.0, le=3600.0)]
Mode = Annotated[
    str, Meta(pattern="^(0o?)?[0-7]{3}$", description="an access mode of three octal digits, such as 660")
]


class Group(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A named group of settings."""


class Listen(Group, kw_only=True, frozen=True):
    """Where clients connect. An empty endpoint means the default path of this machine."""

    endpoint: str = ""
    events: str = ""
    mode: Mode = "660"
    group: str = ""
    tcp: str = ""
    tcp_events: str = ""
    curve_secret: str = ""
    curve_clients: str = ""
    heartbeat_ms: Annotated[int, Meta(ge=50, le=60_000)] = 500


class Limits(Group, kw_only=True, frozen=True):
    """Bounds on what clients may send and hold."""

    text_chars: Annotated[int, Meta(ge=1, le=1_000_000)] = 5_000
    frame_kb: Annotated[int, Meta(ge=1, le=65_536)] = 256
    jobs: Annotated[int, Meta(ge=1, le=10_000)] = 64
    jobs_per_client: Annotated[int, Meta(ge=1, le=10_000)] = 32
    wait_s: Seconds = 60.0
    reply_buffer_s: Annotated[float, Meta(ge=1.0, le=600.0)] = 30.0
    reply_mb: Annotated[int, Meta(ge=1, le=4_096)] = 64
    client_stall_s: Seconds = 30.0
    open_idle_s: Annotated[float, Meta(ge=1.0, le=3600.0)] = 30.0


class Engine(Group, kw_only=True, frozen=True):
    """The inference engine. threads 0 means one per core, at most two; slots 0 means all of a bundle.

    fallback: a bundle for bundles that cannot run on this machine's GPU, "" for none.
    contexts: execution contexts of a TensorRT engine; 0 means one for each utterance at once.
    cuda_graphs: record the steps of a GPU where its driver can.
    batch, gather_ms: utterances of a one-pass voice in one call, and how long one waits for others.
    """

    backend: Literal["onnxruntime"] = "onnxruntime"
    fallback: str = ""
    threads: Annotated[int, Meta(ge=0, le=64)] = 0
    spinning: bool = False
    huge_pages: bool = True
    native: bool = True
    slots: Annotated[int, Meta(ge=0, le=64)] = 0
    contexts: Annotated[int, Meta(ge=0, le=16)] = 0
    cuda_graphs: bool = True
    batch: Annotated[int, Meta(ge=1, le=64)] = 4
    gather_ms: Annotated[float, Meta(ge=0.0, le=20.0)] = 0.0


class VoiceDefaults(Group, kw_only=True, frozen=True):
    """How one voice speaks where a request does not say; None is the voice's own.

    languages: what is drawn otherwise where one language is spoken. run_voices: by language, the voice that
    speaks what this one cannot, or "spell".
    """

    speed: Speed | None = None
    pitch: Pitch | None = None
    temperature: Temperature | None = None
    top_p: TopP | None = None
    top_k: TopK | None = None
    repetition_penalty: Penalty | None = None
    languages: Languages = Languages()
    run_voices: RunVoices = RunVoices()
    refine: bool | None = None
    oral: Oral | None = None
    laugh: Laugh | None = None
    break_: Break | None = msgspec.field(default=None, name="break")


class Voices(Group, kw_only=True, frozen=True):
    """Which bundles are loaded at start. defaults: by the name of a voice."""

    bundles: list[Text] = msgspec.field(default_factory=lambda: ["hibari"])
    directory: str = ""
    default: str = ""
    defaults: dict[Text, VoiceDefaults] = msgspec.field(default_factory=dict)


class Reading(Group, kw_only=True, frozen=True):
    """How texts are read where a request does not say. lexicons: files, relative to the folder of the
    configuration file; `config.load` makes the paths absolute."""

    lexicons: list[Text] = msgspec.field(default_factory=list)
    numbers: Numbers = "auto"
    digits: Digits = "auto"
    emoji: Emoji = "skip"
    date_order: DateOrder = "mdy"


Latency = Annotated[int, Meta(ge=5, le=2_000)]
Silence = Annotated[int, Meta(ge=0, le=5_000)]


class Device(Group, kw_only=True, frozen=True):
    """What differs for the devices that `match` means: a name, a pattern or part of a name.

    None is as for all. rate: in Hz, tried first. channels: how many are opened.
    """

    match: Text = "*"
    latency_ms: Latency | None = None
    lead_in_ms: Silence | None = None
    trail_ms: Silence | None = None
    keep_open_s: Seconds | None = None
    rate: Annotated[int, Meta(ge=8_000, le=192_000)] | None = None
    channels: Annotated[int, Meta(ge=1, le=32)] | None = None


class Audio(Group, kw_only=True, frozen=True):
    """The local loudspeaker. device "" is the system's default, otherwise a name, a pattern or part of a
    name, or several of these in the order in which they are tried.

    devices: of those that match a device, the first one counts. on_loss wait: jobs wait for the device.
    loudness_lufs 0: voices keep their own levels.
    duck_db: by how much other programs are softer meanwhile.
    """

    enabled: bool = True
    device: str | list[str] = ""
    devices: list[Device] = msgspec.field(default_factory=list)
    on_loss: Literal["fail", "wait"] = "fail"
    wait_for_device_s: Seconds = 30.0
    latency_ms: Latency = 100
    lead_in_ms: Silence = 150
    trail_ms: Silence = 150
    buffer_s: Annotated[float, Meta(ge=0.5, le=60.0)] = 4.0
    keep_open_s: Seconds = 5.0
    volume: Volume = 1.0
    loudness_lufs: Annotated[float, Meta(ge=-40.0, le=0.0)] = -20.0
    duck_db: Annotated[float, Meta(ge=-60.0, le=0.0)] = 0.0


class ClientDefaults(Group, kw_only=True, frozen=True):
    """How the speech of one client is heard where a request does not say; None is the class's own.

    client: the name that requests give, "*" for any. uid: of the user that it runs as, None for any.
    """

    client: Text = "*"
    uid: Annotated[int, Meta(ge=0, le=2**32 - 2)] | None = None
    priority: PriorityName | None = None
    interrupt: bool | None = None
    queue: Queue | None = None
    replace: Replace | None = None
    drop_if_busy: bool | None = None
    expires_ms: ExpiresMs | None = None
    after_interrupt: AfterInterrupt | None = None
    volume: Volume | None = None


DEFAULT_CHIME = "default"  # as a chime: the built-in one


class Speech(Group, kw_only=True, frozen=True):
    """Who is heard when on the loudspeaker, and what is kept of it. clients: the first that fits counts.

    chime: is played before the jobs of the priorities `chime_for`: a file, `DEFAULT_CHIME`, or "" for none.
    """

    history: Annotated[int, Meta(ge=0, le=1_000)] = 20
    history_texts: bool = False
    waiting_per_client: Annotated[int, Meta(ge=1, le=1_000)] = 16
    progress_s: Seconds = 1.5
    chime: str = ""
    chime_for: list[PriorityName] = msgspec.field(default_factory=lambda: ["important"])
    clients: list[ClientDefaults] = msgspec.field(default_factory=list)


class Stream(Group, kw_only=True, frozen=True):
    """How audio is cut into chunks on its way to a client."""

    chunk_ms: Annotated[int, Meta(ge=20, le=500)] = 500


class Log(Group, kw_only=True, frozen=True):
    """Logging. format auto: journald fields under systemd, plain text elsewhere."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["auto", "text", "journal"] = "auto"


class Stats(Group, kw_only=True, frozen=True):
    """Where statistics are left for Prometheus; "" means nowhere."""

    prometheus: str = ""
    prometheus_file: str = ""
    prometheus_file_s: Annotated[float, Meta(ge=1.0, le=3600.0)] = 15.0


class Service(Group, kw_only=True, frozen=True):
    """The process itself."""

    drain_s: Seconds = 10.0
    warmup: bool = True
    memory_mb: Annotated[int, Meta(ge=16, le=1_048_576)] = 1_500
    over_budget_s: Seconds = 30.0


class Faults(Group, kw_only=True, frozen=True):
    """Faults made on purpose, for tests. Steps are counted from READY; 0 means none."""

    leak_mb: Annotated[float, Meta(ge=0.0, le=10_000.0)] = 0.0
    leak_to_percent: Annotated[int, Meta(ge=1, le=10_000)] = 10_000
    leak_is_cache: bool = False
    stall_at_step: Annotated[int, Meta(ge=0)] = 0
    crash_at_step: Annotated[int, Meta(ge=0)] = 0
    fail_from_step: Annotated[int, Meta(ge=0)] = 0


class Settings(Group, kw_only=True, frozen=True):
    """All settings, as `edged serve` runs with them."""

    listen: Listen = Listen()
    limits: Limits = Limits()
    engine: Engine = Engine()
    voices: Voices = Voices()
    reading: Reading = Reading()
    audio: Audio = Audio()
    speech: Speech = Speech()
    stream: Stream = Stream()
    log: Log = Log()
    stats: Stats = Stats()
    service: Service = Service()
    faults: Faults = Faults()
