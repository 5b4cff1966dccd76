"""What `Client` and `AsyncClient` share: their options, typed once for both, and the requests they make.

No thread and no waiting. The daemon checks the values. Neighbours: `connection`; `blocking` and `aio`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypedDict, cast

from msgspec import structs

from edged import protocol
from edged.client.connection import FRAME_KB, Connection
from edged.client.endpoint import Curve
from edged.controls import (
    AfterInterrupt,
    DateOrder,
    Digits,
    Emoji,
    Markup,
    Numbers,
    PriorityName,
    Queue,
    Replace,
    Spoken,
)
from edged.errors import did_you_mean
from edged.paths import client_endpoint
from edged.protocol import Format

OnDisconnect = Literal["finish", "cancel"]
Scope = Literal["job", "mine", "all"]


class ReadingOptions(TypedDict, total=False):
    """What is read, and how; None is the daemon's default.

    voice: a name from `voices()`; "" is the daemon's default. markup: plain (the default), ssml or chattts.
    language: zh or en, of a text that does not show its own. numbers: auto, zh or en. digits: auto or
    digits, one by one. emoji: skip or name. date_order: mdy, dmy or ymd. run_voices: {"zh": name} or "en":
    the voice that speaks what the first one cannot, or "spell".
    """

    voice: str
    markup: Markup
    language: Literal["", Spoken]
    numbers: Numbers | None
    digits: Digits | None
    emoji: Emoji | None
    date_order: DateOrder | None
    run_voices: Mapping[Spoken, str] | None


class SpeechOptions(ReadingOptions, total=False):
    """How a text is spoken: the options of `ReadingOptions`, and these.

    volume: linear gain, 0.0 to 4.0. seed: the same seed gives the same samples. priority: important,
    message, text, notification, progress. None of these two is the daemon's default for this client, else 1.0
    and text. deadline_ms: fail instead of starting later than this. on_disconnect: whether a vanished
    client's job is finished (the default of speak) or cancelled (of synthesize).

    Of the rest None is the daemon's default. speed: 0.5 to 2.0. pitch: -12 to 12 semitones up.

    What follows is refused by a voice that has no such control (`voices()` shows them). temperature, top_p,
    top_k, repetition_penalty: how sounds are drawn.
    languages: {"zh": {"temperature": 0.2}}, these four where a language is spoken.
    refine: rewrite the text as it would be said; oral (0 to 9), laugh (0 to 2) and break_ (0 to 7) steer
    that. show_refined: what came of it is in `Started.refined` and `Done.refined`. speaker: a speaker code.
    """

    speed: float | None
    pitch: float | None
    volume: float | None
    seed: int
    priority: PriorityName | Literal[""] | None
    deadline_ms: int | None
    on_disconnect: OnDisconnect | None
    temperature: float | None
    top_p: float | None
    top_k: int | None
    repetition_penalty: float | None
    languages: Mapping[Spoken, Mapping[str, float]] | None
    refine: bool | None
    oral: int | None
    laugh: int | None
    break_: int | None
    show_refined: bool | None
    speaker: str | None


class SpeakOptions(SpeechOptions, total=False):
    """When a text is heard on the loudspeaker: the options of `SpeechOptions`, and these. None is the
    daemon's default for this client, else that of the priority.

    interrupt: whether it may interrupt jobs of a lower priority. queue: last or next, behind or before those
    of its priority that wait. replace: none, or own: older jobs of this client and priority are dropped.
    drop_if_busy: drop it if anything is heard or waits. expires_ms: drop it if it is not heard by then.
    after_interrupt: resume (at the sentence that was cut), restart or drop.
    """

    interrupt: bool | None
    queue: Queue | None
    replace: Replace | None
    drop_if_busy: bool | None
    expires_ms: int | None
    after_interrupt: AfterInterrupt | None


class AudioOptions(SpeechOptions, total=False):
    """How audio comes back. format: "wav" for synthesize, "pcm_s16le" for stream; sample_rate: in Hz,
    0 is the voice's own."""

    format: Format
    sample_rate: int


