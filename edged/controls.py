"""How a voice may be steered: names, types and ranges, the same in requests and in the configuration.

Leaf module, no thread. Neighbours: `protocol` and `settings` use the types, `voices/load.py` says which
family has which control, `params` brings them together for one job.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

Speed = Annotated[float, Meta(ge=0.5, le=2.0)]
Temperature = Annotated[float, Meta(ge=0.01, le=10.0)]
TopP = Annotated[float, Meta(ge=0.01, le=1.0)]
TopK = Annotated[int, Meta(ge=1, le=1000)]
Penalty = Annotated[float, Meta(ge=0.1, le=10.0)]
Oral = Annotated[int, Meta(ge=0, le=9)]
Laugh = Annotated[int, Meta(ge=0, le=2)]
Break = Annotated[int, Meta(ge=0, le=7)]
SpeakerCode = Annotated[str, Meta(max_length=8192)]  # a speaker of 768 numbers takes some 900

COMMON = ("speed", "seed")  # every voice has these
LEVELS = ("oral", "laugh", "break")  # what they change is the refined text
GENERATIVE = (
    *COMMON,
    *("temperature", "top_p", "top_k", "repetition_penalty"),
    *("refine", "show_refined", *LEVELS),
    "speaker",
)
