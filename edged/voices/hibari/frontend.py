"""English text to utterances of phoneme symbols, lazily. Text thread only.

Figures, units, codes and signs are put into words first (`edged.text.english`): the package's own rules
for them know fewer. A text is cut each time only as far as needed: into paragraphs, blocks that are read at
once, sentences (as the package does), pieces of bounded length before the G2P, and pieces that fit the
synthesizer's shapes after it.
Every loop is bounded by the length of the text, whatever the text is.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from hibari.tts import Hibari

from edged.errors import EdgedError
from edged.job import Params, Utterance
from edged.log import event as log_event
from edged.text.english import English
from edged.text.span import Options, apply
from edged.voices.hibari.synth import MAX_SPEED, MIN_SPEED

log = logging.getLogger(__name__)

PARAGRAPH_PAUSE_S = 0.3
BLOCK_CHARS = 2_000  # put into words at once: some 30 ms of work where it is all figures
PIECE_CHARS = 600  # of a sentence given to the G2P at once: 10 ms of work
RUN_CHARS = 48  # without a space: the longest dictionary word has 45 letters
RUN_PARTS = 10  # words, numbers and marks in a run; the G2P's work grows with their cube
# Frames of 12.5 ms at speed 1, measured: 4.7-4.9 a symbol, and 50 around the sentence. The margin covers
# slow passages; what still does not fit is spoken a little faster, with a warning.
FRAMES_A_SYMBOL = 5.2
FRAMES_AROUND = 64
PADS = 2  # the silent symbols at both ends

_PARAGRAPH = re.compile(r"\n\s*\n")
_BLANKS = re.compile(r"[^\S\n]+")
_LONG_RUN = re.compile(rf"\S{{{RUN_CHARS + 1},}}")
_LETTER_A = re.compile(r"(?<![\w'])A(?!\w)")  # the package says it as the article; eh has the letter's sound
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

    def __init__(
        self,
        g2p: Callable[[str], str],
        symbols: Mapping[str, int],
        *,
        max_symbols: int,
        max_frames: int,
        max_letters: int,
    ) -> None:
        self._g2p = g2p
        self._english = English()
        self._options = Options()
        self._symbols = symbols
        self._max_symbols = max_symbols
        self._max_frames = max_frames
        self._long_word = re.compile(rf"[^\W\d_]{{{max_letters + 1},}}")
        self._max_letters = max_letters

    def limit(self, speed: float) -> int:
        """Most phonemes of an utterance at this speed."""
        pace = min(MAX_SPEED, max(MIN_SPEED, speed))
        fitting = int((self._max_frames - FRAMES_AROUND) * pace / FRAMES_A_SYMBOL)
        return max(1, min(self._max_symbols, fitting) - PADS)

    def utterances(self, text: str, params: Params) -> Iterator[Utterance]:
        limit = self.limit(params.speed)
        held: Utterance | None = None  # the last of a paragraph, until it is known whether one follows
        index = 0
        for paragraph in _PARAGRAPH.split(_BLANKS.sub(" ", text)):
            for symbols, more in _with_more(self._symbols_of(paragraph, limit)):
                if held is not None:
                    yield held
                    held = None
                utterance = Utterance(index, symbols, 0.0 if more else PARAGRAPH_PAUSE_S / params.speed)
                index += 1
                if more:
                    yield utterance
                else:
                    held = utterance
        if held is not None:
            yield Utterance(held.index, held.symbols)

    def _symbols_of(self, paragraph: str, limit: int) -> Iterator[tuple[int, ...]]:
        for sentence in self._sentences(paragraph):
            for piece in pieces(self._tame(sentence), PIECE_CHARS):
                for phonemes in pieces(self._read(piece), limit):
                    numbers = tuple(self._symbols[c] for c in phonemes if c in self._symbols)
                    if any(c.isalpha() for c in phonemes):  # marks alone have no sound
                        yield (0, *numbers, 0)

    def in_words(self, text: str) -> str:
        """A text without figures, codes and signs, as the package reads it best."""
        spans = self._english.spans(text, self._options)
        return apply(text, [replace(span, spoken=_LETTER_A.sub("eh", span.spoken)) for span in spans])

    def _sentences(self, paragraph: str) -> Iterator[str]:
        """Sentences in words."""
        for block in pieces(paragraph, BLOCK_CHARS):
            yield from Hibari.split_sentences(self.in_words(block))

    def _tame(self, sentence: str) -> str:
        """Puts spaces into runs that the G2P cannot take whole."""
        sentence = self._long_word.sub(
            lambda match: " ".join(pieces(match.group(), self._max_letters)), sentence
        )
        sentence = _LONG_RUN.sub(
            lambda match: " ".join(pieces(match.group(), RUN_CHARS, _INNER_BREAK)), sentence
        )
        return _RUN.sub(_few_parts, sentence)

    def _read(self, piece: str) -> str:
        """Phonemes of a piece; a word that makes the G2P fail is left out, the rest is spoken."""
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
        return " ".join(read)


def _few_parts(match: re.Match[str]) -> str:
    parts = _PART.findall(match.group())
    return " ".join("".join(parts[i : i + RUN_PARTS]) for i in range(0, len(parts), RUN_PARTS))


def _with_more(items: Iterator[tuple[int, ...]]) -> Iterator[tuple[tuple[int, ...], bool]]:
    """Each item with whether another one follows; the first is not delayed by more than the second."""
    previous: tuple[int, ...] | None = None
    for item in items:
        if previous is not None:
            yield previous, True
        previous = item
    if previous is not None:
        yield previous, False
