"""Two builds of the ChatTTS networks, compared on the same prompts with the same noise: figures in numbers.

CLI process only. The second is fed the codes that the first drew (teacher forcing), so that each step is
compared by itself and one other code does not change all that follow. The runtimes do not matter: `plans.py`
compares TensorRT with ONNX Runtime, a test float16 with float32 on the CPU. Neighbours: `runners.py` runs,
`thresholds.py` says what is near enough, `teach.py` has the measures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edged.compiler.chattts.sampling import WINDOW
from edged.compiler.chattts.teach import divergence, snr_db
from edged.compiler.parts import Progress, silent
from edged.compiler.runners import Arrays, Runner
from edged.voices.chattts.data import Sampling
from edged.voices.chattts.sound import samples_of

STEPS = 48  # of each prompt: a second of speech
Prompt = Sequence[int]  # ids of text tokens


@dataclass(frozen=True)
class Build:
    """The two networks of one build."""

    gpt: Runner
    vocoder: Runner


def compare(
    reference: Build,
    built: Build,
    prompts: Sequence[Prompt],
    head: NDArray[np.float32],
    piece: int,
    progress: Progress = silent,
) -> dict[str, float]:
    """Figures by the names of their thresholds.

    head: [hidden, codebooks * codes] of the code head, which makes logits of hidden states; piece: most
    tokens of a prompt in one run.
    """
    pairs, codes, sounds = [], [], []
    for number, prompt in enumerate(prompts):
        progress(f"compare {number + 1} of {len(prompts)}", number / len(prompts))
        lines = [Line(build.gpt, seed=number) for build in (reference, built)]
        states: list[list[NDArray[np.float32]]] = [[], []]
        given = [line.prompt(prompt, piece) for line in lines]
        for _ in range(STEPS):
            for side in (0, 1):
                states[side].append(given[side]["hidden"][0])
            codes.append((given[0]["codes"][0], given[1]["codes"][0]))
            given = [line.step(codes[-1][0]) for line in lines]
        pairs.append([np.stack(side) for side in states])
        sounds.append([speak(build.vocoder, pairs[-1][0]) for build in (reference, built)])
    expected, found = (np.stack([pair[side] for pair in pairs]) for side in (0, 1))
    books = len(codes[0][0])
    logits = [
        (side.astype(np.float64) @ head).reshape(*side.shape[:2], books, -1) for side in (expected, found)
    ]
    return {
        "min_hidden_snr_db": snr_db(expected, found),
        "max_logit_error": _finite(np.abs(logits[0] - logits[1]).max()),
        "max_kl": _finite(divergence(*logits).mean()),
        "min_token_agreement": float(np.mean([np.equal(*pair) for pair in codes])),
        "min_waveform_snr_db": min(snr_db(*pair) for pair in sounds),
    }


def _finite(value: Any) -> float:
    """A figure that JSON can hold, and that no threshold lets pass."""
    return float(value) if np.isfinite(value) else 1e9


class Line:
    """One utterance through the GPT: its cache, its noise, what it drew."""

    def __init__(self, runner: Runner, seed: int) -> None:
        self._run = runner
        sampling, inputs = Sampling(), runner.inputs
        self._noise = np.random.Generator(np.random.PCG64(seed))
        self._books = inputs["ids"].shape[2]
        self._length = self._drawn = 0
        self._feeds: Arrays = {
            name: np.zeros((1, *spec.shape[1:]), spec.dtype) for name, spec in inputs.items()
        }
        for name in ("temperature", "top_p", "top_k", "penalty"):
            self._feeds[name][:] = getattr(sampling, name)
        self._feeds["ban_end"][:] = 1
        self._feeds["history"][:] = -1

    def prompt(self, ids: Prompt, piece: int) -> Arrays:
        found: Arrays = {}
        for start in range(0, len(ids), piece):
            part = np.asarray(ids[start : start + piece], np.int64)
            found = self._feed(np.repeat(part[None, :, None], self._books, 2), text=True)
        return found

    def step(self, codes: NDArray[np.int64]) -> Arrays:
        """The outputs behind these codes [books], which become a part of the history."""
        self._feeds["history"][0, self._drawn % WINDOW] = codes
        self._drawn += 1
        return self._feed(codes[None, None].astype(np.int64), text=False)

    def _feed(self, ids: NDArray[np.int64], text: bool) -> Arrays:
        count = ids.shape[1]
        self._feeds |= {"ids": ids, "text": np.full((1, count), int(text), np.int64)}
        self._feeds["last"][:] = count - 1
        self._feeds["lengths"][:] = self._length + count - 1
        self._feeds["uniform"][0] = self._noise.random(self._books, dtype=np.float32)
        found = self._run(self._feeds)
        self._length += count
        for name in list(found):
            if name.startswith("present_"):
                self._feeds[name.replace("present_", "past_")] = found.pop(name)
        return found


def speak(runner: Runner, hidden: NDArray[np.float32]) -> NDArray[np.float32]:
    """Samples of hidden states [steps, width] as one first window."""
    feeds: Arrays = {"hidden": hidden[None]}
    for name, spec in runner.inputs.items():
        if name != "hidden":
            feeds[name] = np.zeros((1, *spec.shape[1:]), spec.dtype)
    if "lead" in feeds:
        raise ValueError("give a vocoder of the standard dialect, or one without tracks")
    if "first" in feeds:
        feeds["first"][:] = True
    samples: NDArray[np.float32] = runner(feeds)["samples"][0, -samples_of(len(hidden)) :]
    return samples
