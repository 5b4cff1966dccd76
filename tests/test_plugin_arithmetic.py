"""The plugin's arithmetic, built for the processor, against numpy and against the network without it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

pytest.importorskip("onnx", reason="the extra build is not installed")
import onnx
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from edged.compiler.chattts import plugged, standard
from edged.compiler.chattts.checkpoint import Checkpoint
from edged.compiler.chattts.dialect import OPSET, Shape, rotary
from edged.compiler.chattts.gpt import build_gpt
from edged.compiler.graph import Graph
from tests import masked_pos_enc
from tests.chattts_graphs import session
from tests.gpt_runner import Runner, padded, prompt_of

KINDS = [np.float32, np.float16]
GUARD = 7.0  # lies around the cache, and is there afterwards


def close(found: NDArray[Any], wanted: NDArray[Any]) -> None:
    """Single precision to 1e-6; half precision to the last place."""
    if found.dtype == np.float16:
        apart = np.abs(found.astype(np.float32) - wanted.astype(np.float16).astype(np.float32))
        last_place = np.spacing(np.abs(wanted).astype(np.float16)).astype(np.float32)
        assert (apart <= last_place).all()
    else:
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)


def tables(positions: int, width: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    return rotary(Shape(heads=1, width=width, positions=positions, theta=10_000.0, epsilon=1e-5))


@settings(deadline=None, max_examples=150)
@given(st.data())
def test_it_is_the_layer_by_definition_and_writes_nothing_else(data: st.DataObject) -> None:
    def draw(low: int, high: int) -> int:
        return data.draw(st.integers(low, high))

    rows, steps, heads, width = draw(1, 3), draw(1, 5), draw(1, 3), 2 * draw(1, 5)
    slots, positions, before = draw(1, 9), draw(1, 12), draw(0, 2)
    extremes = st.sampled_from([-(2**31), 2**31 - 1])
    first = np.array([data.draw(st.integers(-7, 14) | extremes) for _ in range(rows)], np.int32)
    kind, cache_kind = data.draw(st.sampled_from(KINDS)), data.draw(st.sampled_from(KINDS))
    rng = np.random.default_rng(draw(0, 99))
    qkv = rng.normal(0, 1, (rows, steps, 3 * heads * width)).astype(kind)
    # The rows in use lie between others of a larger cache.
    larger = np.full((2, before + rows + 1, heads, slots, width), GUARD, cache_kind)
    larger[:, before : before + rows] = rng.normal(0, 1, (2, rows, heads, slots, width))
    keys, values = larger[:, before : before + rows]
    wanted = masked_pos_enc.expected(qkv, keys, values, first, tables(positions, width))
    query, mask = masked_pos_enc.place(qkv, keys, values, first, tables(positions, width))
    for found, right in zip((query, keys, values), wanted, strict=False):
        close(found, right)
    np.testing.assert_array_equal(mask, wanted[3])
    assert (larger[:, :before] == GUARD).all()
    assert (larger[:, before + rows :] == GUARD).all()


def test_a_cache_keeps_every_bit_it_does_not_write() -> None:
    rng = np.random.default_rng(0)
    cache = rng.integers(0, 2**16, (2, 1, 2, 6, 4)).astype(np.uint16).view(np.float16)  # not numbers, too
    before = cache.view(np.uint16).copy()
    masked_pos_enc.place(np.ones((1, 2, 24), np.float16), *cache, np.array([3], np.int32), tables(6, 4))
    changed = (cache.view(np.uint16) != before).any(axis=(0, 1, 2, 4))
    np.testing.assert_array_equal(changed, [False, False, False, True, True, False])


def test_without_a_mask_the_rest_is_the_same() -> None:
    qkv = np.random.default_rng(0).normal(0, 1, (1, 2, 24)).astype(np.float32)
    some, others = np.zeros((2, 2, 1, 2, 6, 4), np.float32)
    first = np.array([1], np.int32)
    query, _ = masked_pos_enc.place(qkv, *some, first, tables(6, 4))
    again, none = masked_pos_enc.place(qkv, *others, first, tables(6, 4), mask=False)
    assert none is None
    np.testing.assert_array_equal(query, again)
    np.testing.assert_array_equal(some, others)


# -- against the network ------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["float32", "float16"])
def layer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Shape]:
    """What comes before attention, in the standard dialect, at the sizes of the real model."""
    shape = Shape(heads=12, width=64, positions=256, theta=10_000.0, epsilon=1e-5, cache=request.param)
    graph, most = Graph("layer", OPSET), (4, 12, 256, 64)
    ops = standard.Standard(graph, shape)
    ids = graph.input("ids", "int64", ("B", "S", 4), (4, 48, 4))
    lengths = graph.input("lengths", "int32", ("B",), (4,))
    last = graph.input("last", "int64", ("B",), (4,))
    qkv = graph.input("qkv", "float32", ("B", "S", 3 * 768), (4, 48, 3 * 768))
    past = [graph.input(f"past_{c}", shape.cache, ("B", 12, "P", 64), most) for c in "kv"]
    ops.begin(lengths, last, ids)
    query, _, _ = ops.place(qkv, (past[0], past[1]), ("present_k", "present_v"))
    graph.output(query, "query", "float32", ("B", 12, "S", 64), (4, 12, 48, 64))
    for name in ("present_k", "present_v"):
        graph.output(name, name, shape.cache, ("B", 12, "P", 64), most)
    graph.output(ops.mask("past_k"), "mask", "float32", ("B", 1, "S", "P"), (4, 1, 48, 256))
    path = tmp_path_factory.mktemp("layer") / f"{shape.cache}.onnx"
    graph.save(path)
    return path, shape


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("lengths", "last", "steps"),
    [
        ([0], [0], 1),
        ([250], [0], 1),
        ([5, 17, 3], [5, 17, 3], 20),
        ([200, 9, 47, 90], [0, 0, 0, 0], 1),
        ([95], [47], 48),
    ],
    ids=["first step", "late step", "padded prompt", "batch of steps", "later piece"],
)
def test_it_is_the_layer_of_the_standard_dialect(
    layer: tuple[Path, Shape], kind: type[np.floating[Any]], lengths: list[int], last: list[int], steps: int
) -> None:
    path, shape = layer
    rng, rows = np.random.default_rng(len(lengths)), len(lengths)
    qkv = rng.normal(0, 2, (rows, steps, 3 * 768)).astype(kind)
    caches = rng.normal(0, 1, (2, rows, 12, 200 + 56, 64)).astype(shape.cache)
    query, keys, values, mask = session(path).run(
        ["query", "present_k", "present_v", "mask"],
        {
            "ids": np.zeros((rows, steps, 4), np.int64),
            "lengths": np.array(lengths, np.int32),
            "last": np.array(last, np.int64),
            "qkv": qkv.astype(np.float32),
            "past_k": caches[0],
            "past_v": caches[1],
        },
    )
    first = np.array(lengths, np.int32) - np.array(last, np.int32)
    found = masked_pos_enc.place(qkv, *caches, first, rotary(shape))
    close(found.query, query)
    close(caches[0], keys)
    close(caches[1], values)
    np.testing.assert_array_equal(found.mask, mask)
    assert mask.min() == masked_pos_enc.MASKED


class MaskedPosEnc(OpRun):  # type: ignore[misc]
    """The node in onnx's own interpreter."""

    op_domain = plugged.DOMAIN

    def _run(self, *inputs: NDArray[Any], mask: int = 0, **_: Any) -> tuple[NDArray[Any], ...]:
        qkv, keys, values, first, *rotary_tables = inputs
        keys, values = keys.copy(), values.copy()
        query, hidden = masked_pos_enc.place(qkv, keys, values, first, tuple(rotary_tables), mask=bool(mask))
        return (query, keys, values) if hidden is None else (query, keys, values, hidden)


