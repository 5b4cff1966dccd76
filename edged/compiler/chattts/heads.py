"""The two heads of the ChatTTS network, for audio codes and for words, and the draw from one of them.

Build time only. Neighbours: `gpt.py` has the layers before them, `sampling.py` the rules of the draw.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from edged.compiler.chattts import sampling
from edged.compiler.chattts.dialect import Dialect
from edged.compiler.chattts.layout import Sizes
from edged.compiler.graph import Graph

TEXT_WIDTH = 256  # most candidates of the text head: a larger top_k counts as this
# (value, name, parts of the checkpoint, where to write) -> the value times these matrices
Linear = Callable[[str, str, list[tuple[str, str]], Dialect], str]


@dataclass(frozen=True)
class Heads:
    """ops: writes onto the network's graph; linear: of the network; end_word: id of the token [Ebreak]."""

    ops: Dialect
    sizes: Sizes
    linear: Linear
    end_word: int

    def draw(self, hidden: str, rows: sampling.Controls, refine: str, debug: bool) -> None:
        """Codes and end from the text head where `refine` says so, from the code head where not."""
        graph, stages, more = self.ops.graph, ("text", "code"), ["logits", "probs"] if debug else []
        names, branches = ["codes", "end"], [graph.branch(stage) for stage in stages]
        if self.ops.branches:
            names += more
            values = [self._head(b, hidden, rows, s, debug) for b, s in zip(branches, stages, strict=True)]
        else:
            both = [self._head(graph, hidden, rows, stage, debug) for stage in stages]
            for n, name in enumerate(names):
                graph.node("Where", [refine, both[0][n], both[1][n]], [name])
            names = more  # of different shapes, and for tests only
            values = [[b.node("Identity", [v]) for v in h[2:]] for b, h in zip(branches, both, strict=True)]
        if names:
            text, code = (b.subgraph(found) for b, found in zip(branches, values, strict=True))
            graph.node("If", [refine], names, then_branch=text, else_branch=code)

    def _head(self, graph: Graph, hidden: str, rows: sampling.Controls, stage: str, debug: bool) -> list[str]:
        """Scores of one head and the draw from them: codes, end; for tests scores and probabilities."""
        sizes = self.sizes
        ops = self.ops.on(graph)
        groups = sizes.codebooks if stage == "code" else 1
        if stage == "code":
            parts = [("embed", f"head_code.{n}.weight") for n in range(groups)]
            tokens, width, end = sizes.audio_tokens, sizes.audio_tokens, sizes.audio_tokens - 1
        else:
            parts = [("embed", "head_text.weight")]
            tokens, width, end = sizes.text_tokens, TEXT_WIDTH, self.end_word
        scores = self.linear(hidden, f"head_{stage}", parts, ops)
        scores = ops.node("Reshape", scores, graph.constant([0, groups, tokens]))
        if not ops.branches:  # words may lie outside the table of codes: this head then draws for nothing
            inside = ops.node("Min", rows.history, graph.constant([tokens - 1]))
            rows = replace(rows, history=inside)
        sampled = sampling.sample(
            graph,
            scores,
            rows,
            groups=groups,
            tokens=tokens,
            width=width,
            end=end,
            adaptive=ops.adaptive_topk,
        )
        codes = sampled.codes
        if groups == 1:  # the text id, once for each codebook
            codes = ops.node("Add", codes, graph.constant(np.zeros((1, sizes.codebooks))))
        outputs = [codes, sampled.end]
        if debug:
            outputs += [scores, sampling.spread(graph, sampled, groups, tokens)]
        return outputs
