"""The two arenas: one allocation each, pieces that do not overlap, mirrors that are copied at once."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from edged.engine.device_memory import ALIGNMENT, DeviceMemory, aligned
from edged.errors import DeviceOutOfMemory, EngineError
from tests.cuda.fake import Fake, opened

SIZES = (1, 255, 256, 257, 4096, 10_000)


def test_sizes_are_rounded_up() -> None:
    assert [aligned(n) for n in (0, 1, 255, 256, 257)] == [0, 256, 256, 256, 512]


def test_one_allocation_each_however_many_pieces(gpu: Fake) -> None:
    device = opened()
    room = sum(map(aligned, SIZES))
    memory = DeviceMemory(device, room, room)
    carved = [(memory.carve(n), n) for n in SIZES]
    mirrors = [memory.mirror(n) for n in SIZES]
    assert (gpu.total("device"), gpu.total("pinned")) == (1, 1)
    assert (memory.device_bytes, memory.pinned_bytes) == (2 * room, room)
    pieces = sorted([*carved, *((address, array.nbytes) for address, array in mirrors)])
    assert all(address % ALIGNMENT == 0 for address, _ in pieces)
    assert all(a + n <= b for (a, n), (b, _) in pairwise(pieces))
    memory.close()
    memory.close()
    assert gpu.left() == {"context": 1}
    device.close()


def test_all_of_it_can_be_used(gpu: Fake) -> None:
    """The stand-in refuses an address outside of the allocation."""
    device = opened()
    memory, stream = DeviceMemory(device, 1024, 512), device.stream()
    for _ in range(2):
        stream.fill(memory.carve(512), 512)
    for _ in range(2):
        address, array = memory.mirror(200)
        stream.upload(address, array)
    stream.synchronize()


def test_neighbouring_mirrors_are_copied_at_once(gpu: Fake) -> None:
    device = opened()
    memory, stream = DeviceMemory(device, 512, 1024), device.stream()
    memory.carve(300)
    first, array = memory.mirror(300)
    second, other = memory.mirror(100)
    distance = other.ctypes.data - array.ctypes.data
    assert second - first == distance == aligned(300)
    array[:], other[:] = 3, 4
    whole = np.lib.stride_tricks.as_strided(array, (distance + 100,))
    stream.upload(first, whole)
    event = device.event()
    event.record(stream)
    event.wait()
    array[:], other[:] = 0, 0
    stream.download(whole, first)
    stream.synchronize()
    assert (array == 3).all()
    assert (other == 4).all()


def test_no_piece_beyond_the_size_or_after_the_start(gpu: Fake) -> None:
    memory = DeviceMemory(opened(), 512, 256)
    memory.carve(257)
    for ask in (memory.carve, memory.mirror):
        for nbytes in (513, 0, -1):
            with pytest.raises(EngineError, match="asked for"):
                ask(nbytes)
    with pytest.raises(EngineError, match="0 are left"):
        memory.carve(1)
    memory.mirror(1)
    with pytest.raises(EngineError, match="0 are left"):
        memory.mirror(1)
    other = DeviceMemory(opened(), 512, 512)
    other.seal()
    for ask in (other.carve, other.mirror):
        with pytest.raises(EngineError, match="sealed"):
            ask(1)


@pytest.mark.parametrize("call", ["cuMemAlloc_v2", "cuMemHostAlloc"])
def test_a_failed_arena_leaves_nothing_behind(gpu: Fake, call: str) -> None:
    device = opened()
    gpu.fail(call, 2)
    with pytest.raises(DeviceOutOfMemory):
        DeviceMemory(device, 4096, 4096)
    assert gpu.left() == {"context": 1}
    device.close()
    assert gpu.left() == {}
