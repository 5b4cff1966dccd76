"""The device over real pycuda and the stand-in for the driver: made, used, failing, closed."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import pytest

from edged.engine.cuda import Device
from edged.errors import CudaError, CudaUnavailable, DeviceOutOfMemory, EngineError
from tests.cuda.fake import Fake, opened

NOT_FOUND, NO_DEVICE, UNKNOWN, ILLEGAL_ADDRESS, OUT_OF_MEMORY = 500, 100, 999, 700, 2


def elsewhere(function: Callable[[], object]) -> BaseException | None:
    """Runs it in a thread, which ends; what it raised."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            function()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return raised[0] if raised else None


def test_a_device_tells_what_it_is(gpu: Fake) -> None:
    device = opened()
    assert device.name == "fake device (host memory)"
    assert device.capability == (8, 7)
    assert device.driver == 13000
    free, total = device.memory()
    assert 0 < free <= total
    block = device.allocate(1 << 20)
    assert device.memory() == (free - (1 << 20), total)
    block.free()
    assert device.memory() == (free, total)
    device.close()


def test_close_frees_all_that_is_left(gpu: Fake) -> None:
    device = opened()
    device.allocate(1000)
    device.pin(1000)
    stream, event = device.stream(), device.event()
    event.record(stream)
    assert gpu.left() == {"device": 1, "pinned": 1, "stream": 1, "event": 2, "context": 1}
    device.close()
    assert gpu.left() == {}
    device.close()
    for use in (device.use, device.stream, lambda: device.allocate(1), device.memory):
        with pytest.raises(EngineError, match="closed"):
            use()


def test_what_is_freed_before_is_not_freed_twice(gpu: Fake) -> None:
    device = opened()
    block, pinned, stream, event = device.allocate(9), device.pin(9), device.stream(), device.event()
    for free in (block.free, pinned.free, stream.close, event.close) * 2:
        free()
    assert gpu.left() == {"context": 1}
    assert gpu.calls("cuMemFree_v2") == gpu.calls("cuMemFreeHost") == 1
    device.close()
    assert gpu.left() == {}
    block.free()


def test_one_thread_makes_another_works_a_third_closes(gpu: Fake) -> None:
    """Each of them ends: with a context left on pycuda's stack of the thread, that would end the process."""
    made: list[Device] = []
    assert elsewhere(lambda: made.append(Device())) is None
    device = made[0]
    block, pinned, stream = device.allocate(64), device.pin(64), device.stream()

    def work() -> None:
        with pytest.raises(CudaError, match="CUDA_ERROR_INVALID_CONTEXT"):
            stream.upload(block.address, pinned.array)
        before = gpu.calls("cuCtxSetCurrent")
        for _ in range(3):
            device.use()
        assert gpu.calls("cuCtxSetCurrent") == before + 1
        stream.upload(block.address, pinned.array)
        device.allocate(64)  # a context of the driver's and one of pycuda's in one thread
        stream.download(pinned.array, block.address)
        stream.synchronize()

    assert elsewhere(work) is None
    assert elsewhere(device.close) is None
    assert gpu.left() == {}


def test_a_second_device_after_the_first(gpu: Fake) -> None:
    for _ in range(3):
        device = opened()
        device.allocate(100)
        device.close()
    assert gpu.left() == {}


def test_fresh_memory_is_zero(gpu: Fake) -> None:
    device = opened()
    block, pinned, stream = device.allocate(5000), device.pin(5000), device.stream()
    assert not pinned.array.any()
    pinned.array[:] = 7
    stream.download(pinned.array, block.address)
    stream.synchronize()
    assert not pinned.array.any()


def test_copies(gpu: Fake) -> None:
    device = opened()
    block, stream = device.allocate(6000), device.stream()
    sent = np.arange(250, dtype=np.float32)
    back = np.zeros_like(sent)
    stream.upload(block.address, sent)
    stream.copy(block.address + 2000, block.address, 1000)
    stream.fill(block.address + 2400, 200)
    stream.download(back, block.address + 2000)
    stream.synchronize()
    expected = sent.copy()
    expected[100:150] = 0
    assert np.array_equal(back, expected)


def test_rows_are_copied_by_their_beginnings(gpu: Fake) -> None:
    device = opened()
    heads, positions, width = 3, 7, 4
    cache = np.arange(2 * heads * positions * width, dtype=np.int32).reshape(2, heads, positions, width)
    block, stream = device.allocate(cache.nbytes), device.stream()
    stream.upload(block.address, cache)
    count, row = 5, cache[0].nbytes
    stream.copy_rows(block.address + row, block.address, count * width * 4, heads, positions * width * 4)
    back = np.zeros_like(cache)
    stream.download(back, block.address)
    stream.synchronize()
    cache[1, :, :count] = cache[0, :, :count]
    assert np.array_equal(back, cache)


def test_the_host_sees_a_result_after_the_event_and_not_before(gpu: Fake) -> None:
    device = opened()
    block, pinned, stream, event = device.allocate(8), device.pin(8), device.stream(), device.event()
    assert event.done()
    stream.fill(block.address, 8)
    pinned.array[:] = 9
    stream.download(pinned.array, block.address)
    event.record(stream)
    assert not event.done()
    assert pinned.array.all()
    event.wait()
    assert event.done()
    assert not pinned.array.any()


