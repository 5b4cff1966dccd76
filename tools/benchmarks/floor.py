"""The least time that a decoder step can take: bytes of weights it reads over the memory's bandwidth.

Counted: every matrix that a code step multiplies by, with scales and zero points, as it lies in the bundle.
Not counted: embedding tables (a few rows are read), the text head (only the refine stage runs it), keys and
values, activations. Bandwidth: reads of a buffer far larger than any cache, by as many threads as the engine
has; the best of those made in the same round as the steps.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import THREADS


def weight_bytes(gpt: Path) -> int:
    """Bytes of matrices that one step reads, however many rows it has."""
    import onnx

    graph = onnx.load(str(gpt), load_external_data=False).graph
    used: dict[str, int] = {}
    for name, tensor in _multiplied(graph, {}):
        used[name] = math.prod(tensor.dims) * onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize
    return sum(used.values())


def _multiplied(graph: Any, outer: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Initializers that matrix products take, with those of the branch that draws codes."""
    tensors = {**outer, **{tensor.name: tensor for tensor in graph.initializer}}
    for node in graph.node:
        if "MatMul" in node.op_type or node.op_type == "Gemm":
            yield from ((name, tensors[name]) for name in node.input if name in tensors)
        for attribute in node.attribute:
            if attribute.name == "else_branch":
                yield from _multiplied(attribute.g, tensors)


class Bandwidth:
    """Reads a buffer of so many megabytes."""

    def __init__(self, megabytes: int) -> None:
        self.parts = np.array_split(np.ones(megabytes * 125_000, np.int64), THREADS)

    def read(self) -> float:
        """GB/s of one pass."""
        threads = [threading.Thread(target=part.max) for part in self.parts]
        begin = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sum(part.nbytes for part in self.parts) / (time.perf_counter() - begin) / 1e9
