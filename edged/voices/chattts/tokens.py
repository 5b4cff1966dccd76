"""Text to token ids, with a wall between what a text says and what steers the model.

Text thread, and the compiler. The only module that imports `tokenizers`. The vocabulary holds control
tokens in brackets ([Ptts], [speed_5], [laugh]); they are added by name through `control`. Text from a
request goes through `speech`: brackets become commas before the tokenizer sees them, and whatever special
token would still come out is taken out, so that no message can change voice, pace or ending by its wording.
Neighbours: `prompts.py` puts the pieces together.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edged.errors import BundleError, BundleManifestInvalid, MissingExtra
from edged.text.shown import letters

# What a request may be allowed to write itself: sounds and pauses inside a sentence.
TAGS = ("uv_break", "lbreak", "laugh")
# Control tokens that a model may say when it refines a text: sounds, pauses, background. The others below
# [break_0], which published code keeps as well, would end a prompt or change its speaker.
SAYABLE = ("uv_break", "v_break", "lbreak", "llbreak", "undefine", "laugh", "music", "pure")
TAG, WORD = 1, 2  # kinds of token that may stand in a text; 0: it may not
# Every bracket that a normalizer could turn into [ or ].
_NEUTRAL = str.maketrans({**dict.fromkeys("[]\uff3b\uff3d\ufe47\ufe48【】〔〕〖〗", " , "), "_": " "})
_BRACKETED = re.compile(r"\[[\w ]*\]", re.ASCII)
_WIDE_GAP = re.compile(r"(?<=[\u2e80-\u9fff\uff00-\uffef]) (?=[\u2e80-\u9fff\uff00-\uffef])")
_WORD_CHARS = 48  # the tokenizer gives up on a word of 100; no real one is as long as this
_LONG_WORD = re.compile(rf"[^\s\u2e80-\u9fff]{{{_WORD_CHARS}}}(?=\S)")


@dataclass(frozen=True, slots=True)
class Spoken:
    """Token ids of a text. breaks[i] says how good a place after token i is to cut: 2 after a mark, 1
    between words, 0 inside a word. lost: characters that have no token. letters: how many letters and digits
    of the text there are up to the end of each token."""

    ids: tuple[int, ...]
    breaks: tuple[int, ...]
    lost: tuple[str, ...] = ()
    letters: tuple[int, ...] = ()


class Tokens:
    """The tokenizer of one bundle."""

    def __init__(self, file: Path) -> None:
        try:
            import tokenizers
        except ImportError as error:
            raise MissingExtra("tokenizers", "chattts", "a ChatTTS voice") from error
        try:
            self._tokenizer: Any = tokenizers.Tokenizer.from_file(str(file))
        except Exception as error:  # the library raises plain Exception
            raise BundleError(f"{file}: not a tokenizer: {str(error)[:200]}") from error
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self.size = int(self._tokenizer.get_vocab_size(with_added_tokens=True))
        added = {
            token.content: number for number, token in self._tokenizer.get_added_tokens_decoder().items()
        }
        vocabulary = self._tokenizer.get_vocab(with_added_tokens=False)
        self._special = added | {w: n for w, n in vocabulary.items() if _BRACKETED.fullmatch(w)}
        self.special_ids = frozenset(self._special.values())
        self._kinds = self.kinds()
        self._laugh = self.control("laugh") if self.has("laugh") else -1

    def kinds(self) -> NDArray[np.uint8]:
        """By token id: `WORD` when it says something, `TAG` when it may stand in a text, else 0."""
        made = np.zeros(self.size, np.uint8)
        for token, number in self._tokenizer.get_vocab(with_added_tokens=True).items():
            if number not in self.special_ids:
                made[number] = WORD if any(map(str.isalnum, token)) else TAG
        for name in filter(self.has, SAYABLE):
            made[self.control(name)] = TAG
        return made

    def sounds(self, ids: Sequence[int]) -> bool:
        """Whether any of these says something."""
        return any(self._kinds[number] == WORD or number == self._laugh for number in ids)

    def written(self, ids: Sequence[int]) -> str:
        """Tokens as people read them, tags in brackets. Any thread: it changes nothing."""
        text = self._tokenizer.decode(list(ids), skip_special_tokens=False)
        return _WIDE_GAP.sub("", text)

    def has(self, name: str) -> bool:
        return f"[{name}]" in self._special

    def control(self, name: str) -> int:
        """The id of the control token [name]."""
        number = self._special.get(f"[{name}]")
        if number is None:
            raise BundleError(f"the tokenizer has no token [{name}]", "the checkpoint is of another kind")
        return int(number)

    def speech(self, text: str, allowed: Collection[str] = ()) -> Spoken:
        """The ids of what is said. allowed: which of `TAGS` the text may contain as [tag]."""
        ids: list[int] = []
        breaks: list[int] = []
        lost: list[str] = []
        seen: list[int] = []
        before = 0
        tags = [tag for tag in TAGS if tag in allowed]
        parts = re.split(rf"\[({'|'.join(tags)})\]", text) if tags else [text]
        for place, part in enumerate(parts):
            if place % 2:
                ids.append(self.control(part))
                breaks.append(2)
                seen.append(before)
            else:
                counts = self._words(part, ids, breaks, lost)
                seen += (before + count for count in counts)
                before += letters(part)[-1]
        return Spoken(tuple(ids), tuple(breaks), tuple(lost), tuple(seen))

    def _words(self, text: str, ids: list[int], breaks: list[int], lost: list[str]) -> list[int]:
        """Adds the tokens of a text; the letters up to each."""
        plain = text.translate(_NEUTRAL)
        spaced = _LONG_WORD.sub(r"\g<0> ", plain)
        try:
            encoding = self._tokenizer.encode(spaced, add_special_tokens=False)
        except Exception as error:  # the library raises nothing more particular
            raise BundleManifestInvalid("the tokenizer of the bundle is damaged") from error
        words = encoding.word_ids
        tokens, offsets = encoding.tokens, encoding.offsets
        last = len(encoding.ids) - 1
        counts = letters(spaced)
        seen: list[int] = []
        for place, number in enumerate(encoding.ids):
            if number in self.special_ids:  # above all [UNK]: a character that the model has never seen
                begin, end = offsets[place]
                lost += filter(str.isalnum, spaced[begin:end])
                continue
            ids.append(number)
            seen.append(counts[offsets[place][1]])
            if place == last or words[place] != words[place + 1]:
                breaks.append(2 if not any(map(str.isalnum, tokens[place])) else 1)
            else:
                breaks.append(0)
        return seen
