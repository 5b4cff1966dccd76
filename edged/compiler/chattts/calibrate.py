"""Measures how much each column of each matrix matters, for rounding better than nearest.

Build time only; runs our own fp32 network on ONNX Runtime. Neighbours: `gpt.py` describes the network with
taps on the inputs of its matrices, `quantize.py` uses the result.

The network first continues the given prompts with audio codes of its own, then reads each whole sequence
once and adds up X.T @ X of what every matrix multiplies. At full size the sums take 0.9 GB, so they lie in
a folder and are filled for some layers at a time.

What it brings depends on how much the inputs of a matrix are alike. Measured with 4 bits: nothing on a
full-size network with random weights (divergence from fp32 0.1797 against 0.1798 nat), where no input says
anything about another; more than 2 dB of the product where 256 inputs come from 32 sources.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from edged.compiler.chattts.gpt import Network
from edged.compiler.chattts.quantize import Plan
from edged.compiler.chattts.sampling import WINDOW
from edged.compiler.parts import Progress, silent
from edged.compiler.weightfile import WeightFile
from edged.engine.ort import ort

if TYPE_CHECKING:
    from edged.compiler.chattts.checkpoint import Checkpoint

# Added to the diagonal, times K / tokens, as part of its mean: without it the rounding fits the noise of a
# short measurement. On sequences not measured, tiny and random: 0 loses up to 1 dB against plain rounding
# where tokens = 2 K, 1 loses nothing, 2 gains everywhere (0.05-0.5 dB).
_SHRINK = 2.0
GROUP = 5  # layers whose sums are in memory together: 225 MB at full size
Ids = NDArray[np.int64]


class Sums(Mapping[str, NDArray[np.float32]]):
    """X.T @ X by the name of the matrix, read from a folder when asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __getitem__(self, name: str) -> NDArray[np.float32]:
        try:
            return np.asarray(np.load(self._folder / f"{name}.npy"))
        except FileNotFoundError:
            raise KeyError(name) from None

    def __iter__(self) -> Iterator[str]:
        return (path.stem for path in sorted(self._folder.glob("*.npy")))

    def __len__(self) -> int:
        return sum(1 for _ in self._folder.glob("*.npy"))


