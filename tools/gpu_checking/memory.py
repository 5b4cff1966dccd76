"""Memory: the arenas that edged allocates, rates of copies, the bandwidth that bounds a decoder step."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from gpu_checking import require

if TYPE_CHECKING:
    from edged.engine.cuda import Device

SEED = 1
LARGE, SMALL = 64 << 20, 4096  # bytes of the copies that are timed
TURNS = 5


def opened() -> Device:
    from edged.engine.cuda import Device

    device = Device()
    device.use()
    return device


def best_s(run: Callable[[], object], turns: int = TURNS) -> float:
    """The shortest of some runs after one that is not counted."""
    run()
    times = []
    for _ in range(turns):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return min(times)


def arenas() -> dict[str, Any]:
    """Both arenas, all copies that edged makes between and within them, and that all of it is given back."""
    from edged.engine.device_memory import DeviceMemory

    device = opened()
    before, total = device.memory()
    memory, stream = DeviceMemory(device, 32 << 20, 16 << 20), device.stream()
    during, _ = device.memory()
    address, there = memory.mirror(8 << 20)
    other, back = memory.mirror(8 << 20)
    carved = memory.carve(8 << 20)
    there[:] = np.random.default_rng(SEED).integers(0, 256, there.size, np.uint8)
    memory.seal()

    stream.download(back, carved)
    stream.synchronize()
    require(not back.any(), "fresh memory is not zero")
    stream.upload(address, there)
    stream.copy(carved, address, there.size)
    stream.fill(carved, 1000)
    stream.copy(other, carved, there.size)
    stream.download(back, other)
    stream.synchronize()
    require(not back[:1000].any() and np.array_equal(back[1000:], there[1000:]), "copies are wrong")

    rows, pitch, width = 64, 4096, 1000
    stream.fill(carved, rows * pitch)
    stream.copy_rows(carved, address, width, rows, pitch)
    stream.copy(other, carved, there.size)
    stream.download(back, other)
    stream.synchronize()
    found, wanted = (array[: rows * pitch].reshape(rows, pitch) for array in (back, there))
    require(np.array_equal(found[:, :width], wanted[:, :width]), "copied rows are wrong")
    require(not found[:, width:].any(), "copied rows are too wide")
    memory.close()
    after, _ = device.memory()
    figures = {
        "device": device.name,
        "free_before": before,
        "free_during": during,
        "free_after": after,
        "total": total,
    }
    device.close()
    return figures


def copies() -> dict[str, Any]:
    """Rates of large copies with page-locked and pageable memory, and the time of a step's small ones."""
    device = opened()
    block, pinned, stream = device.allocate(LARGE), device.pin(LARGE), device.stream()
    pageable = np.ones(LARGE, np.uint8)
    figures: dict[str, Any] = {"device": device.name, "size": LARGE}
    for name, array in (("pinned", pinned.array), ("pageable", pageable)):
        for way in ("up", "down"):

            def run(array: Any = array, way: str = way) -> None:
                if way == "up":
                    stream.upload(block.address, array)
                else:
                    stream.download(array, block.address)
                stream.synchronize()

            figures[f"{name}_{way}_gb_s"] = round(LARGE / best_s(run) / 1e9, 2)
    small, event = pinned.array[:SMALL], device.event()

    def step() -> None:
        stream.upload(block.address, small)
        stream.download(small, block.address)
        event.record(stream)
        event.wait()

    figures["small_round_trip_us"] = round(best_s(step, 200) * 1e6, 1)
    device.close()
    return figures


def bandwidth() -> dict[str, Any]:
    """Of the device's memory: bytes read and written by copies within it."""
    device = opened()
    free, _ = device.memory()
    size = min(256 << 20, free // 8)
    block, stream, again = device.allocate(2 * size), device.stream(), 10

    def run() -> None:
        for _ in range(again):
            stream.copy(block.address + size, block.address, size)
        stream.synchronize()

    figures = {"device": device.name, "size": size, "gb_s": round(2 * size * again / best_s(run) / 1e9, 1)}
    device.close()
    return figures
