"""The keyword options that `Client` and `AsyncClient` share, typed once for both.

The daemon checks the values; its defaults are the ones named here. Neighbours: `blocking`, `aio`.
"""

from __future__ import annotations

from typing import Literal, TypedDict

from edged.protocol import Format, PriorityName

OnDisconnect = Literal["finish", "cancel"]
Scope = Literal["job", "mine", "all"]


class SpeechOptions(TypedDict, total=False):
    """How a text is spoken.

    voice: a name from `voices()`; "" is the daemon's default. speed: 0.5 to 2.0. volume: linear gain,
    0.0 to 4.0. seed: the same seed gives the same samples. priority: important, message, text (the
    default), notification, progress. deadline_ms: fail instead of starting later than this.
    on_disconnect: whether a vanished client's job is finished (the default of speak) or cancelled (of
    synthesize).
    """

    voice: str
    speed: float
    volume: float
    seed: int
    priority: PriorityName
    deadline_ms: int | None
    on_disconnect: OnDisconnect | None


class AudioOptions(SpeechOptions, total=False):
    """How audio comes back. format: "wav" for synthesize, "pcm_s16le" for stream; sample_rate: in Hz,
    0 is the voice's own."""

    format: Format
    sample_rate: int
