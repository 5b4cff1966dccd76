"""The sampling rules of ChatTTS as part of the network: from scores to the next codes.

Build time only; standard operators, so every dialect shares it. Order of the rules, as published:
temperature, repetition penalty over the last 16 codes of the same codebook, nucleus (top-p, at least 3
kept), top-k (at least 3), no end before the minimum length, draw. The draw inverts the cumulative
distribution at a number that comes in as an input, so a job's noise is its own and a seed repeats it.
Neighbour: `gpt.py` calls `sample` once for the audio codes and once for text.

No full sort: what top-k keeps is always among the best few, and the mass of the rest follows from the
softmax over everything. With `adaptive` the number of candidates is the largest top_k of the rows, at
most `width`; without, it is `width`, because TensorRT wants to know it when it builds. Measured for
4 x 626 scores on one core: 191 us with all 626 sorted, 55 us with 32. All tensors are [B, G, ...]:
G = 4 codebooks, or 1 for text.

Where scores are exactly equal at a border, the reference keeps them by the order of its sort; here the
lower index stays.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from onnx import TensorProto

from edged.compiler.graph import Graph

WINDOW = 16  # codes of each codebook that the repetition penalty looks back on
KEPT = 3  # at least so many candidates survive top-p and top-k
_LOWEST = -3.0e38  # instead of -inf: softmax gives an exact 0 as well, and no engine makes it a NaN


@dataclass(frozen=True)
class Controls:
    """Names of the per-row inputs, each [B] unless said."""

    temperature: str
    top_p: str
    top_k: str
    penalty: str
    ban_end: str
    uniform: str  # [B, 4]
    greedy: str
    history: str  # [B, WINDOW, 4], -1 = empty


@dataclass(frozen=True)
class Sampled:
    """Names of the results."""

    codes: str  # int64 [B, G]
    end: str  # int64 [B]: 1 when any codebook drew the end token
    candidates: str  # int64 [B, G, width], the best first
    probabilities: str  # float32 [B, G, width] of the candidates


def controls(graph: Graph, slots: int, codebooks: int) -> Controls:
    """Declares the inputs on a graph."""

    def one(name: str, dtype: str, *dims: int) -> str:
        return graph.input(name, dtype, ("B", *dims), (slots, *dims))

    return Controls(
        temperature=one("temperature", "float32"),
        top_p=one("top_p", "float32"),
        top_k=one("top_k", "int64"),
        penalty=one("penalty", "float32"),
        ban_end=one("ban_end", "int64"),
        uniform=one("uniform", "float32", codebooks),
        greedy=one("greedy", "int64"),
        history=one("history", "int64", WINDOW, codebooks),
    )


def sample(
    graph: Graph,
    scores: str,
    rows: Controls,
    *,
    groups: int,
    tokens: int,
    width: int,
    end: int,
    adaptive: bool = False,
) -> Sampled:
    """Adds the rules to a graph. scores: float32 [B, groups, tokens]; the columns of `uniform` and
    `history` from 0 to groups - 1 are used; top_k above `width` counts as `width`."""
    width = min(width, tokens)
    columns = graph.constant([1, 2])

    def column(name: str) -> str:  # [B] -> [B, 1, 1]
        return str(graph.node("Unsqueeze", [name, columns]))

    uniform, history = rows.uniform, rows.history
    if groups == 1:
        first, second = graph.constant([0]), graph.constant([1])
        uniform = graph.node("Slice", [uniform, first, second, graph.constant([1])])
        history = graph.node("Slice", [history, first, second, graph.constant([2])])

    scaled = graph.node("Div", [scores, column(rows.temperature)])
    scaled = _penalised(graph, scaled, history, column(rows.penalty))
    k = graph.constant([width])
    always = graph.constant(np.where(np.arange(width) < KEPT, 4.0, 0.0)[None, None], "float32")
    if adaptive:
        most = graph.node("ReduceMax", [rows.top_k], keepdims=1)
        k = graph.node("Min", [graph.node("Max", [most, graph.constant([KEPT])]), k])
        always = graph.node("Slice", [always, graph.constant([0]), k, graph.constant([2])])
    values, candidates = graph.node("TopK", [scaled, k], 2, axis=2, largest=1, sorted=1)

    # Nucleus: a candidate goes when it and all below it hold no more than 1 - top_p of the mass.
    mass = graph.node("GatherElements", [graph.node("Softmax", [scaled], axis=2), candidates], axis=2)
    axis = graph.constant(2)
    if width == tokens and not adaptive:
        tail = graph.node("CumSum", [mass, axis], reverse=1)  # smallest first: exact where it is small
    else:
        above = graph.node("CumSum", [mass, axis], exclusive=1)
        tail = graph.node("Sub", [graph.constant(1.0, "float32"), above])
    outside = graph.node("Sub", [graph.constant(1.0, "float32"), column(rows.top_p)])
    keep = graph.node("Greater", [graph.node("Add", [tail, always]), outside])

    # Top-k by value, so that scores equal to the k-th stay, as published.
    rank = graph.node("Max", [column(rows.top_k), graph.constant([[[KEPT]]])])
    rank = graph.node("Min", [rank, k])
    rank = graph.node("Add", [rank, graph.constant(np.full((1, groups, 1), -1))])
    least = graph.node("GatherElements", [values, rank], axis=2)
    keep = graph.node("And", [keep, graph.node("GreaterOrEqual", [values, least])])

    banned = graph.node("Mul", [rows.ban_end, graph.constant(end + 1)])  # end + 1, or 0 for none
    banned = column(graph.node("Sub", [banned, graph.constant(1)]))
    spared = graph.node("Not", [graph.node("Equal", [candidates, banned])])
    keep = graph.node("And", [keep, spared])

    left = graph.node("Where", [keep, values, graph.constant(_LOWEST, "float32")])
    probabilities = graph.node("Softmax", [left], axis=2)

    # Greedy is the draw at 0: the first candidate that is left.
    free = graph.node("Sub", [graph.constant(1), rows.greedy])
    free = graph.node("Unsqueeze", [graph.node("Cast", [free], to=TensorProto.FLOAT), graph.constant([1])])
    draw = graph.node("Unsqueeze", [graph.node("Mul", [uniform, free]), graph.constant([2])])
    reached = graph.node("CumSum", [probabilities, axis])
    # A draw beyond the rounded sum finds none above it; ArgMax then answers 0, a candidate like any.
    beyond = graph.node("Cast", [graph.node("Greater", [reached, draw])], to=TensorProto.FLOAT)
    chosen = graph.node("ArgMax", [beyond], axis=2, keepdims=1)
    codes = graph.node("GatherElements", [candidates, chosen], axis=2)
    codes = graph.node("Squeeze", [codes, graph.constant([2])])
    ended = graph.node("Cast", [graph.node("Equal", [codes, graph.constant(end)])], to=TensorProto.INT64)
    ended = graph.node("ReduceMax", [ended, graph.constant([1])], keepdims=0)
    return Sampled(codes, ended, candidates, probabilities)


def _penalised(graph: Graph, scores: str, history: str, penalty: str) -> str:
    """Divides positive scores by penalty ** (times seen), multiplies negative ones.

    Only the columns that the history names are read and written. An empty entry is taken for column 0
    and rewrites it with the count that column 0 really has, so every duplicate writes the same number.
    """
    seen = graph.node("Transpose", [history], perm=[0, 2, 1])
    at = graph.node("Max", [seen, graph.constant([[[0]]])])
    same = graph.node(
        "Equal",
        [
            graph.node("Unsqueeze", [at, graph.constant([3])]),
            graph.node("Unsqueeze", [seen, graph.constant([2])]),
        ],
    )
    times = graph.node(
        "ReduceSum", [graph.node("Cast", [same], to=TensorProto.FLOAT), graph.constant([3])], keepdims=0
    )
    alpha = graph.node("Pow", [penalty, times])
    old = graph.node("GatherElements", [scores, at], axis=2)
    new = graph.node(
        "Where",
        [
            graph.node("Less", [old, graph.constant(0.0, "float32")]),
            graph.node("Mul", [old, alpha]),
            graph.node("Div", [old, alpha]),
        ],
    )
    return str(graph.node("ScatterElements", [scores, at, new], axis=2))


def spread(graph: Graph, sampled: Sampled, groups: int, tokens: int) -> str:
    """The probabilities over the whole vocabulary, [B, groups, tokens]: for verification only."""
    first = graph.node("Slice", [sampled.probabilities, *(graph.constant([n]) for n in (0, 1, 2))])
    none = graph.node("Mul", [first, graph.constant(np.zeros((1, groups, tokens)), "float32")])
    return str(graph.node("ScatterElements", [none, sampled.candidates, sampled.probabilities], axis=2))


def sampler(
    groups: int, tokens: int, *, width: int, end: int, slots: int = 4, adaptive: bool = False
) -> Graph:
    """The rules as a network of their own: scores [B, groups, tokens] in; codes, end, probs out."""
    graph = Graph("sampler", 21)
    dims = (groups, tokens)
    scores = graph.input("scores", "float32", ("B", *dims), (slots, *dims))
    rows = controls(graph, slots, groups)
    sampled = sample(
        graph, scores, rows, groups=groups, tokens=tokens, width=width, end=end, adaptive=adaptive
    )
    graph.output(sampled.codes, "codes", "int64", ("B", groups), (slots, groups))
    graph.output(sampled.end, "end", "int64", ("B",), (slots,))
    probs = spread(graph, sampled, groups, tokens)
    graph.output(probs, "probs", "float32", ("B", *dims), (slots, *dims))
    return graph
