"""Phoneme symbols to samples: encoder, length regulator, decoder, vocoder. Engine thread only.

One utterance is one step. The encoder tells how long each symbol lasts, in steps of 25 ms; the decoder
answers with two frames a step. All shapes are known before each run, so inputs and outputs stay in the
arena; the samples of a `Piece` are a view of the vocoder's output.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edged import settings
from edged.bundle import Bundle
from edged.engine import select
from edged.engine.api import Engine
from edged.engine.buffers import Arena
from edged.job import Params, Utterance
from edged.voices.api import Piece, Stream
from edged.voices.hibari.dsp import BINS, Vocoder

MIN_SPEED, MAX_SPEED = 0.5, 2.0
FRAMES_A_STEP = 2
COMPRESSED = "a sentence was too long at this speed and is spoken faster"


@dataclass(frozen=True, slots=True)
class HibariStream:
    """An utterance waiting for its one step."""

    utterance: Utterance
    speed: float
    seed: int


class HibariSynthesizer:
    """Implements `Synthesizer`.

    One utterance a call: the networks take one row, have no mask for padding, and quantize activations by
    their range over the whole tensor, so a row would sound different beside others. Little is lost: a call's
    time goes with the audio (5 ms a second on 2 cores), of which some 4 ms a call at most could be shared.
    """

    max_batch = 1

    def __init__(self, bundle: Bundle, config: settings.Engine, arena: Arena) -> None:
        def engine(name: str) -> Engine:
            entry = bundle.engine(name)
            return select.load(
                bundle.path / entry.file,
                bundle.manifest.backend,
                [tensor.spec() for tensor in entry.inputs],
                [tensor.spec() for tensor in entry.outputs],
                arena,
                config,
                name=f"{bundle.manifest.name}.{name}",
            )

        self._encoder, self._decoder = engine("encoder"), engine("decoder")
        self._max_symbols = bundle.limit("max_symbols")
        self._max_steps = bundle.limit("max_frames") // FRAMES_A_STEP
        self._widths = {name: self._encoder.outputs[name].shape[1] for name in ("text", "prosody")}
        self._numbers = np.arange(self._max_symbols)
        self._vocoder = Vocoder(arena, bundle.manifest.name, bundle.limit("max_frames"))

    def bucket(self, utterance: Utterance, params: Params) -> int:
        return 0  # one at a time

    def open(self, utterance: Utterance, params: Params) -> Stream:
        return HibariStream(utterance, params.speed, params.seed)

    def step(self, streams: Sequence[Stream]) -> Sequence[Piece]:
        return [self._speak(stream) for stream in streams if isinstance(stream, HibariStream)]

    def close(self, stream: Stream) -> None:
        pass  # a stream holds nothing

    def shut(self) -> None:
        self._encoder.close()
        self._decoder.close()

    def warm_up(self) -> None:
        """The largest shapes first, so that the runtime's workspace is cut from one piece; then a sentence.

        More shapes would lengthen the start and change nothing: smaller ones fit the same workspace.
        """
        longest = (0, *[1] * (self._max_symbols - 2), 0)
        self._decode(self._encode(longest, 1.0), fill=True)
        self._speak(HibariStream(Utterance(0, longest[:40]), 1.0, 0))

    def _speak(self, stream: HibariStream) -> Piece:
        durations = self._encode(stream.utterance.symbols, stream.speed)
        spectra, f0, warning = self._decode(durations)
        # One generator an utterance: no job and no earlier sentence can change how this one sounds.
        noise = np.random.Generator(np.random.PCG64((stream.seed, stream.utterance.index)))
        return Piece(self._vocoder.synthesize(spectra, f0, noise), last=True, warning=warning)

    def _encode(self, symbols: tuple[int, ...], speed: float) -> NDArray[Any]:
        """Fills the decoder's features and returns the steps each symbol lasts."""
        count = len(symbols)
        encoder, decoder = self._encoder, self._decoder
        encoder.bind("ids", (1, count))[0] = symbols
        encoder.bind("speed", (1,))[0] = min(MAX_SPEED, max(MIN_SPEED, speed))
        durations = encoder.bind("durations", (count,))
        features = {name: encoder.bind(name, (1, width, count)) for name, width in self._widths.items()}
        encoder.run()
        for name, feature in features.items():
            np.copyto(decoder.bind(name, feature.shape), feature)
        return durations

    def _decode(
        self, durations: NDArray[Any], fill: bool = False
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], str]:
        """Spectra [F, 5 x 601], pitch [F] and a warning. `fill` stretches to the longest utterance."""
        warning = ""
        if fill:
            durations[0] += self._max_steps - int(durations.sum())
        if int(durations.sum()) > self._max_steps:
            compress(durations, self._max_steps)
            warning = COMPRESSED
        steps = int(durations.sum())
        frames = steps * FRAMES_A_STEP
        decoder = self._decoder
        index = decoder.bind("index", (steps,))
        index[:] = np.repeat(self._numbers[: len(durations)], durations)
        spectra = decoder.bind("spectra", (1, frames, 5 * BINS))
        f0 = decoder.bind("f0", (1, frames))
        decoder.run()
        return spectra[0], f0[0], warning


def compress(durations: NDArray[Any], most: int) -> None:
    """Shortens all durations alike, in place, until they sum to at most `most`; none falls below 1."""
    total = int(durations.sum())
    np.maximum(durations * most // total, 1, out=durations)
    while int(durations.sum()) > most:
        durations[int(durations.argmax())] -= 1
