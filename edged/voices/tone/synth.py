"""Tone symbols to samples: one run of the network for up to `max_batch` utterances. Engine thread only.

The network takes, per frame of 10 ms, which symbol sounds and how far into it the frame begins; it
returns the samples. Its output stays in the arena: a `Piece` is a view of its utterance's row. Rows are as
long as the longest of the batch, so those of one call should be about as long as each other (`bucket`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from edged import settings
from edged.bundle import Bundle
from edged.engine import select
from edged.engine.api import TensorSpec
from edged.engine.buffers import Arena
from edged.errors import BundleManifestInvalid
from edged.job import Params, Utterance
from edged.manifest import Tensor
from edged.voices.api import Piece, Stream

FRAMES_A_SYMBOL = 8  # 80 ms a character at speed 1, about the pace of speech
MIN_SPEED, MAX_SPEED = 0.5, 2.0
# Rows are padded to a multiple of that many frames: then a row's samples begin where the widest vector of a
# processor does, every sample is computed by the same instructions in any row, and the sound is the same.
ALIGNED_FRAMES = 16


def frames_a_symbol(speed: float) -> int:
    return max(1, round(FRAMES_A_SYMBOL / min(MAX_SPEED, max(MIN_SPEED, speed))))


@dataclass(frozen=True, slots=True)
class ToneStream:
    """An utterance waiting for its one step."""

    utterance: Utterance
    speed: float


class ToneSynthesizer:
    """Implements `Synthesizer`; finishes an utterance in one step."""

    def __init__(self, bundle: Bundle, config: settings.Engine, arena: Arena) -> None:
        entry = bundle.engine("tone")
        rows = self.max_batch = min(config.batch, bundle.limit("max_batch"))

        def specs(tensors: Sequence[Tensor]) -> list[TensorSpec]:
            return [replace(t.spec(), shape=(rows, *t.shape[1:])) for t in tensors]

        self._engine = select.load(
            bundle.path / entry.file,
            bundle.manifest.backend,
            specs(entry.inputs),
            specs(entry.outputs),
            arena,
            config,
            name=f"{bundle.manifest.name}.tone",
        )
        self._max_symbols = bundle.limit("max_symbols")
        most = self._max_frames = bundle.limit("max_frames")
        if self._max_symbols * frames_a_symbol(MIN_SPEED) > most:
            raise BundleManifestInvalid(
                f"{bundle.path}: max_symbols {self._max_symbols} needs more than {most} frames"
            )
        self._hop = self._engine.outputs["samples"].shape[2]  # samples a frame
        # Frame numbers, as whole and as real numbers: a ufunc that must cast would allocate.
        frames = self._engine.inputs["index"].shape[1:]
        self._whole = arena.array("ramp_int", frames, "int64", bundle.manifest.name)
        self._real = arena.array("ramp_float", frames, "float32", bundle.manifest.name)
        self._whole[:] = self._real[:] = np.arange(frames[0])

    def bucket(self, utterance: Utterance, params: Params) -> int:
        """Those of a class differ by less than a factor of two: at most half of a row is padding."""
        return (len(utterance.symbols) * frames_a_symbol(params.speed)).bit_length()

    def open(self, utterance: Utterance, params: Params) -> Stream:
        return ToneStream(utterance, params.speed)

    def step(self, streams: Sequence[Stream]) -> Sequence[Piece]:
        return self._speak([stream for stream in streams if isinstance(stream, ToneStream)])

    def close(self, stream: Stream) -> None:
        pass  # a stream holds nothing

    def shut(self) -> None:
        self._engine.close()

    def warm_up(self) -> None:
        """The largest shape at each end of the speed range, then a short one."""
        for count, speed in ((self._max_symbols, MIN_SPEED), (self._max_symbols, MAX_SPEED), (3, 1.0)):
            self._speak([ToneStream(Utterance(0, (1,) * count), speed)] * self.max_batch)

    def _speak(self, streams: Sequence[ToneStream]) -> list[Piece]:
        engine, rows = self._engine, len(streams)
        each = [frames_a_symbol(stream.speed) for stream in streams]
        lengths = [len(s.utterance.symbols) * n for s, n in zip(streams, each, strict=True)]
        frames = min(self._max_frames, -(-max(lengths) // ALIGNED_FRAMES) * ALIGNED_FRAMES)
        symbols = engine.bind("symbols", (rows, max(len(s.utterance.symbols) for s in streams)))
        index = engine.bind("index", (rows, frames))
        offset = engine.bind("offset", (rows, frames))
        span = engine.bind("span", (rows, 1, 1))
        for row, (stream, n, length) in enumerate(zip(streams, each, lengths, strict=True)):
            count = len(stream.utterance.symbols)
            symbols[row, :count] = stream.utterance.symbols
            symbols[row, count:] = 0
            np.floor_divide(self._whole[:length], n, out=index[row, :length])
            index[row, length:] = 0
            np.remainder(self._real[:frames], np.float32(n), out=offset[row])
            span[row] = n
        samples = engine.bind("samples", (rows, frames, self._hop))
        engine.run()
        return [Piece(samples[row, :length].reshape(-1), last=True) for row, length in enumerate(lengths)]
