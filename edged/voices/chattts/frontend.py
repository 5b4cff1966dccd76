"""Text to utterances of prompt tokens, sentence by sentence, lazily. Text thread only.

Numbers, units and signs are read as words first: the model has learned no digit. Marks it has not learned
become those it has; a sentence that is longer than an utterance may be is
cut after a mark, else between words, else anywhere. Every step is linear in the text. Neighbours:
`edged.text.runs` reads; `tokens.py` and `prompts.py` make the ids; `synth.py` speaks them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from edged.errors import BadSpeaker
from edged.job import Params, Utterance
from edged.text.runs import MixedReader
from edged.voices.chattts import speakers
from edged.voices.chattts.prompts import code_prompt, refine_prompt, speed_level
from edged.voices.chattts.tokens import Spoken, Tokens
from edged.voices.chattts.utterance import ChatUtterance

PARAGRAPH_PAUSE_S = 0.3

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
_SENTENCE_END = re.compile(r"。|\.(?= |$)")
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

    reader: turns what is written into words. most: text tokens of an utterance. sample: ids of what the
    voice's recording says, if it has one. speed: the pace of speed 1.0 in the model's steps. hidden: numbers
    of a speaker.
    """

    def __init__(
        self,
        tokens: Tokens,
        reader: MixedReader,
        *,
        most: int,
        speaker: int,
        embedded: bool,
        sample: tuple[int, ...] = (),
        speed: int = 5,
        hidden: int = 0,
    ) -> None:
        self._tokens = tokens
        self._reader = reader
        self._most = most
        self._speaker = speaker
        self._embedded = embedded
        self._sample = sample
        self._speed = speed
        self._hidden = hidden

    def utterances(self, text: str, params: Params) -> Iterator[Utterance]:
        """Raises `BadSpeaker` for a speaker code that is none."""
        vector = self._vector(params.speaker) if params.speaker else None
        held: ChatUtterance | None = None  # one behind, because a blank line lengthens the pause before it
        index = 0
        for line in text.split("\n"):
            if held is not None and not line.strip():
                held = replace(held, pause_s=PARAGRAPH_PAUSE_S / params.speed)
            for ids in self._pieces(line):
                if held is not None:
                    yield held
                held = self._utterance(index, ids, params, vector)
                index += 1
        if held is not None:
            yield held

    def _vector(self, code: str) -> NDArray[np.float32]:
        try:
            return speakers.embedding(speakers.decode_speaker(code, self._hidden))
        except BadSpeaker as error:
            raise BadSpeaker(f"speaker {code[:8]!r}...: {error.message}", error.hint) from error

    def _utterance(
        self, index: int, ids: tuple[int, ...], params: Params, vector: NDArray[np.float32] | None
    ) -> ChatUtterance:
        """A speaker of the request takes the place of the voice's own and of its recording."""
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

    def _pieces(self, line: str) -> Iterator[tuple[int, ...]]:
        for sentence in sentences(plain(self._reader.read(line))):
            if any(map(str.isalnum, sentence)):
                yield from cut(self._tokens.speech(sentence), self._most)


def sentences(line: str) -> Iterator[str]:
    start = 0
    for end in _SENTENCE_END.finditer(line):
        yield line[start : end.end()]
        start = end.end()
    if start < len(line):
        yield line[start:]


def cut(spoken: Spoken, most: int) -> Iterator[tuple[int, ...]]:
    """Runs of at most `most` ids; a cut in the first third of a run is not taken: it would leave scraps."""
    start, total = 0, len(spoken.ids)
    while total - start > most:
        places = range(start + most, start + max(1, most // 3) - 1, -1)
        end = next((at for good in (2, 1) for at in places if spoken.breaks[at - 1] == good), start + most)
        yield spoken.ids[start:end]
        start = end
    if start < total:
        yield spoken.ids[start:]
