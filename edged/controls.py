"""How a voice may be steered, and when a job is heard: names, types and ranges, the same in requests and in
the configuration.

Leaf module, no thread. Neighbours: `protocol` and `settings` use the types, `voices/load.py` says which
family has which control, `params` brings them together for one job.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

SPEEDS = (0.5, 2.0)  # factors, of pace and of loudness
VOLUMES = (0.0, 4.0)
PITCHES = (-12.0, 12.0)  # semitones up, as markup has it: 0 is none, and changes add up
Speed = Annotated[float, Meta(ge=SPEEDS[0], le=SPEEDS[1])]
Pitch = Annotated[float, Meta(ge=PITCHES[0], le=PITCHES[1])]
Volume = Annotated[float, Meta(ge=VOLUMES[0], le=VOLUMES[1])]
Temperature = Annotated[float, Meta(ge=0.01, le=10.0)]
TopP = Annotated[float, Meta(ge=0.01, le=1.0)]
TopK = Annotated[int, Meta(ge=1, le=1000)]
Penalty = Annotated[float, Meta(ge=0.1, le=10.0)]
Oral = Annotated[int, Meta(ge=0, le=9)]
Laugh = Annotated[int, Meta(ge=0, le=2)]
Break = Annotated[int, Meta(ge=0, le=7)]
SpeakerCode = Annotated[str, Meta(max_length=8192)]  # a speaker of 768 numbers takes some 900

Markup = Literal["plain", "ssml", "chattts"]
Emoji = Literal["skip", "name"]
Digits = Literal["auto", "digits"]
DateOrder = Literal["mdy", "dmy", "ymd"]
Numbers = Literal["auto", "zh", "en"]
Spoken = Literal["zh", "en"]  # the languages that can be told apart within a text
Partner = Annotated[str, Meta(max_length=64)]  # a voice, SPELL, or "" for none
PriorityName = Literal["important", "message", "text", "notification", "progress"]
Queue = Literal["last", "next"]
Replace = Literal["none", "own"]
AfterInterrupt = Literal["resume", "restart", "drop"]
ExpiresMs = Annotated[int, Meta(ge=1, le=86_400_000)]
SPELL = "spell"  # in the place of a voice: said as the voice of another language can say it


class Sampling(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """How the sounds of one language are drawn; None is as of the others."""

    temperature: Temperature | None = None
    top_p: TopP | None = None
    top_k: TopK | None = None
    repetition_penalty: Penalty | None = None


class Languages(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """Sampling by the language of what is said."""

    zh: Sampling = Sampling()
    en: Sampling = Sampling()


class RunVoices(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """Who speaks the stretches of a language that the voice itself cannot speak."""

    zh: Partner = ""
    en: Partner = ""


COMMON = ("speed", "seed")  # the families of today have these
ANY_VOICE = ("speed", "pitch")  # what a voice cannot do itself of these is done with its audio
LEVELS = ("oral", "laugh", "break")  # what they change is the refined text
GENERATIVE = (
    *COMMON,
    *("temperature", "top_p", "top_k", "repetition_penalty", "languages"),
    *("refine", "show_refined", *LEVELS),
    "speaker",
)
