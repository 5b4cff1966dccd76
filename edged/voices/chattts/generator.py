"""The decoder network over a few rows: prompts go in piece by piece, codes come out step by step.

Engine thread only. Each row is one utterance with its own length, noise and sampling; its keys and values
stay in one buffer per layer, [rows, heads, positions, 64], which the network updates in place. A run covers
a range of rows, bound by address, so that nothing is gathered or copied. Neighbours: `synth.py` decides
which rows run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edged.engine.api import SETTLED, Engine
from edged.voices.chattts.data import Sampling

HISTORY = 16  # codes of a codebook that the repetition penalty looks back on
_SHARED = ("ids", "text", "refine")  # inputs that are not one row of a table


class Generator:
    """Rows of the network. `lengths[row]` counts the tokens a row has in the cache."""

    def __init__(self, engine: Engine, piece: int) -> None:
        """piece: tokens of a prompt that one run may take."""
        self.engine = engine
        self.piece = piece
        self._caches = [n for n in engine.inputs if n.startswith("past_")]
        self.rows, _, self.positions, _ = engine.inputs[self._caches[0]].shape
        self.codebooks = engine.inputs["ids"].shape[2]
        self.hidden_size = engine.outputs["hidden"].shape[1]
        specs = {**engine.inputs, **engine.outputs}
        full = {name: engine.bind(name, spec.shape) for name, spec in specs.items()}
        self._tables = {name: spec.shape[1:] for name, spec in specs.items() if name not in _SHARED}
        self.caches = [full[name] for name in self._caches]  # empty where they are resident
        self._full = full
        self._last_index = full["last"]
        self._seqlens = full["lengths"]
        self.codes: NDArray[np.int64] = full["codes"]
        self.ended: NDArray[np.int64] = full["end"]
        self.hidden: NDArray[np.float32] = full["hidden"]
        self.lengths: NDArray[np.int32] = np.zeros(self.rows, np.int32)
        self._latest: NDArray[np.int64] = np.zeros((self.rows, self.codebooks), np.int64)
        full["refine"][:] = False
        for name in ("speaker", "uniform", "ban_end", "greedy"):
            full[name][:] = 0
        for name in ("temperature", "top_p", "top_k", "penalty"):
            full[name][:] = 1
        full["history"][:] = -1
        self._spared: NDArray[np.int64] = full["history"].copy()
        self._placed = (-1, 0, 0)

    def seat(self, row: int, speaker: NDArray[np.float32], sampling: Sampling) -> None:
        """Makes a row ready for a new utterance."""
        full = self._full
        full["speaker"][row] = speaker
        full["temperature"][row] = sampling.temperature
        full["top_p"][row] = sampling.top_p
        full["top_k"][row] = sampling.top_k
        full["penalty"][row] = sampling.penalty
        full["greedy"][row] = 0
        full["history"][row] = -1
        self._latest[row] = 0
        self.lengths[row] = 0

    def move(self, source: int, target: int) -> None:
        """Moves an utterance to another row, so that the rows in use stay together."""
        length = int(self.lengths[source])
        for name in self._caches:
            self.engine.move(name, source, target, length)
        for name in ("speaker", "temperature", "top_p", "top_k", "penalty", "greedy", "history"):
            self._full[name][target] = self._full[name][source]
        self._latest[target] = self._latest[source]
        self.lengths[target] = length

    def draw(self, row: int, noise: np.random.Generator, ban_end: bool) -> None:
        """The noise of a row's next draw; `ban_end` makes an ending impossible."""
        noise.random(out=self._full["uniform"][row], dtype=np.float32)
        self._full["ban_end"][row] = ban_end

    def prompt(self, row: int, ids: NDArray[np.int64], text: NDArray[np.int64], refine: bool = False) -> int:
        """Reads the next tokens of a prompt [n, codebooks]; how many it took. The result of the run counts
        when they were the last ones. refine: words are drawn behind it, not codes."""
        self._full["refine"][0] = refine
        count = min(self.piece, len(ids))
        self._place(row, 1, count)
        self._full_view("ids", (1, count, self.codebooks))[0] = ids[:count]
        self._full_view("text", (1, count))[0] = text[:count]
        self._last_index[row] = count - 1
        self._run(row, row + 1, count)
        self.lengths[row] += count
        return count

    def step(self, low: int, high: int) -> None:
        """One code for each row in low..high - 1. Rows that should not advance are run for nothing: they
        write where their next token will overwrite. On a device that are those before `low` as well: a run
        that begins at row 0 is one of few kinds, which were all prepared in the warm-up."""
        self._step(self._first(low), high, refine=False)

    def refine(self, low: int, high: int) -> None:
        """One word for each row in low..high - 1, as `step` does. Nothing is penalised: the history of rows
        that speak holds codes, which the text's vocabulary need not have."""
        low, history, spared = self._first(low), self._full["history"], self._spared
        spared[low:high] = history[low:high]
        history[low:high] = -1
        self._step(low, high, refine=True)
        history[low:high] = spared[low:high]

    def _first(self, low: int) -> int:
        return 0 if self.engine.resident else low

    def _step(self, low: int, high: int, refine: bool) -> None:
        count = high - low
        self._full["refine"][0] = refine
        self._place(low, count, 1)
        self._full_view("ids", (count, 1, self.codebooks))[:, 0] = self._latest[low:high]
        self._full_view("text", (count, 1))[:] = refine
        self._last_index[low:high] = 0
        self._run(low, high, 1)

    def accept(self, row: int, step: int, fed: bool) -> None:
        """Takes the codes just drawn as the row's next token. fed: a token was fed to draw them."""
        self.lengths[row] += fed
        self._latest[row] = self.codes[row]
        self._full["history"][row, step % HISTORY] = self.codes[row]

    def accept_word(self, row: int, fed: bool) -> None:
        """The same for a word."""
        self.lengths[row] += fed
        self._latest[row] = self.codes[row]

    def warm_up(self) -> None:
        """The longest piece of a prompt and a step of every row, of codes and of words, at the end of the
        cache. Every other run fits into the workspace that these leave. On a device also steps of fewer rows,
        until they are settled."""
        ids = np.zeros((self.piece, self.codebooks), np.int64)
        self._full["top_k"][:] = 1000  # the most that a request may ask for
        self.lengths[0] = self.positions - self.piece
        self.prompt(0, ids, np.ones(self.piece, np.int64))
        self.lengths[:] = self.positions - 1
        self.refine(0, self.rows)
        self.step(0, self.rows)
        for count in range(1, self.rows + 1) if self.engine.resident else ():
            for _ in range(SETTLED):
                self.step(0, count)
        self.lengths[:] = 0
        self.step(0, 1)
        self._full["top_k"][:] = 1

    def close(self) -> None:
        self.engine.close()

    def _run(self, low: int, high: int, count: int) -> None:
        np.add(self.lengths[low:high], count - 1, out=self._seqlens[low:high], casting="unsafe")
        self.engine.run()

    def _place(self, low: int, count: int, tokens: int) -> None:
        if (low, count, tokens) == self._placed:
            return
        for name, rest in self._tables.items():
            self.engine.bind(name, (count, *rest), low)
        self._placed = (low, count, tokens)

    def _full_view(self, name: str, shape: tuple[int, ...]) -> NDArray[Any]:
        return self.engine.bind(name, shape)


def prompt_rows(
    symbols: Sequence[int], codes: NDArray[np.int64], codebooks: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Network inputs (ids [n, codebooks], text [n]) of a text prompt and the codes of a recording."""
    count = len(symbols)
    ids = np.empty((count + len(codes), codebooks), np.int64)
    ids[:count] = np.asarray(symbols, np.int64)[:, None]
    ids[count:] = codes
    text = np.zeros(len(ids), np.int64)
    text[:count] = 1
    return ids, text
