"""Runs the fp32 network and a bundle's on the same prompts and the same noise, and compares what they give.

CLI process only. The bundle's network is fed the codes that the fp32 one drew (teacher forcing), so that
each step is compared by itself and one other code does not change all that follow. Neighbours: `verify.py`
compares a bundle that is there, `agreement.py` two builds.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edged import settings
from edged.bundle import Bundle
from edged.compiler.chattts.cache import scale_name
from edged.compiler.chattts.options import PROMPT_PIECE
from edged.compiler.chattts.past import in_place
from edged.compiler.chattts.sentences import VERIFICATION
from edged.compiler.chattts.stored import StoredWeights
from edged.compiler.graph import Interface
from edged.compiler.parts import Progress
from edged.engine import select
from edged.engine.api import Engine
from edged.engine.buffers import Arena
from edged.text.languages import readings_of
from edged.text.prepare import prepare
from edged.voices.chattts import data
from edged.voices.chattts.frontend import ChatFrontend
from edged.voices.chattts.generator import Generator, prompt_rows
from edged.voices.chattts.synth import SpeakerData
from edged.voices.chattts.tokens import Tokens
from edged.voices.chattts.voice import engine, speaker_data

STEPS = 48  # decoder steps compared for each text: a second of speech
CEILING_DB = 200.0  # instead of infinity, where nothing differs

Prompt = tuple[NDArray[np.int64], NDArray[np.int64]]


@dataclass(frozen=True)
class Compared:
    keys: list[float]
    values: list[float]
    hidden: float
    divergence: list[float]
    drawn: float
    greedy: float
    hiddens: list[NDArray[np.float32]]


def prompts(bundle: Bundle) -> list[Prompt]:
    """Prompt rows of the texts in the bundle's first voice."""
    person = data.read(bundle.data_path("speakers"), data.Speakers).voices[0]
    frontend = ChatFrontend(
        Tokens(bundle.data_path("tokenizer")),
        most=bundle.limit("max_text"),
        speaker=0,
        embedded=bool(person.code),
    )
    codebooks = bundle.limit("codebooks")
    nothing = np.zeros((0, codebooks), np.int64)
    readings = readings_of([frontend])
    firsts = [next(prepare(text, frontend, readings=readings), None) for text in VERIFICATION]
    return [prompt_rows(first.symbols, nothing, codebooks) for first in firsts if first is not None]


def compare(
    bundle: Bundle, path: Path, interface: Interface, prompts: list[Prompt], progress: Progress
) -> Compared:
    person = data.read(bundle.data_path("speakers"), data.Speakers).voices[0]
    speaker = speaker_data(bundle, person)
    built = engine(bundle, "gpt", settings.Engine(), Arena())
    stored = StoredWeights(bundle.engine_path("gpt"))
    heads = [weights.value("head_code") for weights in (StoredWeights(path), stored)]
    try:
        with loaded(path, interface, "reference") as original:
            pair = (Generator(original, PROMPT_PIECE), Generator(built, bundle.limit("prompt_piece")))
            runs = []
            for number, prompt in enumerate(prompts):
                progress(f"text {number + 1} of {len(prompts)}", number / len(prompts))
                runs.append(teach(pair, prompt, speaker, number))
            names = [name for name in built.inputs if name.startswith("past_")]
            scales = [_scales(stored, name) for name in names]
            caches = [
                [snr_db(*_cached(pair, place, scales[place])) for place in range(kind, len(names), 2)]
                for kind in (0, 1)
            ]
    finally:
        built.close()
    expected, found = (np.stack([run[side] for run in runs]) for side in (0, 1))  # [texts, steps, hidden]
    codes = [np.stack([run[side] for run in runs]) for side in (2, 3)]
    codebooks = codes[0].shape[2]
    logits = [
        (h.astype(np.float64) @ w).reshape(*h.shape[:2], codebooks, -1)
        for h, w in zip((expected, found), heads, strict=True)
    ]
    likely = [values.argmax(-1) for values in logits]
    return Compared(
        keys=caches[0],
        values=caches[1],
        hidden=snr_db(expected, found),
        divergence=[float(v) for v in divergence(*logits).mean(axis=(0, 2))],
        drawn=float((codes[0] == codes[1]).mean()),
        greedy=float((likely[0] == likely[1]).mean()),
        hiddens=list(expected),
    )


def teach(
    pair: tuple[Generator, Generator], prompt: Prompt, speaker: SpeakerData, seed: int
) -> tuple[NDArray[Any], ...]:
    """Hidden states and drawn codes of both, [steps, ...]; the second is fed the codes of the first."""
    noises = [np.random.Generator(np.random.PCG64(seed)) for _ in pair]
    hidden: tuple[list[Any], list[Any]] = ([], [])
    codes: tuple[list[Any], list[Any]] = ([], [])
    for generator in pair:
        generator.seat(0, speaker.embedding, data.Sampling())
    for step in range(STEPS):
        for side, generator in enumerate(pair):
            generator.draw(0, noises[side], ban_end=True)
            if step:
                generator.step(0, 1)
            else:
                read = 0
                while read < len(prompt[0]):
                    read += generator.prompt(0, prompt[0][read:], prompt[1][read:])
            hidden[side].append(generator.hidden[0].copy())
            codes[side].append(generator.codes[0].copy())
        pair[1].codes[0] = pair[0].codes[0]
        for generator in pair:
            generator.accept(0, step, fed=step > 0)
    return tuple(np.stack(values) for values in (*hidden, *codes))


def _scales(stored: StoredWeights, past: str) -> NDArray[np.float32]:
    """What the numbers in a cache are multiplied with, to broadcast over [heads, tokens, width]."""
    name = scale_name(past)
    return stored.value(name)[0] if stored.has(name) else np.ones(1, np.float32)


def _cached(
    pair: tuple[Generator, Generator], place: int, scales: NDArray[np.float32]
) -> tuple[NDArray[Any], NDArray[Any]]:
    length = int(pair[0].lengths[0])
    expected, found = (generator.caches[place][0, :, :length] for generator in pair)
    return expected, found * scales


def divergence(expected: NDArray[np.float64], found: NDArray[np.float64]) -> NDArray[np.float64]:
    """Kullback-Leibler divergence of softmax(found) from softmax(expected) over the last axis, in nats."""
    p, q = (
        v - np.log(np.exp(v - v.max(-1, keepdims=True)).sum(-1, keepdims=True)) - v.max(-1, keepdims=True)
        for v in (expected, found)
    )
    return np.asarray((np.exp(p) * (p - q)).sum(-1))


def snr_db(expected: NDArray[Any], found: NDArray[Any]) -> float:
    """Power of what is expected over power of the difference; minus infinity for what is no number."""
    if not (np.isfinite(expected).all() and np.isfinite(found).all()):
        return float("-inf")
    signal = float(np.square(expected, dtype=np.float64).sum())
    noise = float(np.square(np.subtract(expected, found, dtype=np.float64)).sum())
    if noise <= 0 or signal <= 0:
        return CEILING_DB if noise <= 0 else 0.0
    return float(min(CEILING_DB, round(10 * np.log10(signal / noise), 2)))


@contextmanager
def loaded(path: Path, interface: Interface, name: str) -> Iterator[Engine]:
    outputs = [in_place(spec) for spec in interface.outputs]
    made = select.load(path, "onnxruntime", interface.inputs, outputs, Arena(), settings.Engine(), name=name)
    try:
        yield made
    finally:
        made.close()
