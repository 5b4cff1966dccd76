"""English words to utterances of phoneme symbols. Text thread only.

A sentence goes to the G2P in pieces of bounded length; what is to sound as a client said goes by it.
Every loop is bounded by the length of the text, whatever the text is. Neighbours: `edged.text.prepare` calls
it, `g2p.py` reads the words, `synth.py` speaks.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby

from edged.errors import EdgedError
from edged.job import Params, Utterance
from edged.log import event as log_event
from edged.text.document import Alphabet, Encoded, Said
from edged.text.phonemes.respell import american
from edged.text.shown import letters
from edged.text.split import Pauses, breaks
from edged.voices.hibari.letters import english
from edged.voices.hibari.synth import MAX_SPEED, MIN_SPEED

log = logging.getLogger(__name__)

PIECE_CHARS = 600  # of a sentence given to the G2P at once: 10 ms of work
RUN_CHARS = 48  # without a space: the longest dictionary word has 45 letters
RUN_PARTS = 10  # words, numbers and marks in a run; the G2P's work grows with their cube
# Frames of 12.5 ms at speed 1, measured: 4.7-4.9 a symbol, and 50 around the sentence. The margin covers
# slow passages; what still does not fit is spoken a little faster, with a warning.
FRAMES_A_SYMBOL = 5.2
FRAMES_AROUND = 64
PADS = 2  # the silent symbols at both ends

_BLANKS = re.compile(r"\s+")
_LONG_RUN = re.compile(rf"\S{{{RUN_CHARS + 1},}}")
_LETTER_A = re.compile(r"(?<![\w'])A(?!\w)")  # the package says it as the article; eh has the letter's sound
_SPOKEN_A = "\ua4ee"  # stands for one, as a letter that no text has, until the package sees it
_CLAUSE_END = re.compile(r"[,;:.!?…—–](?=\s)")
_RUN = re.compile(rf"\S{{{RUN_PARTS + 1},}}")
_PART = re.compile(r"[^\W\d_a-zß-öø-ÿ]*[a-zß-öø-ÿ]+|[^\W\d_]+|\d+|\S")
_INNER_BREAK = re.compile(r"[\W_]")


def pieces(text: str, limit: int, run_break: re.Pattern[str] | None = None) -> Iterator[str]:
    """Cuts text into pieces of at most `limit` characters: after a clause, else at a space, else anywhere.

    A cut in the first third of a piece is not taken: it would leave scraps.
    """
    start = 0
    while len(text) - start > limit:
        least = start + max(1, limit // 3)
        end = _last(_CLAUSE_END, text, least, start + limit)
        if end < 0:
            space = text.rfind(" ", least, start + limit + 1)
            end = space if space >= 0 else -1
        if end < 0 and run_break is not None:
            end = _last(run_break, text, least, start + limit)
        if end < 0:
            end = start + limit
        piece = text[start:end].strip()
        if piece:
            yield piece
        start = end
    rest = text[start:].strip()
    if rest:
        yield rest


def _last(pattern: re.Pattern[str], text: str, begin: int, end: int) -> int:
    """End of the last match within text[begin:end], or -1. One character more is seen for lookaheads."""
    found = -1
    for match in pattern.finditer(text, begin, min(len(text), end + 1)):
        if match.end() <= end:
            found = match.end()
    return found


class HibariFrontend:
    """Implements `Frontend`."""

    alphabets: frozenset[Alphabet] = frozenset({"ipa", "pinyin"})
    tags: frozenset[str] = frozenset()
    pauses = Pauses()

    def __init__(
        self,
        g2p: Callable[[str], str],
        symbols: Mapping[str, int],
        *,
        max_symbols: int,
        max_frames: int,
        max_letters: int,
        languages: tuple[str, ...] = ("en",),
    ) -> None:
        self.languages = languages
        self._g2p = g2p
        self._symbols = symbols
        self._silent = frozenset(n for c, n in symbols.items() if not c.isalpha())  # marks have no sound
        self._max_symbols = max_symbols
        self._max_frames = max_frames
        self._long_word = re.compile(rf"[^\W\d_]{{{max_letters + 1},}}")
        self._max_letters = max_letters

    def limit(self, params: Params) -> int:
        """Most phonemes of an utterance at this speed."""
        pace = min(MAX_SPEED, max(MIN_SPEED, params.speed))
        fitting = int((self._max_frames - FRAMES_AROUND) * pace / FRAMES_A_SYMBOL)
        return max(1, min(self._max_symbols, fitting) - PADS)

    def encode(self, said: Sequence[Said]) -> Encoded:
        """Words beside each other are read together: how one sounds depends on its neighbours."""
        read: list[str] = []
        seen: list[int] = []
        exact = True  # words and what is heard of them are one for one
        lost: list[str] = []
        before = 0
        for sounding, parts in groupby(said, key=lambda part: part.phonemes):
            if sounding is not None:
                heard = [("".join(part.text for part in parts), american(sounding))]
            else:
                plain = [(part, english(part.text, lost)) for part in parts]
                exact = exact and all(len(part.text) == len(text) for part, text in plain)
                text = "".join(_LETTER_A.sub(_SPOKEN_A, text) if part.read else text for part, text in plain)
                tame = self._tame(_BLANKS.sub(" ", text).strip())
                heard = [(piece, self._read(piece, lost)) for piece in pieces(tame, PIECE_CHARS)]
            for piece, phonemes in heard:
                if phonemes:
                    read.append(phonemes)
                    words, sounds = [piece], [phonemes]
                    if sounding is None:
                        words, sounds = piece.split(" "), phonemes.split(" ")
                    exact = exact and len(words) == len(sounds)
                    seen += _progress(words, sounds, before)
                before += letters(piece)[-1]
        phonemes = " ".join(read)
        places = breaks(phonemes)
        known = [place for place, symbol in enumerate(phonemes) if symbol in self._symbols]
        return Encoded(
            tuple(self._symbols[phonemes[place]] for place in known),
            tuple(places[place] for place in known),
            tuple(lost),
            tuple(seen[place] for place in known) if exact else (),
        )

    def utterance(self, index: int, ids: Sequence[int], params: Params) -> Utterance | None:
        if self._silent.issuperset(ids):
            return None
        return Utterance(index, (0, *ids, 0))

    def _tame(self, sentence: str) -> str:
        """Puts spaces into runs that the G2P cannot take whole."""
        sentence = self._long_word.sub(
            lambda match: " ".join(pieces(match.group(), self._max_letters)), sentence
        )
        sentence = _LONG_RUN.sub(
            lambda match: " ".join(pieces(match.group(), RUN_CHARS, _INNER_BREAK)), sentence
        )
        return _RUN.sub(_few_parts, sentence)

    def _read(self, piece: str, lost: list[str]) -> str:
        """Phonemes of a piece. A word that makes the G2P fail is left out, the rest is spoken. lost: gets
        the characters of such a word."""
        piece = piece.replace(_SPOKEN_A, "eh")
        try:
            return self._g2p(piece)
        except EdgedError:
            raise
        except Exception:
            text = "the G2P failed on a sentence: reading it word by word"
            log_event(log, logging.WARNING, text, code="unreadable_word", phase="text")
        read = []
        for word in piece.split():
            try:
                read.append(self._g2p(word))
            except EdgedError:
                raise
            except Exception:
                text = "the G2P failed on a word: left out"
                log_event(log, logging.WARNING, text, code="unreadable_word", phase="text")
                lost += word
        return " ".join(read)


def _progress(words: Sequence[str], sounds: Sequence[str], before: int) -> list[int]:
    """The letters up to each symbol, and up to the blank behind each word."""
    made: list[int] = []
    for word, sound in zip(words, sounds, strict=False):
        size = letters(word)[-1]
        made += (before + size * place // len(sound) for place in range(1, len(sound) + 1))
        before += size
        made.append(before)
    return made


def _few_parts(match: re.Match[str]) -> str:
    parts = _PART.findall(match.group())
    return " ".join("".join(parts[i : i + RUN_PARTS]) for i in range(0, len(parts), RUN_PARTS))
