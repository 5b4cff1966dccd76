"""The GPT of ChatTTS as one network for prompt and step, with sampling inside.

Build time only. Neighbours: `checkpoint.py` gives the weights, `dialect.py` the operators, `quantize.py`
the precisions, `sampling.py` the rules of the draw.

A call takes S new tokens for each of B rows and writes their keys and values into the cache behind what is
there. `lengths` holds, a row, how many tokens the cache has afterwards, minus 1; `last` the index among
the S of the row's last valid token (rows of a prompt are padded on the right). So a row's first new token
has the position lengths - last, and start, step and continued prompt are one case. Limits of the "ort"
dialect: a prompt continued behind a non-empty cache (S > 1, lengths > last) runs one row at a time and
without padding. In both, lengths - last + S must not exceed the positions of the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto

from edged.compiler.chattts import sampling
from edged.compiler.chattts.dialect import OPSET, Dialect, Shape
from edged.compiler.chattts.fused import Fused
from edged.compiler.chattts.heads import Heads
from edged.compiler.chattts.plugged import Plugged
from edged.compiler.chattts.quantize import Plan, Sensitivity
from edged.compiler.chattts.standard import Standard
from edged.compiler.graph import Graph, Interface
from edged.compiler.parts import Progress, silent
from edged.compiler.weightfile import WeightFile

if TYPE_CHECKING:
    from edged.compiler.chattts.checkpoint import Checkpoint

DIALECTS: dict[str, type[Dialect]] = {kind.name: kind for kind in (Fused, Standard, Plugged)}
Tap = Callable[[str, str], None]  # (name of a matrix, value that it multiplies)


def build_gpt(
    checkpoint: Checkpoint,
    path: Path,
    *,
    dialect: str = "ort",
    precision: Literal["fp32", "fp16", "int8", "int4"] = "fp32",
    overrides: Iterable[tuple[str, str]] = (),
    positions: int = 1024,
    slots: int = 4,
    prompt: int = 256,
    kv: Literal["float32", "float16", "int8"] = "float32",
    debug: bool = False,
    sensitivity: Sensitivity | None = None,
    block: int | None = None,
    half: bool = False,
    progress: Progress = silent,
) -> Interface:
    """Writes the network to `path` and its weights beside it (`path` + ".data").

    overrides: (pattern, precision) pairs over the names of `Plan`; the last that matches counts.
    positions: of the cache, for a whole job. slots: most rows. prompt: most tokens of a row in a call.
    kv: element type of the cache; int8, of the "ort" dialect only, needs its scales set by `cache.fit`.
    debug: outputs `logits` (before the temperature) and `probs` (after all rules) as well.
    sensitivity: from `calibrate`, makes the rounding of 4-bit layers better than nearest.
    block: columns of a matrix that share a scale, instead of the default of its precision.
    half: matrix products in float16, in the "standard" dialect only; precision fp16 needs it.
    """
    plan = Plan(precision, tuple(overrides), sensitivity, block, half)
    with WeightFile(path.with_name(path.name + ".data")) as weights:
        network = Network(checkpoint, dialect, plan, weights, positions=positions, kv=kv)
        network.describe(slots=slots, prompt=prompt, debug=debug, progress=progress)
        path.write_bytes(network.graph.build().SerializeToString(deterministic=True))
    return network.graph.interface


class Network:
    """Describes the network onto one graph."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        dialect: str,
        plan: Plan,
        weights: WeightFile | None,
        *,
        positions: int,
        kv: str,
        tap: Tap | None = None,
    ) -> None:
        if kv == "int8" and dialect != "ort":
            raise ValueError(f"dialect {dialect!r} has no 8-bit cache")
        if plan.half and dialect == "ort":
            raise ValueError(f"dialect {dialect!r} has no products in float16")
        self.checkpoint = checkpoint
        self.sizes = checkpoint.sizes
        self.plan = plan
        self.tap = tap
        self.positions = positions
        self.graph = Graph("gpt", OPSET, weights=weights)
        self.shape = Shape(
            heads=self.sizes.heads,
            width=self.sizes.head_dim,
            positions=positions,
            theta=self.sizes.rope_theta,
            epsilon=self.sizes.rms_eps,
            cache=kv,
            half=plan.half,
        )
        self.ops: Dialect = DIALECTS[dialect](self.graph, self.shape)

    def describe(self, *, slots: int, prompt: int, debug: bool = False, progress: Progress = silent) -> None:
        graph, sizes = self.graph, self.sizes
        books, width = sizes.codebooks, sizes.hidden
        ids = graph.input("ids", "int64", ("B", "S", books), (slots, prompt, books))
        text = graph.input("text", "int64", ("B", "S"), (slots, prompt))
        speaker = graph.input("speaker", "float32", ("B", width), (slots, width))
        lengths = graph.input("lengths", "int32", ("B",), (slots,))
        last = graph.input("last", "int64", ("B",), (slots,))
        refine = graph.input("refine", "bool", (1,), (1,))
        rows = sampling.controls(graph, slots, books)

        self.ops.begin(lengths, last, ids)
        x = self._embed(ids, text, speaker)
        hidden = self._layers(x, last, slots, progress)
        progress("heads", 0.9)
        Heads(self.ops, sizes, self.linear, self.checkpoint.token_id("[Ebreak]")).draw(
            hidden, rows, refine, debug
        )
        graph.output("codes", "codes", "int64", ("B", books), (slots, books))
        graph.output("end", "end", "int64", ("B",), (slots,))
        graph.output(hidden, "hidden", "float32", ("B", width), (slots, width))
        if debug:  # [B, 4, 626] for codes, [B, 1, 21178] for text
            most = (slots, books, max(sizes.audio_tokens, sizes.text_tokens))
            for name in ("logits", "probs"):
                graph.output(name, name, "float32", ("B", "G", "V"), most)
        progress("heads", 1.0)

    def linear(self, x: str, name: str, parts: Iterable[tuple[str, str]], ops: Dialect | None = None) -> str:
        """Several matrices of the checkpoint that multiply the same value, as one."""
        if self.tap is not None and ops is None:  # values inside a branch cannot be outputs
            self.tap(name, self.graph.tapped(x))
        tensors = [self.checkpoint.tensor(*part) for part in parts]
        matrix = tensors[0] if len(tensors) == 1 else np.concatenate(tensors)
        del tensors
        return (ops or self.ops).linear(x, name, self.plan.matrix(name, matrix))

    def _embed(self, ids: str, text: str, speaker: str) -> str:
        """[B, S, hidden]: the text embedding, or the sum of the codes' embeddings, or the speaker."""
        graph, sizes, node = self.graph, self.sizes, self.ops.node
        books, most = sizes.codebooks, sizes.audio_tokens
        tables = [self.checkpoint.tensor("embed", f"emb_code.{n}.weight") for n in range(books)]
        # A text token's id stands in the code columns too: cut to the table, its sum is not used.
        inside = node("Min", ids, graph.constant([most - 1]))
        inside = node("Add", inside, graph.constant(np.arange(books) * most))
        codes = self._lookup("emb_code", np.concatenate(tables), inside)
        codes = node("ReduceSum", codes, graph.constant([2]), keepdims=0)

        first = node("Gather", ids, graph.constant(0), axis=2)
        words = first
        if sizes.text_tokens < most:  # in small test models a code can lie outside the text table
            words = node("Min", first, graph.constant([sizes.text_tokens - 1]))
        words = self._lookup("emb_text", self.checkpoint.tensor("embed", "emb_text.weight"), words)
        is_text = node("Cast", text, to=TensorProto.BOOL)
        column = graph.constant([2])
        x = node("Where", node("Unsqueeze", is_text, column), words, codes)
        token = graph.constant(self.checkpoint.token_id("[spk_emb]"))
        here = node("Unsqueeze", node("And", node("Equal", first, token), is_text), column)
        return node("Where", here, node("Unsqueeze", speaker, graph.constant([1])), x)

    def _lookup(self, name: str, table: NDArray[np.float32], ids: str) -> str:
        return self.ops.lookup(name, self.plan.table(name, table), ids)

    def _layers(self, x: str, last: str, slots: int, progress: Progress) -> str:
        """The final norm's output [B, hidden] at each row's last token."""
        ops, sizes, shape = self.ops, self.sizes, self.shape
        dims = ("B", shape.heads, "P", shape.width)
        most = (slots, shape.heads, self.positions, shape.width)
        normed = ops.norm(x, self._gain("layers.0.input_layernorm"))
        for n in range(sizes.layers):
            progress(f"layer {n + 1} of {sizes.layers}", 0.9 * n / sizes.layers)
            attention, final = f"layers.{n}.self_attn", n == sizes.layers - 1
            past = [self.graph.input(f"past_{c}.{n}", shape.cache, dims, most) for c in "kv"]
            present = [f"present_{c}.{n}" for c in "kv"]
            parts = [("gpt", f"{attention}.{part}_proj.weight") for part in "qkv"]
            qkv = self.linear(normed, f"layers.{n}.qkv", parts)
            seen = ops.attention(qkv, (past[0], past[1]), (present[0], present[1]))
            for name in present:
                self.graph.output(name, name, shape.cache, dims, most)
            if final and self.tap is None:  # what follows is a token's own: only the last is wanted
                seen, x = self._at(seen, last), self._at(x, last)
            out = self.linear(seen, f"layers.{n}.out", [("gpt", f"{attention}.o_proj.weight")])
            normed, x = ops.add_norm(x, out, self._gain(f"layers.{n}.post_attention_layernorm"))
            mlp = f"layers.{n}.mlp"
            parts = [("gpt", f"{mlp}.{part}_proj.weight") for part in ("gate", "up")]
            gated = ops.gate(self.linear(normed, f"layers.{n}.gate_up", parts))
            down = self.linear(gated, f"layers.{n}.down", [("gpt", f"{mlp}.down_proj.weight")])
            after = "norm" if final else f"layers.{n + 1}.input_layernorm"
            normed, x = ops.add_norm(x, down, self._gain(after), last=final)
        return normed if self.tap is None else self._at(normed, last)

    def _at(self, value: str, last: str) -> str:
        """[B, S, N] at an index of S for every row: [B, N]."""
        index = self.ops.node("Unsqueeze", last, self.graph.constant([1]))
        return self.ops.node("GatherND", value, index, batch_dims=1)

    def _gain(self, name: str) -> str:
        return self.graph.weight(name, self.checkpoint.tensor("gpt", f"{name}.weight"))