class GatherElements(OpRun):  # type: ignore[misc]
    """The interpreter's own takes no more than 64 of a row."""

    def _run(self, values: NDArray[Any], index: NDArray[Any], axis: int = 0) -> tuple[NDArray[Any]]:
        return (np.take_along_axis(values, index, axis),)


@pytest.fixture(scope="module")
def build(tiny_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    folder = tmp_path_factory.mktemp("plugged")

    def made(dialect: str, **options: Any) -> Any:
        path = folder / f"{dialect}{len(list(folder.iterdir()))}.onnx"
        with Checkpoint.open(tiny_checkpoint) as checkpoint:
            return path, build_gpt(checkpoint, path, dialect=dialect, positions=64, debug=True, **options)

    return made


@pytest.mark.parametrize(
    ("kv", "half"),
    [("float32", False), ("float16", False), ("float16", True)],
    ids=["fp32", "fp16 cache", "fp16"],
)
def test_the_network_with_the_plugin_is_the_network_without(
    build: Callable[..., Any], kv: str, half: bool
) -> None:
    """A padded prompt of two rows, then steps: same tokens, same cache. Half precision is rounded by the
    interpreter, as on a GPU; ONNX Runtime leaves the casts around products out."""
    apart = 1e-2 if half else 1e-3
    options = {"kv": kv, "half": half, "precision": "fp16" if half else "fp32"}
    plain = Runner(*build("standard", **options), rows=2, positions=64)
    path, _ = build("plugged", **options)
    past = {name: np.zeros_like(cache) for name, cache in plain.cache.items()}
    interpreter = ReferenceEvaluator(str(path), new_ops=[MaskedPosEnc, GatherElements])
    ids, text, lengths = padded([prompt_of(1, 7, 0), prompt_of(2, 3, 2)])
    at = np.array(lengths) - 1
    last = at
    for _ in range(4):
        wanted = plain(ids, text, at, last=last)
        values = interpreter.run(None, plain.feeds(ids, text, at, last=last) | past)
        found = dict(zip(interpreter.output_names, values, strict=True))
        np.testing.assert_array_equal(found["codes"], wanted["codes"])
        np.testing.assert_allclose(found["logits"], wanted["logits"], atol=apart)
        past = {name: found[name.replace("past_", "present_")] for name in past}
        for name, cache in past.items():
            np.testing.assert_allclose(cache, plain.cache[name], atol=2 * apart if kv == "float16" else 1e-4)
        ids, text = wanted["codes"][:, None], np.zeros((2, 1), np.int64)
        at, last = at + 1, np.zeros(2, np.int64)


def test_a_layer_is_one_node_and_the_first_gives_the_mask(build: Callable[..., Any]) -> None:
    path, interface = build("plugged")
    model = onnx.load(path, load_external_data=False)
    nodes = [node for node in model.graph.node if node.op_type == plugged.OPERATOR]
    layers = sum(spec.name.startswith("past_k") for spec in interface.inputs)
    assert [len(node.output) for node in nodes] == [4, *[3] * (layers - 1)]
    for node in nodes:
        given = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        assert given["mask"] == len(node.output) - 3
        assert (given["plugin_version"], given["plugin_namespace"]) == (b"1", b"edged")
        assert node.domain == "edged"
    assert {entry.domain for entry in model.opset_import} == {"", "edged"}
    assert not any(node.op_type in ("ScatterND", "Range") for node in model.graph.node)
    masks = {name for node in model.graph.node for name in node.input} & {nodes[0].output[3]}
    assert masks, "nobody adds the mask"
