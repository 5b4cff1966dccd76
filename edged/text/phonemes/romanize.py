"""Chinese text to pinyin, and to letters that an English voice can say.

The readings come from the package pypinyin, which knows some 47,000 words with characters of several
readings (银行, 行走). It is imported when it is first needed, and only then takes its 58 MB of memory and
0.2 s; a daemon whose voices speak Chinese themselves never loads it. Text thread. Neighbours: `reading`
romanises the Chinese parts of a text for a voice without Chinese; `mandarin` and `spelling` make the letters.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

from edged.errors import MissingExtra
from edged.text.phonemes import mandarin, spelling

HAN = re.compile("[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff〇]+")


def pinyin_of(text: str) -> list[str]:
    """A syllable in the common form (hang2) for each Han character of the text, in its order.

    "" for a character that no dictionary knows. Raises `MissingExtra` without the package.
    """
    return [syllable for han in HAN.findall(text) for syllable in _reader()(han)]


def romanize(text: str) -> str:
    """The text with each Han character as one word of English letters, without tones: 你好 is "nee how".

    All else stays as it is, as does a character that no dictionary knows. Raises `MissingExtra`.
    """

    def letters(match: re.Match[str]) -> str:
        han = match.group()
        words = [word_of(syllable) or c for c, syllable in zip(han, _reader()(han), strict=True)]
        before, after = text[max(0, match.start() - 1) : match.start()], text[match.end() : match.end() + 1]
        return " " * before.isalnum() + " ".join(words) + " " * after.isalnum()

    return HAN.sub(letters, text)


@cache
def word_of(syllable: str) -> str:
    """A syllable in English letters, "" for none. Some 2,000 exist."""
    return spelling.respelled(mandarin.american(syllable))


@cache
def _reader() -> Callable[[str], list[str]]:
    """Reads a run of Han characters: a syllable for each."""
    try:
        import pypinyin
    except ImportError as error:
        raise MissingExtra("pypinyin", "chattts", "romanised Chinese") from error

    def read(han: str) -> list[str]:
        syllables = pypinyin.lazy_pinyin(
            han,
            style=pypinyin.Style.TONE3,
            neutral_tone_with_five=True,
            v_to_u=False,
            errors=_nothing,
        )
        return [str(syllable) for syllable in syllables]

    return read


def _nothing(unknown: str) -> Any:
    """For characters that the package does not know; its types do not say that it takes lists."""
    return [""] * len(unknown)
