"""The prompts of the model: which control tokens stand around a text.

Text thread, and the compiler. Numbers from a request become control tokens only here, after a range check.
    code prompt    [Stts] [spk_emb] (sample text) [speed_N] text [Ptts]     text in, audio codes follow
    refine prompt  [Sbreak] text [Pbreak] [oral_N] [laugh_N] [break_N]      text in, text with tags follows
[empty_spk] stands for [spk_emb] where no speaker is given.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from edged.errors import BadValue
from edged.voices.chattts.tokens import Tokens

# The largest number of each kind of control token; all begin at 0.
LEVELS = {"speed": 9, "oral": 9, "laugh": 2, "break": 7}
PLAIN_SPEED = 5


def level(kind: str, value: int) -> str:
    """The name of the control token of a kind with this number. Raises `BadValue`."""
    most = LEVELS[kind]
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise BadValue(f"{kind} is {value!r}; it can be a whole number from 0 to {most}")
    return f"{kind}_{value}"


def speed_level(speed: float, plain: int = PLAIN_SPEED) -> int:
    """A pace as a factor (1.0 is the voice's own) in the model's ten steps: an octave is four of them."""
    return min(LEVELS["speed"], max(0, plain + round(4 * math.log2(max(speed, 0.01)))))


def code_prompt(
    tokens: Tokens,
    text: Sequence[int],
    *,
    speaker: bool,
    sample: Sequence[int] = (),
    speed: int | None = None,
) -> tuple[int, ...]:
    """sample: ids of what is said in the recording whose audio codes follow the prompt."""
    pace = () if speed is None else (tokens.control(level("speed", speed)),)
    return (
        tokens.control("Stts"),
        tokens.control("spk_emb" if speaker else "empty_spk"),
        *sample,
        *pace,
        *text,
        tokens.control("Ptts"),
    )


def refine_prompt(
    tokens: Tokens,
    text: Sequence[int],
    *,
    oral: int | None = None,
    laugh: int | None = None,
    pauses: int | None = None,
) -> tuple[int, ...]:
    """oral: how colloquial; laugh: how much laughter; pauses: how many ([break_N])."""
    wanted = (("oral", oral), ("laugh", laugh), ("break", pauses))
    return (
        tokens.control("Sbreak"),
        *text,
        tokens.control("Pbreak"),
        *(tokens.control(level(kind, value)) for kind, value in wanted if value is not None),
    )