def calibrate(
    checkpoint: Checkpoint,
    prompts: Ids,
    folder: Path,
    *,
    steps: int = 96,
    seed: int = 0,
    threads: int = 2,
    progress: Progress = silent,
) -> Sums:
    """prompts: text ids [sequences, tokens]. Fills `folder`, which the caller removes in the end."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "tapped.onnx"
    taps: dict[str, str] = {}
    total = prompts.shape[1] + steps
    with WeightFile(folder / "tapped.onnx.data") as weights:
        network = Network(
            checkpoint, "ort", Plan("fp32"), weights, positions=total, kv="float32", tap=taps.__setitem__
        )
        network.describe(slots=len(prompts), prompt=total)
        path.write_bytes(network.graph.build().SerializeToString(deterministic=True))
    runner = _Runner(path, checkpoint, threads)
    progress("calibration: speaking", 0.0)
    sequences = runner.continued(prompts, steps, np.random.default_rng(seed))
    groups: dict[int, list[str]] = {}
    for name in taps:
        layer = re.match(r"layers\.(\d+)\.", name)
        if layer:
            groups.setdefault(int(layer[1]) // GROUP, []).append(name)
    for group, names in groups.items():
        progress("calibration: measuring", (group + 1) / (len(groups) + 1))
        sums: dict[str, NDArray[np.float32]] = {}
        for ids in sequences:
            values = runner.read(ids, prompts.shape[1], [taps[name] for name in names])
            for name, value in zip(names, values, strict=True):
                rows = value.reshape(-1, value.shape[-1])
                product = rows.T @ rows
                sums[name] = sums[name] + product if name in sums else product
        tokens = len(sequences) * total
        for name, product in sums.items():
            mean = np.diagonal(product).mean()
            product[np.diag_indices_from(product)] += mean * np.float32(_SHRINK * len(product) / tokens)
            np.save(folder / f"{name}.npy", product / np.float32(tokens))
    del runner
    path.unlink()
    weights.path.unlink()
    return Sums(folder)


class _Runner:
    """The tapped network with everything bound that a call does not care about."""

    def __init__(self, path: Path, checkpoint: Checkpoint, threads: int) -> None:
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3
        # Fusing would take a tapped value apart from its consumers; fp32 gains nothing from it here.
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
        self._session: Any = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self._sizes = checkpoint.sizes

    def _feeds(
        self, ids: Ids, text: Ids, lengths: int, cache: Mapping[str, Any], **rows: Any
    ) -> dict[str, Any]:
        batch, tokens = text.shape
        defaults = {
            "temperature": np.full(batch, 0.7, np.float32),
            "top_p": np.full(batch, 0.9, np.float32),
            "top_k": np.full(batch, 40, np.int64),
            "penalty": np.full(batch, 1.05, np.float32),
            "ban_end": np.ones(batch, np.int64),
            "uniform": np.zeros((batch, self._sizes.codebooks), np.float32),
            "greedy": np.zeros(batch, np.int64),
            "history": np.full((batch, WINDOW, self._sizes.codebooks), -1, np.int64),
        }
        return {
            "ids": ids,
            "text": text,
            "speaker": np.zeros((batch, self._sizes.hidden), np.float32),
            "lengths": np.full(batch, lengths, np.int32),
            "last": np.full(batch, tokens - 1, np.int64),
            "refine": np.zeros(1, np.bool_),
            **cache,
            **defaults,
            **rows,
        }

    def _cache(self, batch: int, positions: int) -> dict[str, Any]:
        shape = (batch, self._sizes.heads, positions, self._sizes.head_dim)
        names = [i.name for i in self._session.get_inputs() if i.name.startswith("past_")]
        return {name: np.zeros(shape, np.float32) for name in names}

    def continued(self, prompts: Ids, steps: int, rng: np.random.Generator) -> list[Ids]:
        """Each prompt with `steps` codes that the network draws after it: [1, tokens, codebooks]."""
        books = self._sizes.codebooks
        batch, length = prompts.shape
        cache = {
            k: ort.OrtValue.ortvalue_from_numpy(v) for k, v in self._cache(batch, length + steps).items()
        }
        ids, text = prompts[..., None].repeat(books, 2), np.ones_like(prompts)
        spoken = [ids]
        for step in range(steps):
            history = np.full((batch, WINDOW, books), -1, np.int64)
            if step:
                recent = np.concatenate(spoken[1:][-WINDOW:], 1)
                history[:, -recent.shape[1] :] = recent
            uniform = rng.random((batch, books), dtype=np.float32)
            feeds = self._feeds(ids, text, length + step - 1, {}, uniform=uniform, history=history)
            binding = self._session.io_binding()
            for name, value in feeds.items():
                binding.bind_cpu_input(name, np.ascontiguousarray(value))
            for name, value in cache.items():  # shared with its output: written in place
                binding.bind_ortvalue_input(name, value)
                binding.bind_ortvalue_output(name.replace("past", "present"), value)
            binding.bind_output("codes")
            self._session.run_with_iobinding(binding)
            codes = next(v for v in binding.get_outputs() if v.shape() == [batch, books]).numpy()
            ids, text = codes[:, None], np.zeros((batch, 1), np.int64)
            spoken.append(ids)
        whole = np.concatenate(spoken, 1)
        return [whole[n : n + 1] for n in range(batch)]

    def read(self, ids: Ids, prompt: int, outputs: list[str]) -> list[NDArray[np.float32]]:
        """Values inside the network while it reads a sequence at once."""
        count = ids.shape[1]
        text = (np.arange(count) < prompt).astype(np.int64)[None]
        feeds = self._feeds(ids, text, count - 1, self._cache(1, count))
        return list(self._session.run(outputs, feeds))
