"""Tone symbols to samples: one run of the network per utterance. Engine thread only.

The network takes, per frame of 10 ms, which symbol sounds and how far into it the frame begins; it
returns the samples. Its output stays in the arena: a `Piece` is a view of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from edged import settings
from edged.bundle import Bundle
from edged.engine import select
from edged.engine.buffers import Arena
from edged.errors import BundleManifestInvalid
from edged.job import Params, Utterance
from edged.voices.api import Piece, Stream

FRAMES_A_SYMBOL = 8  # 80 ms a character at speed 1, about the pace of speech
MIN_SPEED, MAX_SPEED = 0.5, 2.0


def frames_a_symbol(speed: float) -> int:
    return max(1, round(FRAMES_A_SYMBOL / min(MAX_SPEED, max(MIN_SPEED, speed))))


@dataclass(frozen=True, slots=True)
class ToneStream:
    """An utterance waiting for its one step."""

    utterance: Utterance
    speed: float


class ToneSynthesizer:
    """Implements `Synthesizer`; finishes an utterance in one step."""

    max_batch = 1

    def __init__(self, bundle: Bundle, config: settings.Engine, arena: Arena) -> None:
        entry = bundle.engine("tone")
        self._engine = select.load(
            bundle.path / entry.file,
            bundle.manifest.backend,
            [tensor.spec() for tensor in entry.inputs],
            [tensor.spec() for tensor in entry.outputs],
            arena,
            config,
            name=f"{bundle.manifest.name}.tone",
        )
        self._max_symbols, most = bundle.limit("max_symbols"), bundle.limit("max_frames")
        if self._max_symbols * frames_a_symbol(MIN_SPEED) > most:
            raise BundleManifestInvalid(
                f"{bundle.path}: max_symbols {self._max_symbols} needs more than {most} frames"
            )
        self._hop = self._engine.outputs["samples"].shape[1]  # samples a frame
        # Frame numbers, as whole and as real numbers: a ufunc that must cast would allocate.
        frames = self._engine.inputs["index"].shape
        self._whole = arena.array("ramp_int", frames, "int64", bundle.manifest.name)
        self._real = arena.array("ramp_float", frames, "float32", bundle.manifest.name)
        self._whole[:] = self._real[:] = np.arange(frames[0])

    def open(self, utterance: Utterance, params: Params) -> Stream:
        return ToneStream(utterance, params.speed)

    def step(self, streams: Sequence[Stream]) -> Sequence[Piece]:
        return [self._speak(stream) for stream in streams if isinstance(stream, ToneStream)]

    def close(self, stream: Stream) -> None:
        pass  # a stream holds nothing

    def shut(self) -> None:
        self._engine.close()

    def warm_up(self) -> None:
        """The largest shape at each end of the speed range, then a short one."""
        for count, speed in ((self._max_symbols, MIN_SPEED), (self._max_symbols, MAX_SPEED), (3, 1.0)):
            self._speak(ToneStream(Utterance(0, (1,) * count), speed))

    def _speak(self, stream: ToneStream) -> Piece:
        symbols = stream.utterance.symbols
        each = frames_a_symbol(stream.speed)
        frames = len(symbols) * each
        engine = self._engine
        engine.bind("symbols", (len(symbols),))[:] = symbols
        index = engine.bind("index", (frames,))
        np.floor_divide(self._whole[:frames], each, out=index)
        offset = engine.bind("offset", (frames,))
        np.remainder(self._real[:frames], np.float32(each), out=offset)
        engine.bind("span", (1,))[0] = each
        samples = engine.bind("samples", (frames, self._hop))
        engine.run()
        return Piece(samples.reshape(-1), last=True)
