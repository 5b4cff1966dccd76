"""Words to utterances of prompt tokens. Text thread only.

What comes here is words: the model has learned no digit. Marks it has not learned become those it has.
Linear in the text. Neighbours: `edged.text.prepare` calls it; `tokens.py` and `prompts.py` make the ids;
`synth.py` speaks them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from edged.errors import BadSpeaker
from edged.job import Params, Utterance
from edged.text.document import Alphabet, Encoded, Said
from edged.text.shown import letters
from edged.text.split import Pauses
from edged.voices.chattts import speakers
from edged.voices.chattts.prompts import code_prompt, refine_prompt, speed_level
from edged.voices.chattts.tokens import TAGS, Tokens
from edged.voices.chattts.utterance import ChatUtterance

_MARKS = str.maketrans(
    {
        **dict.fromkeys("!?;…", ". "),
        **dict.fromkeys("！？；", "。"),
        **dict.fromkeys(":()<>{}|—–", ", "),
        **dict.fromkeys("：（）《》「」『』－", "，"),
        **dict.fromkeys("'’‘`", ""),  # inside English words
        **dict.fromkeys('"“”*#~^\\', " "),
    }
)
_HYPHEN = re.compile(r"(?<=\w)-(?=\w)")
_DASH = re.compile(r"(?<!\w)-|-(?!\w)")
_MARK_RUN = re.compile(r"[,.，。、] ?(?:[,.，。、] ?)+")
_BLANKS = re.compile(r"\s+")


def plain(line: str) -> str:
    """A line with the marks , . ， 。 、 only, none of them doubled."""
    line = _DASH.sub(", ", _HYPHEN.sub(" ", line.translate(_MARKS)))
    return _MARK_RUN.sub(_strongest, _BLANKS.sub(" ", line)).strip(" ,，、")


def _strongest(run: re.Match[str]) -> str:
    marks = run.group()
    strong = [c for c in marks if c in ".。"] or [c for c in marks if c != " "]
    return f"{strong[0]} " if strong[0] in ",." else strong[0]


class ChatFrontend:
    """Implements `Frontend` for one named voice.

    languages: as its card has them. most: text tokens of an utterance. sample: ids of what the voice's
    recording says, if it has one. speed: the pace of speed 1.0 in the model's steps. hidden: numbers of a
    speaker.
    """

    alphabets: frozenset[Alphabet] = frozenset()
    tags = frozenset(TAGS)
    pauses = Pauses()

    def __init__(
        self,
        tokens: Tokens,
        *,
        languages: tuple[str, ...] = ("zh", "en"),
        most: int,
        speaker: int,
        embedded: bool,
        sample: tuple[int, ...] = (),
        speed: int = 5,
        hidden: int = 0,
    ) -> None:
        self.languages = languages
        self._tokens = tokens
        self._most = most
        self._speaker = speaker
        self._embedded = embedded
        self._sample = sample
        self._speed = speed
        self._hidden = hidden
        self._last: tuple[str, NDArray[np.float32]] | None = None  # speaker code of a request, its vector

    def encode(self, said: Sequence[Said]) -> Encoded:
        """Between two of the model's own tokens the words are encoded together, so that it makes no
        difference to them in how many parts they came."""
        ids: list[int] = []
        breaks: list[int] = []
        lost: list[str] = []
        seen: list[int] = []
        before = 0
        for tag, parts in groupby(said, key=lambda part: part.tag):
            if tag:
                for _ in parts:
                    ids.append(self._tokens.control(tag))
                    breaks.append(2)
                    seen.append(before)
                continue
            text = "".join(part.text for part in parts)
            spoken = self._tokens.speech(plain(text))
            ids += spoken.ids
            breaks += spoken.breaks
            lost += spoken.lost
            seen += (before + count for count in spoken.letters)
            before += letters(text)[-1]
        return Encoded(tuple(ids), tuple(breaks), tuple(lost), tuple(seen))

    def limit(self, params: Params) -> int:
        return self._most

    def utterance(self, index: int, ids: Sequence[int], params: Params) -> Utterance | None:
        """A speaker of the request takes the place of the voice's own and of its recording.

        Raises `BadSpeaker` for a speaker code that is none.
        """
        if not self._tokens.sounds(ids):
            return None
        vector = self._vector(params.speaker) if params.speaker else None
        prompt = code_prompt(
            self._tokens,
            ids,
            speaker=self._embedded or vector is not None,
            sample=self._sample if vector is None else (),
            speed=speed_level(params.speed, self._speed),
        )
        refine: tuple[int, ...] = ()
        if params.refine:
            refine = refine_prompt(
                self._tokens, ids, oral=params.oral, laugh=params.laugh, pauses=params.break_
            )
        end = len(prompt) - 1  # [Ptts] comes last
        return ChatUtterance(
            index,
            prompt,
            speaker=self._speaker,
            vector=vector,
            refine=refine,
            text=(end - len(ids), end),
        )

    def _vector(self, code: str) -> NDArray[np.float32]:
        """Of a speaker code; that of the last one is kept, as all utterances of a request have the same."""
        if self._last is None or self._last[0] != code:
            try:
                vector = speakers.embedding(speakers.decode_speaker(code, self._hidden))
            except BadSpeaker as error:
                raise BadSpeaker(f"speaker {code[:8]!r}...: {error.message}", error.hint) from error
            self._last = code, vector
        return self._last[1]
