"""The native decoder behind the engine interface: ChatTTS's GPT with small integers as weights.

Used by the engine thread; further threads of the team (`engine.threads` - 1) live inside the library, spin
for a moment between steps and otherwise sleep. The tensors are those of the ONNX network, bound by address,
so what runs a voice cannot tell the two apart. Neighbours: `select.py` chooses between this and `ort.py`,
`decoder_weights.py` reads the weights, `edged/native` is the source.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from ctypes import POINTER, Structure, c_float, c_int32, c_int64, c_void_p
from pathlib import Path
from time import thread_time
from typing import Any

from numpy.typing import NDArray

from edged.engine import decoder_index
from edged.engine.api import Shape, TensorSpec
from edged.engine.buffers import Arena
from edged.engine.decoder_index import Index, Sizes
from edged.engine.decoder_weights import Matrix, Table, Weights
from edged.engine.host import HostEngine
from edged.errors import EngineError, ShapeExceeded
from edged.native import VERSION
from edged.threads import name_thread

STOP_S = 2.0


class _Layer(Structure):
    _fields_ = [
        *((name, Matrix) for name in ("qkv", "out", "gate_up", "down")),
        *((name, c_void_p) for name in ("attention_norm", "mlp_norm", "key_scales", "value_scales")),
    ]


_COUNTS = tuple(name for name in Sizes.__struct_fields__ if name != "epsilon")


class _Model(Structure):
    _fields_ = [
        *((name, c_int32) for name in (*_COUNTS, "threads", "rows", "tokens")),
        ("epsilon", c_float),
        ("unused", c_int32),
        ("cosine", c_void_p),
        ("sine", c_void_p),
        ("layer", POINTER(_Layer)),
        ("final_norm", c_void_p),
        ("words", Table),
        ("codes", Table),
        ("code_head", Matrix),
        ("text_head", Matrix),
    ]


_TENSORS = (
    *("ids", "text", "speaker", "lengths", "last", "refine", "temperature", "top_p", "top_k", "penalty"),
    *("ban_end", "uniform", "greedy", "history", "codes", "end", "hidden"),
)


class _Call(Structure):
    _fields_ = [
        ("B", c_int64),
        ("S", c_int64),
        *((name, c_void_p) for name in _TENSORS),
        ("keys", c_void_p),
        ("values", c_void_p),
    ]


def open_library(path: Path) -> ctypes.CDLL:
    """Raises `EngineError`."""
    try:
        library = ctypes.CDLL(str(path))
        found = int(library.decoder_version())
    except (OSError, AttributeError) as error:
        raise EngineError(f"{path}: {error}", "rebuild the bundle on this kind of machine") from error
    if found != VERSION:
        raise EngineError(f"{path}: version {found}, this edged has {VERSION}", "rebuild the bundle")
    library.decoder_bytes.restype = ctypes.c_size_t
    library.decoder_bytes.argtypes = [POINTER(_Model)]
    library.decoder_make.restype = c_void_p
    library.decoder_make.argtypes = [POINTER(_Model), c_void_p]
    library.decoder_run.argtypes = [c_void_p, POINTER(_Call)]
    library.decoder_help.argtypes = [c_void_p, ctypes.c_int]
    library.decoder_stop.argtypes = [c_void_p]
    return library


class DecoderEngine(HostEngine):
    """Implements `Engine`. A call takes B rows of S tokens; B * S is at most the larger of the rows and of
    the tokens of a prompt."""

    def __init__(
        self,
        library: ctypes.CDLL,
        index: Path,
        weights: Path,
        inputs: Sequence[TensorSpec],
        outputs: Sequence[TensorSpec],
        arena: Arena,
        *,
        name: str,
        threads: int = 1,
        huge_pages: bool = True,
    ) -> None:
        self.name = name
        self.inputs = {spec.name: spec for spec in inputs}
        self.outputs = {spec.name: spec for spec in outputs}
        self._library = library
        known = decoder_index.read(index)
        sizes = self._sizes = known.sizes
        self._check(index)
        rows, prompt, _ = self.inputs["ids"].shape
        self._tokens = max(rows, prompt)
        self._weights = Weights(known, weights, huge_pages)
        self._model = self._describe(known, rows, threads)
        self._buffers = arena.tensors((*inputs, *outputs), name)
        size = int(self._library.decoder_bytes(self._model))
        self._work = arena.allocate(TensorSpec("work", "uint8", (size,)), name)
        self._decoder = self._library.decoder_make(self._model, self._work.address)
        self._running = threading.Lock()  # a helper that left in mid-call would be waited for forever
        self._cpu_s = arena.cpu_s
        self._cpu_s[name] = 0.0
        self._views: dict[str, NDArray[Any]] = {}
        self._at: dict[str, int] = {}  # the row each view begins at
        self._keys = (c_void_p * sizes.layers)()
        self._values = (c_void_p * sizes.layers)()
        self._call = _Call(keys=ctypes.addressof(self._keys), values=ctypes.addressof(self._values))
        for spec in (*inputs, *outputs):
            self.bind(spec.name, spec.shape)
        self._helpers: list[threading.Thread] = []
        try:
            for number in range(1, threads):
                self._helpers.append(self._helper(number))
        except RuntimeError as error:  # those that did start would live on, and a call wait for the others
            self.close()
            raise EngineError(f"{name}: {error}", "set engine.threads to 1, or raise TasksMax") from error

    def _check(self, path: Path) -> None:
        """The tensors must be those that the decoder reads and writes: a wrong one would corrupt memory."""
        wrong = decoder_index.misfits(self._sizes, self.inputs, self.outputs)
        if wrong:
            raise EngineError(f"{path}: does not fit the bundle's manifest ({', '.join(wrong[:4])})")

    def _describe(self, index: Index, rows: int, threads: int) -> _Model:
        weights, sizes = self._weights, index.sizes
        layers = (_Layer * sizes.layers)()
        for number, layer in enumerate(layers):
            for part in ("qkv", "out", "gate_up", "down"):
                setattr(layer, part, weights.matrix(f"layers.{number}.{part}"))
            layer.attention_norm = weights.address(f"layers.{number}.input_layernorm")
            layer.mlp_norm = weights.address(f"layers.{number}.post_attention_layernorm")
            layer.key_scales = weights.address(f"past_k.{number}.scales")
            layer.value_scales = weights.address(f"past_v.{number}.scales")
        return _Model(
            **{name: getattr(sizes, name) for name in _COUNTS},
            threads=threads,
            rows=rows,
            tokens=self._tokens,
            epsilon=sizes.epsilon,
            cosine=weights.address("cosine"),
            sine=weights.address("sine"),
            layer=layers,
            final_norm=weights.address("norm"),
            words=weights.table("emb_text"),
            codes=weights.table("emb_code"),
            code_head=weights.matrix("head_code"),
            text_head=weights.matrix("head_text"),
        )

    def _helper(self, number: int) -> threading.Thread:
        def main() -> None:
            name_thread(f"edged-engine-{number}")
            self._library.decoder_help(self._decoder, number)

        thread = threading.Thread(target=main, name=f"edged-engine-{number}", daemon=True)
        thread.start()
        return thread

    def bind(self, name: str, shape: Shape, row: int = 0) -> NDArray[Any]:
        view = self._views.get(name)
        if view is not None and view.shape == shape and self._at[name] == row:
            return view
        buffer = self._buffers.get(name)
        if buffer is None:
            raise ShapeExceeded(f"{self.name}: no tensor {name!r}", "this is a fault in the voice")
        view = buffer.view(shape, row)
        address = buffer.address_of(row)
        kind, _, layer = name.partition(".")
        if kind in ("past_k", "past_v"):
            (self._keys if kind == "past_k" else self._values)[int(layer)] = address
        elif kind not in ("present_k", "present_v"):
            setattr(self._call, name, address)
        if name == "ids":
            self._call.B, self._call.S = shape[:2]
        self._views[name] = view
        self._at[name] = row
        return view

    def run(self) -> None:
        begin = thread_time()
        rows, tokens = self._call.B, self._call.S
        if rows * tokens > self._tokens:
            raise ShapeExceeded(f"{self.name}: more than {self._tokens} tokens in a call")
        with self._running:
            if self._decoder is None:
                raise EngineError(f"{self.name}: closed", "this is a fault in the voice")
            if self._library.decoder_run(self._decoder, self._call):
                raise ShapeExceeded(f"{self.name}: a row reaches beyond {self._sizes.positions} positions")
        self._cpu_s[self.name] += thread_time() - begin

    def close(self) -> None:
        """Waits for a call that another thread is in."""
        with self._running:
            if self._decoder is not None:
                self._library.decoder_stop(self._decoder)
                for helper in self._helpers:
                    helper.join(STOP_S)
                self._decoder = None
            self._views.clear()
            self._buffers.clear()