class Base:
    """Owns the connection and makes requests for it, each with an id of its own."""

    def __init__(
        self,
        endpoint: str | None = None,
        timeout_s: float = 10.0,
        name: str = "",
        *,
        curve: Curve | None = None,
        frame_kb: int = FRAME_KB,
    ) -> None:
        self._pid = os.getpid()
        self._connection = Connection(client_endpoint(endpoint), name, timeout_s, curve, frame_kb)

    @property
    def endpoint(self) -> str:
        return self._connection.endpoint

    @property
    def _forked(self) -> bool:
        """In a forked child: libzmq's thread stayed with the parent, and its descriptors are shared."""
        return os.getpid() != self._pid

    def _check_process(self) -> None:
        if self._forked:
            raise RuntimeError(
                f"this {type(self).__name__} was made before the process forked: make a new one in the child"
            )

    def _id(self) -> str:
        return self._connection.new_id()

    def _speak(self, text: str, wait: bool, options: SpeakOptions) -> protocol.Speak:
        _known("speak", options, SpeakOptions.__annotations__)
        reply: protocol.Reply = "events" if wait else "ack"
        given = cast("dict[str, Any]", options)  # the daemon checks the values
        return protocol.Speak(id=self._id(), client=self._connection.name, text=text, reply=reply, **given)

    def _write(self, text: str, options: SpeakOptions) -> protocol.Speak:
        _known("write", options, SpeakOptions.__annotations__)
        request = self._speak(text, True, options)
        return structs.replace(request, open=True)

    def _append(self, target: str, text: str, flush: bool) -> protocol.Append:
        name = self._connection.name
        return protocol.Append(id=self._id(), client=name, target=target, text=text, flush=flush)

    def _complete(self, target: str) -> protocol.Close:
        return protocol.Close(id=self._id(), client=self._connection.name, target=target)

    def _synthesize(self, text: str, stream: bool, options: AudioOptions) -> protocol.Synthesize:
        _known("stream" if stream else "synthesize", options, AudioOptions.__annotations__)
        given = cast("dict[str, Any]", options)  # the daemon checks the values
        if stream:
            given = {"format": "pcm_s16le", **given}
        return protocol.Synthesize(
            id=self._id(),
            client=self._connection.name,
            text=text,
            reply="events",
            stream=stream,
            **given,
        )

    def _explain(self, text: str, options: ReadingOptions) -> protocol.Explain:
        _known("explain", options, ReadingOptions.__annotations__)
        given = cast("dict[str, Any]", options)  # the daemon checks the values
        return protocol.Explain(id=self._id(), client=self._connection.name, text=text, **given)

    def _cancel(self, job: str, target: str, scope: Scope) -> protocol.Cancel:
        client = self._connection.name
        return protocol.Cancel(id=self._id(), client=client, job=job, target=target, scope=scope)

    def _repeat(self, job: str, priority: PriorityName | None) -> protocol.Repeat:
        name = self._connection.name
        return protocol.Repeat(id=self._id(), client=name, job=job, priority=priority, reply="events")

    def _control(
        self,
        do: Literal["pause", "resume", "skip", "volume", "mute", "unmute", "speed"],
        job: str,
        target: str,
        scope: Scope,
        volume: float | None = None,
        speed: float | None = None,
    ) -> protocol.Control:
        return protocol.Control(
            id=self._id(),
            client=self._connection.name,
            do=do,
            job=job,
            target=target,
            scope=scope,
            volume=volume,
            speed=speed,
        )


def _known(method: str, given: Iterable[str], options: Iterable[str]) -> None:
    """Python itself would say neither which options there are nor which one was meant."""
    names = list(options)
    for name in given:
        if name not in names:
            words = (f"{method}() has no option {name!r};", did_you_mean(name, names), "the options are:")
            raise TypeError(" ".join(filter(None, words)) + " " + ", ".join(names))
