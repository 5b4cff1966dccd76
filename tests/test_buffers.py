"""The arena: aligned, counted, never larger than declared."""

from __future__ import annotations

import numpy as np
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edged.engine.api import TensorSpec
from edged.engine.buffers import ALIGNMENT, Arena, Buffer
from edged.engine.plan import bound_row
from edged.errors import EngineError, ShapeExceeded

dtypes = st.sampled_from(["float32", "int64", "uint8", "bool", "float64"])
shapes = st.lists(st.integers(1, 9), min_size=1, max_size=4).map(tuple)


@given(dtypes, shapes, st.data())
def test_every_fitting_shape_is_a_view_of_the_same_memory(dtype, shape, data):
    buffer = Buffer(TensorSpec("x", dtype, shape))
    smaller = tuple(data.draw(st.integers(1, n)) for n in shape)
    view = buffer.view(smaller)
    assert view.shape == smaller
    assert view.dtype == np.dtype(dtype)
    assert view.ctypes.data == buffer.address
    assert buffer.address % ALIGNMENT == 0
    assert view.flags.c_contiguous
    assert view.flags.writeable
    assert not view.any()


@given(shapes, st.data())
def test_a_shape_that_does_not_fit_is_refused(shape, data):
    buffer = Buffer(TensorSpec("x", "float32", shape))
    axis = data.draw(st.integers(0, len(shape) - 1))
    for wrong in (0, -1, shape[axis] + data.draw(st.integers(1, 5))):
        with pytest.raises(ShapeExceeded, match="x: shape"):
            buffer.view((*shape[:axis], wrong, *shape[axis + 1 :]))
    with pytest.raises(ShapeExceeded):
        buffer.view((*shape, 1))


def test_plan_names_owners_and_counts_every_byte():
    arena = Arena()
    arena.allocate(TensorSpec("small", "uint8", (10,)), "voice")
    arena.array("large", (1000, 250), "float32", "voice")
    rows = arena.plan()
    assert [(r.name, r.shape, r.dtype, r.megabytes) for r in rows] == [
        ("voice.large", (1000, 250), "float32", 1.0),
        ("voice.small", (10,), "uint8", 1e-05),
    ]
    assert arena.nbytes == 1_000_010


def test_a_sealed_arena_allocates_no_more():
    arena = Arena()
    arena.array("a", (1,))
    arena.seal()
    with pytest.raises(EngineError, match="sealed"):
        arena.array("b", (1,))


def test_names_are_unique_until_their_owner_is_freed():
    arena = Arena()
    arena.array("a", (2,), owner="one")
    arena.array("a", (2,), owner="two")
    with pytest.raises(EngineError, match=r"'one\.a' exists"):
        arena.array("a", (2,), owner="one")
    arena.free("one")
    assert [row.name for row in arena.plan()] == ["two.a"]
    arena.array("a", (2,), owner="one")


@pytest.mark.parametrize("shape", [(), (0,), (3, 0)])
def test_an_empty_shape_is_an_error(shape):
    with pytest.raises(EngineError, match="empty shape"):
        Arena().array("a", shape)


def test_more_memory_than_there_is_is_an_engine_error():
    with pytest.raises(EngineError, match="no memory for buffer"):
        Arena().array("huge", (1 << 60,))


@given(shapes, st.data())
def test_a_view_from_a_row_lies_where_that_row_lies(shape, data):
    buffer = Buffer(TensorSpec("x", "float32", shape))
    whole = buffer.view(shape)
    row = data.draw(st.integers(0, shape[0] - 1))
    count = data.draw(st.integers(1, shape[0] - row))
    part = buffer.view((count, *shape[1:]), row)
    assert part.ctypes.data == buffer.address_of(row) == whole[row:].ctypes.data
    part[:] = 1
    assert whole.sum() == part.size
    assert (whole[row : row + count] == 1).all()
    for wrong, at in (((count, *shape[1:]), shape[0]), ((shape[0] - row + 1, *shape[1:]), row or 1)):
        with pytest.raises(ShapeExceeded):
            buffer.view(wrong, at)
    if len(shape) > 1 and row:
        with pytest.raises(ShapeExceeded, match="from row"):
            buffer.view((count, *shape[1:-1], shape[-1] + 1), row)


def test_a_buffer_is_resident_from_the_seal_on_and_keeps_its_content():
    """A plan that is refused before the seal has cost next to nothing."""

    def resident() -> int:
        return psutil.Process().memory_info().rss

    arena = Arena()
    before = resident()
    large = arena.array("large", (1 << 24,))
    large[5_000_000:5_000_100] = 7.0
    assert resident() - before < large.nbytes // 2
    arena.seal()
    assert resident() - before > large.nbytes * 0.9
    assert (np.flatnonzero(large) == np.arange(5_000_000, 5_000_100)).all()
    assert large[5_000_000] == 7.0


def test_weights_and_bounds_are_in_the_plan_but_are_no_buffers():
    arena = Arena()
    arena.array("a", (250_000,), owner="v")
    arena.weights("v.net", 3_000_000)
    arena.note(bound_row("limits.reply_mb", 2_000_000))
    assert [(r.name, r.kind, r.megabytes) for r in arena.plan()] == [
        ("v.net.weights", "weights", 3.0),
        ("limits.reply_mb", "bound", 2.0),
        ("v.a", "buffer", 1.0),
    ]
    assert arena.nbytes == 1_000_000
    arena.free("v")
    assert [r.name for r in arena.plan()] == ["limits.reply_mb"]
