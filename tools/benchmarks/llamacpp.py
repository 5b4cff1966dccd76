"""Times llama.cpp on a decoder of the checkpoint's shapes with random weights. A script for `turns`.

`write_model` makes the model file: a plain llama without a vocabulary whose output layer has as many rows as
the code heads together. As with ours, a turn decodes from a past of 40 tokens to one of 200, all logits
wanted; sampling is left out, which ours includes. Needs the packages llama-cpp-python and gguf.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import THREADS
from benchmarks.turns import answer
from edged.compiler.chattts.checkpoint import Checkpoint
from edged.compiler.chattts.layout import Sizes

# Its AMX code crashed on several rows where this was tried (a virtual machine with AMX).
FLAGS = "-mno-amx-tile -mno-amx-int8 -mno-amx-bf16"
INSTALL = f"CFLAGS='{FLAGS}' CXXFLAGS='{FLAGS}' pip install llama-cpp-python gguf   (compiles for minutes)"
KINDS = {"int4": "q4_0", "int8": "q8_0"}  # of as many bits as a bundle's precision
FIRST, LAST, MOST_ROWS = 40, 200, 4


def write_model(path: Path, kind: str, sizes: Sizes) -> None:
    """A model file of one kind ("q4_0", "q8_0")."""
    import gguf

    quantised = gguf.GGMLQuantizationType[kind.upper()]
    chance = np.random.default_rng(1)
    width, inner, words = sizes.hidden, sizes.intermediate, sizes.codebooks * sizes.audio_tokens
    out = gguf.GGUFWriter(str(path), "llama")
    out.add_name("random")
    out.add_context_length(4096)
    out.add_embedding_length(width)
    out.add_block_count(sizes.layers)
    out.add_feed_forward_length(inner)
    out.add_head_count(sizes.heads)
    out.add_head_count_kv(sizes.heads)
    out.add_layer_norm_rms_eps(sizes.rms_eps)
    out.add_rope_dimension_count(sizes.head_dim)
    out.add_vocab_size(words)
    out.add_tokenizer_model("no_vocab")
    out.add_file_type({"q4_0": gguf.LlamaFileType.MOSTLY_Q4_0, "q8_0": gguf.LlamaFileType.MOSTLY_Q8_0}[kind])

    def matrix(name: str, rows: int, columns: int) -> None:
        values = (chance.standard_normal((rows, columns)) / np.sqrt(columns)).astype(np.float32)
        out.add_tensor(f"{name}.weight", gguf.quants.quantize(values, quantised), raw_dtype=quantised)

    def gain(name: str) -> None:
        out.add_tensor(f"{name}.weight", np.ones(width, np.float32))

    matrix("token_embd", words, width)
    matrix("output", words, width)
    gain("output_norm")
    for layer in range(sizes.layers):
        block = f"blk.{layer}."
        for name in ("attn_norm", "ffn_norm"):
            gain(block + name)
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            matrix(block + name, width, width)
        matrix(block + "ffn_gate", inner, width)
        matrix(block + "ffn_up", inner, width)
        matrix(block + "ffn_down", width, inner)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


class Steps:
    def __init__(self, path: Path) -> None:
        import llama_cpp

        self.lib = lib = llama_cpp
        self._quiet = lib.llama_log_callback(lambda level, text, data: None)
        lib.llama_log_set(self._quiet, ctypes.c_void_p(0))
        lib.llama_backend_init()
        self.model = lib.llama_model_load_from_file(str(path).encode(), lib.llama_model_default_params())
        wanted = lib.llama_context_default_params()
        wanted.n_ctx = 1024 * MOST_ROWS
        wanted.n_batch = 512
        wanted.n_threads = wanted.n_threads_batch = THREADS
        wanted.n_seq_max = MOST_ROWS
        self.context = lib.llama_init_from_model(self.model, wanted)
        self.chance = np.random.default_rng(1)
        self.words = lib.llama_vocab_n_tokens(lib.llama_model_get_vocab(self.model))

    def __call__(self, rows: int) -> dict[str, Any]:
        """{"ms": [...]}, a value a step."""
        lib = self.lib
        lib.llama_memory_clear(lib.llama_get_memory(self.context), True)
        for row in range(rows):
            self._decode([(row, position) for position in range(FIRST)])
        return {"ms": [self._decode([(row, at) for row in range(rows)]) for at in range(FIRST, LAST)]}

    def _decode(self, places: Sequence[tuple[int, int]]) -> float:
        """Milliseconds for one call on tokens at these (row, position)."""
        lib, count = self.lib, len(places)
        batch = lib.llama_batch_init(count, 0, 1)
        batch.n_tokens = count
        for at, (row, position) in enumerate(places):
            batch.token[at] = int(self.chance.integers(self.words))
            batch.pos[at], batch.n_seq_id[at], batch.seq_id[at][0] = position, 1, row
            batch.logits[at] = at == count - 1 or position >= FIRST
        begin = time.perf_counter()
        failed = lib.llama_decode(self.context, batch)
        lib.llama_synchronize(self.context)
        spent = (time.perf_counter() - begin) * 1e3
        lib.llama_batch_free(batch)
        if failed:
            raise RuntimeError(f"llama_decode said {failed}")
        return spent


def prepare(arguments: Sequence[str]) -> tuple[dict[str, Any], Steps]:
    """arguments: the checkpoint whose shapes are wanted, the kind of model, the file to write."""
    checkpoint, kind, file = arguments
    with Checkpoint.open(Path(checkpoint)) as opened:
        write_model(Path(file), kind, opened.sizes)
    return {"versions": {"llama-cpp-python": version("llama-cpp-python")}}, Steps(Path(file))


if __name__ == "__main__":
    answer(prepare)
