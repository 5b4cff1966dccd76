"""Runs a GPT network call by call on a cache in numpy arrays that the network writes in place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from edged.compiler.chattts.sampling import WINDOW
from edged.compiler.graph import Interface

Ints = NDArray[np.int64]


def prompt_of(seed: int, text: int, codes: int, words: int = 400) -> tuple[Ints, Ints]:
    """(ids [S, 4], text [S]): random text tokens, then random audio codes."""
    rng = np.random.default_rng(seed)
    ids = np.concatenate([rng.integers(0, words, (text, 1)).repeat(4, 1), rng.integers(0, 625, (codes, 4))])
    return ids, (np.arange(text + codes) < text).astype(np.int64)


class Runner:
    """`rows` of cache; a call uses those from `at` on."""

    def __init__(self, path: Path, interface: Interface, rows: int = 1, positions: int = 256) -> None:
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 3
        self.session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.specs = {spec.name: spec for spec in interface.inputs}
        self.names = [value.name for value in self.session.get_outputs()]
        assert self.names == [spec.name for spec in interface.outputs]
        self.cache = {
            name: np.zeros((rows, spec.shape[1], positions, spec.shape[3]), spec.dtype)
            for name, spec in self.specs.items()
            if name.startswith("past_")
        }

    def __call__(
        self,
        ids: Any,
        text: Any,
        lengths: Any,
        *,
        last: Any = None,
        at: int = 0,
        share: bool = True,
        **given: Any,
    ) -> dict[str, NDArray[Any]]:
        """share: outputs of the cache are bound to its inputs' memory; otherwise copied back afterwards."""
        feeds = self.feeds(ids, text, lengths, last=last, **given)
        batch = len(feeds["text"])
        binding = self.session.io_binding()
        for name, value in feeds.items():
            binding.bind_cpu_input(name, value)
        for name, whole in self.cache.items():
            part = whole[at : at + batch]
            arguments = ("cpu", 0, part.dtype.type, part.shape, part.ctypes.data)
            binding.bind_input(name, *arguments)
            if share:
                binding.bind_output(name.replace("past", "present"), *arguments)
            else:
                binding.bind_output(name.replace("past", "present"))
        for name in self.names:
            if not name.startswith("present_"):
                binding.bind_output(name)
        self.session.run_with_iobinding(binding)
        order = [name.replace("past", "present") for name in self.cache]
        order += [name for name in self.names if not name.startswith("present_")]
        found = dict(zip(order, binding.get_outputs(), strict=True))
        if not share:
            for name, whole in self.cache.items():
                whole[at : at + batch] = found[name.replace("past", "present")].numpy()
        return {k: v.numpy() for k, v in found.items() if not k.startswith("present_")}

    def feeds(
        self, ids: Any, text: Any, lengths: Any, *, last: Any = None, **given: Any
    ) -> dict[str, NDArray[Any]]:
        """The inputs of a call, without the cache."""
        ids, text = np.asarray(ids, np.int64), np.asarray(text, np.int64)
        batch, tokens = text.shape
        feeds = {
            "ids": ids,
            "text": text,
            "speaker": np.zeros((batch, self.specs["speaker"].shape[1]), np.float32),
            "lengths": np.asarray(lengths, np.int32),
            "last": np.full(batch, tokens - 1) if last is None else np.asarray(last, np.int64),
            "refine": np.zeros(1, np.bool_),
            "temperature": np.ones(batch, np.float32),
            "top_p": np.ones(batch, np.float32),
            "top_k": np.full(batch, 20),
            "penalty": np.ones(batch, np.float32),
            "ban_end": np.ones(batch, np.int64),
            "uniform": np.zeros((batch, 4), np.float32),
            "greedy": np.ones(batch, np.int64),
            "history": np.full((batch, WINDOW, 4), -1),
            **given,
        }
        return {name: np.ascontiguousarray(value, self.specs[name].dtype) for name, value in feeds.items()}

    def speak(
        self, ids: Any, text: Any, lengths: Any, steps: int, **given: Any
    ) -> tuple[Ints, NDArray[np.float32]]:
        """Greedy codes [steps, B, 4] and their logits after a prompt of rows of these lengths."""
        lengths = np.asarray(lengths)
        found = self(ids, text, lengths - 1, last=lengths - 1, **given)
        given.pop("speaker", None)
        codes, logits = [found["codes"]], [found["logits"]]
        for step in range(steps - 1):
            mask = np.zeros((len(lengths), 1))
            found = self(found["codes"][:, None], mask, lengths + step, **given)
            codes.append(found["codes"])
            logits.append(found["logits"])
        return np.array(codes), np.array(logits)


def padded(rows: list[tuple[Ints, Ints]], to: int = 0) -> tuple[Ints, Ints, list[int]]:
    """Rows of different lengths as one batch, padded on the right with token 0."""
    lengths = [len(text) for _, text in rows]
    most = max(to, *lengths)
    ids = np.stack([np.pad(ids, ((0, most - len(ids)), (0, 0))) for ids, _ in rows])
    text = np.stack([np.pad(text, (0, most - len(text))) for _, text in rows])
    return ids, text, lengths
