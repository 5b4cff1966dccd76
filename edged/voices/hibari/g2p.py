"""The package's grapheme-to-phoneme rules over our tables and engine. Text thread only.

The rules are hibari's; what differs is where the words come from (`tables.py` instead of JSON in memory),
that the reader of unknown words is loaded at start with its buffers in the arena, and that text is plain
text: the package's inline phoneme markup would let a message change how it is spoken.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from itertools import groupby
from typing import Any

from hibari.g2p import G2P
from hibari.g2p.lexicon import Lexicon
from hibari.g2p.tagger import Tagger
from hibari.g2p.tokenize import Tokenizer

from edged import settings
from edged.bundle import Bundle
from edged.engine import select
from edged.engine.buffers import Arena
from edged.voices.hibari.tables import Tables

REMEMBERED = 2_048  # words; a text that repeats one costs the network once


class WordReader:
    """Phonemes of a word that is in no dictionary, by a small network.

    The network answers with `slots` symbols a letter; runs of one symbol count once, 0 is none.
    """

    def __init__(self, bundle: Bundle, arena: Arena, alphabet: Mapping[str, Any]) -> None:
        entry = bundle.engine("oov")
        self._engine = select.load(
            bundle.path / entry.file,
            bundle.manifest.backend,
            [tensor.spec() for tensor in entry.inputs],
            [tensor.spec() for tensor in entry.outputs],
            arena,
            settings.Engine(threads=1),  # a word is too little work for two
            name=f"{bundle.manifest.name}.oov",
        )
        self._letters = {letter: number for number, letter in enumerate(alphabet["in"], 1)}
        self._phonemes = ["", *alphabet["out"]]
        self._slots = int(alphabet["slots"])
        self._longest = self._engine.inputs["chars"].shape[1]
        self._remembered = lru_cache(maxsize=REMEMBERED)(self._read)

    def __call__(self, word: str) -> str | None:
        """None for a word without a letter that the network knows."""
        return self._remembered(word[: self._longest])

    def _read(self, word: str) -> str | None:
        numbers = [self._letters[c] for c in word if c in self._letters]
        if not numbers:
            return None
        self._engine.bind("chars", (1, len(numbers)))[0] = numbers
        answer = self._engine.bind("ids", (1, len(numbers) * self._slots))
        self._engine.run()
        return "".join(self._phonemes[number] for number, _ in groupby(answer[0].tolist()))

    def close(self) -> None:
        self._engine.close()


class TableTagger(Tagger):  # type: ignore[misc]  # the package has no types
    """The package's tagger over tables."""

    def __init__(self, tables: Tables) -> None:
        self.tags = tables.tags
        self.tagdict = tables.tag
        self.vocab = tables.frequent
        self.weights = tables.weight


class PlainG2P(G2P):  # type: ignore[misc]  # the package has no types
    """The package's G2P without its dictionaries and without its markup."""

    def __init__(self, tables: Tables, reader: WordReader) -> None:
        # Not super().__init__(): it parses 3 MB of JSON into some 100 MB of objects.
        self.lexicon = Lexicon(tables.gold, tables.silver)
        self.tokenizer = Tokenizer(tables.special_tokens)
        self.tagger = TableTagger(tables)
        self.unk = ""
        self.british = False
        self._oov = reader

    def tokenize(self, text: str) -> list[Any]:
        """Every character is text."""
        tokens: list[Any] = self._tokens(text)
        return tokens