def test_asking_an_event_comes_to_an_end(gpu: Fake) -> None:
    device = opened()
    block, stream, event = device.allocate(8), device.stream(), device.event()
    for _ in range(5):
        stream.fill(block.address, 8)
    event.record(stream)
    asked = 0
    while not event.done():
        asked += 1
        assert asked < 100
    assert asked > 1


def test_a_stream_waits_for_the_event_of_another(gpu: Fake) -> None:
    device = opened()
    block, pinned = device.allocate(8), device.pin(8)
    first, second, event = device.stream(), device.stream(), device.event()
    pinned.array[:] = 5
    first.upload(block.address, pinned.array)
    event.record(first)
    second.wait(event)
    back = device.pin(8)
    second.download(back.array, block.address)
    second.synchronize()
    assert (back.array == 5).all()


@pytest.mark.parametrize(
    ("call", "code"),
    [("cuInit", NO_DEVICE), ("cuInit", UNKNOWN), ("cuDevicePrimaryCtxRetain", ILLEGAL_ADDRESS)],
)
def test_no_device_can_be_had(gpu: Fake, call: str, code: int) -> None:
    gpu.fail(call, code)
    with pytest.raises(CudaUnavailable, match=f"{call} failed"):
        Device()
    assert gpu.left() == {}


def test_a_device_that_is_not_there(gpu: Fake) -> None:
    with pytest.raises(CudaUnavailable, match=r"CUDA device 3: cuDeviceGet .*CUDA_ERROR_INVALID_DEVICE"):
        Device(3)


FAILURES = {
    "cuMemAlloc_v2": lambda device, stream, block, pinned: device.allocate(64),
    "cuMemsetD8_v2": lambda device, stream, block, pinned: device.allocate(64),
    "cuCtxSynchronize": lambda device, stream, block, pinned: device.allocate(64),
    "cuMemHostAlloc": lambda device, stream, block, pinned: device.pin(64),
    "cuStreamCreate": lambda device, stream, block, pinned: device.stream(),
    "cuEventCreate": lambda device, stream, block, pinned: device.stream(),
    "cuMemGetInfo_v2": lambda device, stream, block, pinned: device.memory(),
    "cuCtxPushCurrent_v2": lambda device, stream, block, pinned: device.memory(),
    "cuMemcpyHtoDAsync_v2": lambda device, stream, block, pinned: stream.upload(block.address, pinned.array),
    "cuMemcpyDtoHAsync_v2": lambda device, stream, block, pinned: stream.download(
        pinned.array, block.address
    ),
    "cuMemcpyDtoDAsync_v2": lambda device, stream, block, pinned: stream.copy(
        block.address, block.address + 32, 32
    ),
    "cuMemcpy2DAsync_v2": lambda device, stream, block, pinned: stream.copy_rows(
        block.address + 32, block.address, 4, 2, 8
    ),
    "cuMemsetD8Async": lambda device, stream, block, pinned: stream.fill(block.address, 64),
    "cuEventRecord": lambda device, stream, block, pinned: stream.synchronize(),
    "cuEventSynchronize": lambda device, stream, block, pinned: stream.synchronize(),
    "cuCtxSetCurrent": lambda device, stream, block, pinned: elsewhere_raises(device.use),
}


def elsewhere_raises(function: Callable[[], object]) -> None:
    error = elsewhere(function)
    if error:
        raise error


@pytest.mark.parametrize("call", FAILURES)
def test_every_failure_has_its_type_and_leaves_nothing_behind(gpu: Fake, call: str) -> None:
    device = opened()
    stream, block, pinned = device.stream(), device.allocate(64), device.pin(64)
    kept = gpu.left()
    for code, kind, name in (
        (ILLEGAL_ADDRESS, CudaError, "ILLEGAL_ADDRESS"),
        (OUT_OF_MEMORY, DeviceOutOfMemory, "OUT_OF_MEMORY"),
    ):
        gpu.fail(call, code)
        with pytest.raises(CudaError, match=f"{call.removesuffix('_v2')}.*CUDA_ERROR_{name}") as caught:
            FAILURES[call](device, stream, block, pinned)
        assert type(caught.value) is kind
        gpu.fail(call, 0)
        assert gpu.left() == kept
    FAILURES[call](device, stream, block, pinned)
    device.close()
    assert gpu.left() == {}


def test_more_than_there_is(gpu: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_CUDA_MEMORY_MB", "10")
    device = opened()
    with pytest.raises(DeviceOutOfMemory, match=r"11\.5 MB of device memory"):
        device.allocate(11 << 20)
    device.close()
    assert gpu.left() == {}


def test_an_address_of_no_allocation_is_refused(gpu: Fake) -> None:
    device = opened()
    block, stream = device.allocate(64), device.stream()
    with pytest.raises(CudaError, match="INVALID_VALUE"):
        stream.fill(block.address + 1, 64)
