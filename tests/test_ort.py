"""The ONNX Runtime engine on real networks: bound by address, rebound by shape, errors of one kind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from edged import settings
from edged.engine import select
from edged.engine.api import TensorSpec
from edged.engine.buffers import Arena
from edged.engine.ort import OrtEngine
from edged.errors import BundleBackendMismatch, EngineError, ShapeExceeded
from tests import bundles

ROWS, COLUMNS = 50, 4
TABLE = TensorSpec("table", "float32", (ROWS, COLUMNS))
INDEX = TensorSpec("index", "int64", (ROWS,))
OUT = TensorSpec("out", "float32", (ROWS, COLUMNS))


@pytest.fixture
def network(tmp_path):
    """out[i] = table[index[i]]"""
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Gather", ["table", "index"], ["out"])],
        "g",
        [
            value("table", TensorProto.FLOAT, ["N", COLUMNS]),
            value("index", TensorProto.INT64, ["F"]),
        ],
        [value("out", TensorProto.FLOAT, ["F", COLUMNS])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = tmp_path / "gather.onnx"
    onnx.save(model, path)
    return path


@pytest.fixture
def engine(network):
    opened = select.load(
        network, "onnxruntime", [TABLE, INDEX], [OUT], Arena(), settings.Engine(threads=1), name="g"
    )
    yield opened
    opened.close()


def gather(engine, table, index):
    engine.bind("table", table.shape)[:] = table
    engine.bind("index", index.shape)[:] = index
    out = engine.bind("out", (len(index), COLUMNS))
    engine.run()
    return out


def test_runs_at_any_shape_up_to_the_maximum(engine):
    generator = np.random.default_rng(0)
    for _ in range(60):
        n, f = generator.integers(1, ROWS + 1, 2)
        table = generator.standard_normal((n, COLUMNS), np.float32)
        index = generator.integers(0, n, f)
        np.testing.assert_array_equal(gather(engine, table, index), table[index])


def test_views_stay_the_same_memory(engine):
    first = gather(engine, np.ones((3, COLUMNS), np.float32), np.array([0, 1]))
    address = first.ctypes.data
    again = gather(engine, np.full((3, COLUMNS), 2, np.float32), np.array([0, 1]))
    assert again is first
    assert again.ctypes.data == address
    assert (first == 2).all()


def test_shapes_beyond_the_maximum_are_refused_before_native_code(engine):
    for name, shape in [("table", (ROWS + 1, COLUMNS)), ("index", (ROWS, 1)), ("out", (0, COLUMNS))]:
        with pytest.raises(ShapeExceeded):
            engine.bind(name, shape)
    with pytest.raises(ShapeExceeded, match="no tensor 'nope'"):
        engine.bind("nope", (1,))


def test_a_failed_run_is_an_engine_error_and_the_next_run_works(engine):
    table = np.ones((3, COLUMNS), np.float32)
    with pytest.raises(EngineError, match="g: run failed"):
        gather(engine, table, np.array([7]))
    np.testing.assert_array_equal(gather(engine, table, np.array([2])), table[:1])


def test_an_output_bound_to_the_wrong_shape_is_an_engine_error(engine):
    engine.bind("table", (3, COLUMNS))[:] = 1
    engine.bind("index", (2,))[:] = 0
    engine.bind("out", (5, COLUMNS))
    with pytest.raises(EngineError, match="run failed"):
        engine.run()


def test_errors_fit_one_line(engine):
    engine.bind("out", (5, COLUMNS))
    with pytest.raises(EngineError) as caught:
        engine.run()
    assert "\n" not in caught.value.message
    assert len(caught.value.message) < 400


@pytest.mark.parametrize("damage", ["empty", "noise", "truncated"])
def test_a_corrupt_model_names_the_file(network, damage):
    raw = network.read_bytes()
    broken = network.with_name("broken.onnx")
    broken.write_bytes({"empty": b"", "noise": b"\xff" * 100, "truncated": raw[: len(raw) // 2]}[damage])
    with pytest.raises(EngineError, match=r"broken\.onnx"):
        OrtEngine(broken, [TABLE, INDEX], [OUT], Arena(), name="g")


def test_a_missing_model_names_the_file(tmp_path):
    with pytest.raises(EngineError, match=r"absent\.onnx: no such file"):
        OrtEngine(tmp_path / "absent.onnx", [TABLE, INDEX], [OUT], Arena(), name="g")


@pytest.mark.parametrize(
    ("inputs", "outputs"),
    [
        ([TABLE], [OUT]),
        ([TABLE, INDEX], [TensorSpec("other", "float32", (ROWS, COLUMNS))]),
        ([TensorSpec("table", "float64", (ROWS, COLUMNS)), INDEX], [OUT]),
        ([TABLE, TensorSpec("index", "int64", (ROWS, 1))], [OUT]),
        ([TABLE, INDEX], [TensorSpec("out", "float32", (ROWS, COLUMNS - 1))]),
    ],
)
def test_a_manifest_that_contradicts_the_model_allocates_nothing(network, inputs, outputs):
    arena = Arena()
    with pytest.raises(EngineError, match="its manifest says"):
        OrtEngine(network, inputs, outputs, arena, name="g")
    assert arena.nbytes == 0


def test_an_unknown_backend_is_refused(network):
    with pytest.raises(BundleBackendMismatch, match="abacus") as caught:
        select.load(network, "abacus", [TABLE, INDEX], [OUT], Arena(), settings.Engine())
    assert caught.value.hint


def test_threads_zero_means_at_most_two(monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(8)))
    assert [select.threads(n) for n in (0, 1, 6)] == [2, 1, 6]
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0})
    assert select.threads(0) == 1


@pytest.fixture
def counter(tmp_path):
    """after = before + step, meant to be bound to the same memory."""
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Add", ["before", "step"], ["after"])],
        "g",
        [value("before", TensorProto.FLOAT, ["N", 3]), value("step", TensorProto.FLOAT, ["N", 3])],
        [value("after", TensorProto.FLOAT, ["N", 3])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = tmp_path / "add.onnx"
    onnx.save(model, path)
    return path


def test_an_output_can_share_the_memory_of_an_input_row_by_row(counter):
    specs = [TensorSpec(name, "float32", (4, 3)) for name in ("before", "step")]
    arena = Arena()
    engine = OrtEngine(
        counter, specs, [TensorSpec("after", "float32", (4, 3), alias="before")], arena, name="g"
    )
    assert len(arena.plan()) == 2
    state = engine.bind("before", (4, 3))
    engine.bind("step", (4, 3))[:] = 1
    for low, count in ((0, 4), (1, 2), (3, 1), (0, 1)):
        for name in ("before", "step", "after"):
            engine.bind(name, (count, 3), low)
        engine.run()
    np.testing.assert_array_equal(state[:, 0], [2, 2, 2, 2])
    engine.close()


@pytest.mark.parametrize("alias", ["nothing", "step"])
def test_memory_cannot_be_shared_with_what_does_not_fit(counter, alias):
    inputs = [TensorSpec("before", "float32", (4, 3)), TensorSpec("step", "float32", (2, 3))]
    with pytest.raises(EngineError, match="cannot share"):
        OrtEngine(counter, inputs, [TensorSpec("after", "float32", (4, 3), alias=alias)], Arena(), name="g")


def test_the_runtime_reports_its_use_to_nobody(tmp_path: Path) -> None:
    """Some builds of the runtime keep a database for that in the home directory, and a thread."""
    code = "import pathlib, sys; from tests import bundles; bundles.voice(pathlib.Path(sys.argv[1]))"
    env = {k: v for k, v in os.environ.items() if not k.startswith(("ORT_", "XDG_"))} | {
        "HOME": str(tmp_path),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    subprocess.run([sys.executable, "-c", code, str(bundles.tone())], env=env, check=True, timeout=60)
    assert list(tmp_path.rglob("*")) == []
