"""Runs the graphs of the ChatTTS compiler in tests: caches bound in place, sampling inputs filled in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from edged.compiler.chattts.layout import Sizes

WINDOW = 16
# What the engine's sampling does when a test does not say otherwise: the best, never the end.
_PLAIN: dict[str, tuple[Any, float]] = {
    "temperature": (np.float32, 1.0),
    "top_p": (np.float32, 1.0),
    "top_k": (np.int64, 50),
    "penalty": (np.float32, 1.0),
    "ban_end": (np.int64, 1),
    "greedy": (np.int64, 1),
}


def session(path: Path) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.log_severity_level = 3
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def run(path: Path, **feeds: Any) -> dict[str, NDArray[Any]]:
    """All outputs of a graph without state."""
    opened = session(path)
    names = [output.name for output in opened.get_outputs()]
    return dict(zip(names, opened.run(names, feeds), strict=True))


class Gpt:
    """A gpt graph, built with debug outputs, and its cache for some rows."""

    def __init__(self, path: Path, sizes: Sizes, positions: int) -> None:
        self.sizes = sizes
        self.positions = positions
        self.session = session(path)
        self.shapes = {value.name: value.shape for value in self.session.get_inputs()}
        self.outputs = [v.name for v in self.session.get_outputs() if not v.name.startswith("present_")]

    def prompt(
        self,
        rows: Sequence[tuple[NDArray[Any], NDArray[Any]]],
        speakers: NDArray[Any] | None = None,
        **sampling: Any,
    ) -> dict[str, NDArray[Any]]:
        """Starts rows of (ids [S, 4], text [S]) in an empty cache; shorter ones are padded on the right."""
        batch, most = len(rows), max(len(ids) for ids, _ in rows)
        ids = np.zeros((batch, most, self.sizes.codebooks), np.int64)
        text = np.zeros((batch, most), np.int64)
        for row, (codes, mask) in enumerate(rows):
            ids[row, : len(codes)], text[row, : len(codes)] = codes, mask
        self.lengths = np.array([len(codes) for codes, _ in rows], np.int32) - 1
        shape = (batch, self.sizes.heads, self.positions, self.sizes.head_dim)
        self.cache = {
            f"{kind}.{layer}": ort.OrtValue.ortvalue_from_numpy(np.zeros(shape, np.float32))
            for kind in ("k", "v")
            for layer in range(self.sizes.layers)
        }
        self.speakers = np.zeros((batch, self.sizes.hidden), np.float32)
        if speakers is not None:
            self.speakers = speakers / np.linalg.norm(speakers, axis=1, keepdims=True)
        return self._run(ids, text, self.lengths.astype(np.int64), sampling)

    def step(self, codes: NDArray[Any], text: bool = False, **sampling: Any) -> dict[str, NDArray[Any]]:
        """One token more for every row."""
        self.lengths = self.lengths + np.int32(1)
        batch = len(codes)
        mask = np.full((batch, 1), int(text), np.int64)
        return self._run(codes[:, None], mask, np.zeros(batch, np.int64), sampling)

    def _run(
        self, ids: NDArray[Any], text: NDArray[Any], last: NDArray[Any], sampling: dict[str, Any]
    ) -> dict[str, NDArray[Any]]:
        batch = len(ids)
        feeds: dict[str, Any] = {
            "ids": ids,
            "text": text,
            "speaker": self.speakers.astype(np.float32),
            "lengths": self.lengths,
            "last": last,
            "uniform": np.zeros((batch, self.sizes.codebooks), np.float32),
            "history": np.full((batch, WINDOW, self.sizes.codebooks), -1, np.int64),
        }
        if "total" in self.shapes:
            feeds["total"] = np.array(self.lengths.max() + 1, np.int32).reshape(self.shapes["total"] or ())
        feeds |= {name: np.full(batch, value, kind) for name, (kind, value) in _PLAIN.items()}
        refine = sampling.pop("refine", False)
        feeds["refine"] = np.array(refine).reshape(self.shapes["refine"] or ())
        feeds |= sampling
        binding = self.session.io_binding()
        for name, value in feeds.items():
            binding.bind_cpu_input(name, np.ascontiguousarray(value))
        for name, value in self.cache.items():
            binding.bind_ortvalue_input(f"past_{name}", value)
            binding.bind_ortvalue_output(f"present_{name}", value)
        for name in self.outputs:
            binding.bind_output(name)
        self.session.run_with_iobinding(binding)
        found = binding.get_outputs()
        names = [output.name for output in self.session.get_outputs()]
        bound = [f"present_{name}" for name in self.cache] + self.outputs
        assert set(bound) == set(names)
        return {name: value.numpy() for name, value in zip(bound, found, strict=True) if name in self.outputs}


def greedy(
    gpt: Gpt,
    rows: Sequence[tuple[NDArray[Any], NDArray[Any]]],
    speakers: NDArray[Any] | None,
    steps: int,
    refine: bool = False,
) -> list[dict[str, NDArray[Any]]]:
    """The outputs of each step of argmax decoding."""
    found = [gpt.prompt(rows, speakers, refine=refine)]
    for _ in range(steps - 1):
        found.append(gpt.step(found[-1]["codes"], text=refine, refine=refine))
    return found


def snr_db(wanted: NDArray[Any], found: NDArray[Any]) -> float:
    noise = np.square(wanted.astype(np.float64) - found).sum()
    return float(10 * np.log10(np.square(wanted.astype(np.float64)).sum() / max(noise, 1e-30)))
