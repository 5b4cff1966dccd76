"""The 8-bit key/value cache: its scales, measured with the finished network on some sentences.

Build time only. A key or value is stored as a whole number of -128..127 times a scale of its head and
channel, so the cache takes a quarter of float32's memory, and attention, which mostly reads it, is two to
four times as fast. Measured for one layer on one core, in microseconds, float32 / float16 / int8:

    1 row  behind  100 positions     38 /   43 /  22
    1 row  behind  500 positions    179 /  193 /  88
    4 rows behind  500 positions  1,053 /  727 / 345
    4 rows behind 1,000 positions 2,246 / 1,883 / 601

On a full-size random network with 4-bit weights the divergence from fp32 is 0.1726 nat with it and 0.1724
without. Rotation by the position mixes channel n of a key with channel n + width / 2, so both get the scale
of the longest pair seen: the bound is then the same at every position. Neighbours: `fused.py` writes
networks with such a cache, `build.py` calls `fit`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper

from edged.compiler.graph import Interface
from edged.engine import ort
from edged.engine.api import TensorSpec
from edged.engine.buffers import Arena
from edged.voices.chattts.data import Sampling
from edged.voices.chattts.generator import Generator

STEPS = 64  # codes drawn behind each prompt, where the cache is long enough
HEADROOM = 1.5  # over the largest seen: a speaker not heard here may be louder; costs 3.5 dB of about 40
_LEVELS = 127
_QUANTISED = ("k_quant_type", "v_quant_type", "kv_cache_bit_width")


def scale_name(past: str) -> str:
    """The weight with the scales of a cache input: float32 [1, heads, 1, width]."""
    return f"{past}.scales"


def fit(path: Path, interface: Interface, prompts: Sequence[NDArray[np.int64]], threads: int = 2) -> None:
    """Sets the scales of the network at `path`. prompts: text ids [tokens] each."""
    model = onnx.load_model(str(path), load_external_data=False)
    wide = path.with_name(f"wide.{path.name}")
    wide.write_bytes(_widened(model).SerializeToString(deterministic=True))
    try:
        largest = _largest(wide, interface, prompts, threads)
    finally:
        wide.unlink()
    for tensor in model.graph.initializer:
        past = tensor.name.removesuffix(".scales")
        if past in largest:
            scales = largest[past] * np.float32(HEADROOM / _LEVELS)
            tensor.CopyFrom(
                helper.make_tensor(tensor.name, TensorProto.FLOAT, tensor.dims, scales.tobytes(), raw=True)
            )
    path.write_bytes(model.SerializeToString(deterministic=True))


def _widened(model: onnx.ModelProto) -> onnx.ModelProto:
    """The same network with a float32 cache."""
    wide = onnx.ModelProto()
    wide.CopyFrom(model)
    for value in (*wide.graph.input, *wide.graph.output):
        if value.name.startswith(("past_", "present_")):
            value.type.tensor_type.elem_type = TensorProto.FLOAT
    for node in wide.graph.node:
        if node.op_type == "GroupQueryAttention":
            kept = [attribute for attribute in node.attribute if attribute.name not in _QUANTISED]
            del node.attribute[:], node.input[9:]
            node.attribute.extend(kept)
    return wide


def _largest(
    path: Path, interface: Interface, prompts: Sequence[NDArray[np.int64]], threads: int
) -> dict[str, NDArray[np.float32]]:
    """By cache input, the largest magnitude of each channel, [1, heads, 1, width], never 0."""
    rows, _, most, _ = next(spec.shape for spec in interface.inputs if spec.name.startswith("past_"))
    prompts = [ids[: most // 2] for ids in prompts]
    positions = min(most, max(map(len, prompts)) + STEPS)
    inputs, outputs = (
        [_short(spec, positions) for spec in part] for part in (interface.inputs, interface.outputs)
    )
    engine = ort.OrtEngine(path, inputs, outputs, Arena(), name="cache", threads=threads)
    generator = Generator(engine, piece=next(s.shape[1] for s in interface.inputs if s.name == "text"))
    names = [name for name in engine.inputs if name.startswith("past_")]
    found: dict[str, NDArray[np.float32]] = {}
    try:
        for start in range(0, len(prompts), rows):
            _speak(generator, prompts[start : start + rows], start)
            for name, cache in zip(names, generator.caches, strict=True):
                for row in range(len(prompts[start : start + rows])):
                    seen = _bound(cache[row, :, : generator.lengths[row]], turned=name.startswith("past_k"))
                    found[name] = np.maximum(found.get(name, np.float32(1e-6)), seen)
    finally:
        generator.close()
    return found


def _short(spec: TensorSpec, positions: int) -> TensorSpec:
    if not spec.name.startswith(("past_", "present_")):
        return spec
    shape = (*spec.shape[:2], positions, spec.shape[3])
    alias = spec.name.replace("present_", "past_") if spec.name.startswith("present_") else ""
    return TensorSpec(spec.name, "float32", shape, alias=alias)


def _speak(generator: Generator, prompts: Sequence[NDArray[np.int64]], seed: int) -> None:
    """Fills the cache: each prompt in another random voice, then the codes that the network draws."""
    noise = np.random.Generator(np.random.PCG64(seed))
    for row, ids in enumerate(prompts):
        voice: NDArray[Any] = noise.standard_normal(generator.hidden_size).astype(np.float32)
        generator.seat(row, voice / np.linalg.norm(voice), Sampling())
        every, read = ids[:, None].repeat(generator.codebooks, 1), 0
        while read < len(ids):
            generator.draw(row, noise, ban_end=True)
            read += generator.prompt(row, every[read:], np.ones(len(ids) - read, np.int64))
        generator.accept(row, 0, fed=False)
    for step in range(1, generator.positions - max(map(len, prompts))):
        for row in range(len(prompts)):
            generator.draw(row, noise, ban_end=True)
        generator.step(0, len(prompts))
        for row in range(len(prompts)):
            generator.accept(row, step, fed=True)


def _bound(cache: NDArray[np.float32], *, turned: bool) -> NDArray[np.float32]:
    """[heads, tokens, width] -> the largest of each channel, [1, heads, 1, width]."""
    size = np.abs(cache)
    if turned:
        first, second = np.split(size, 2, axis=2)
        length = np.hypot(first, second)
        size = np.concatenate([length, length], axis=2)
    return np.asarray(size.max(axis=1)[None, :, None], np.float32)
