"""Work in streams: whether copies overlap, what waiting costs the processor, what a recorded step saves."""

from __future__ import annotations

import time
from typing import Any

from gpu_checking import Skip, require
from gpu_checking.memory import LARGE, best_s, opened


def streams() -> dict[str, Any]:
    """Copies in both directions, one after the other and at once, and the order that events make."""
    device = opened()
    first, second, event = device.stream(), device.stream(), device.event()
    block, there, back = device.allocate(2 * LARGE), device.pin(LARGE), device.pin(LARGE)

    def up() -> None:
        first.upload(block.address, there.array)

    def down() -> None:
        second.download(back.array, block.address + LARGE)

    def in_turn() -> None:
        up()
        first.synchronize()
        down()
        second.synchronize()

    def at_once() -> None:
        up()
        down()
        first.synchronize()
        second.synchronize()

    figures = {"in_turn_ms": best_s(in_turn) * 1e3, "at_once_ms": best_s(at_once) * 1e3}
    there.array[:] = 7
    up()
    event.record(first)
    second.wait(event)
    second.download(back.array, block.address)
    second.synchronize()
    require(bool((back.array == 7).all()), "a stream did not wait for the event of the other")
    overlap = figures["in_turn_ms"] / figures["at_once_ms"]
    found = {"device": device.name, "size": LARGE, **{k: round(v, 3) for k, v in figures.items()}}
    device.close()
    return {**found, "overlap": round(overlap, 2)}  # 1: none, 2: complete


def events() -> dict[str, Any]:
    """A wait must leave the processor alone: its time over the time that passes, while the device works."""
    device = opened()
    stream, event = device.stream(), device.event()
    free, _ = device.memory()
    size = min(256 << 20, free // 8)
    block = device.allocate(2 * size)
    require(event.done(), "an event that was not recorded is not done")
    stream.copy(block.address + size, block.address, size)
    stream.synchronize()
    begin = time.perf_counter()
    stream.copy(block.address + size, block.address, size)
    stream.synchronize()
    once_s = time.perf_counter() - begin
    again = max(1, min(2000, int(0.3 / once_s)))  # about 0.3 s of work

    for _ in range(again):
        stream.copy(block.address + size, block.address, size)
    event.record(stream)
    early = event.done()
    begin, spent = time.perf_counter(), time.thread_time()
    event.wait()
    wall, processor = time.perf_counter() - begin, time.thread_time() - spent
    require(event.done(), "an event is not done after the wait for it")
    require(not early, "an event was done before the work in front of it")
    figures = {
        "device": device.name,
        "wall_ms": round(wall * 1e3, 2),
        "processor_ms": round(processor * 1e3, 2),
    }
    device.close()
    if wall > 0.05:
        require(processor < wall / 4, f"waiting kept the processor busy: {figures}")
    return figures


def graphs() -> dict[str, Any]:
    """A step of many small copies: the host's time to put it into the stream, plainly and recorded."""
    from edged.engine.cuda_graph import StepGraphs

    device = opened()
    stream, parts, size = device.stream(), 40, 1024
    block, there, back = device.allocate(parts * size), device.pin(parts * size), device.pin(parts * size)

    def work() -> None:
        stream.upload(block.address, there.array)
        for part in range(1, parts):
            stream.copy(block.address + part * size, block.address, size)
        stream.download(back.array, block.address)

    steps = StepGraphs(stream, True)
    for value in (1, 2, 3, 4):
        there.array[:] = 0
        there.array[:size] = value
        steps.run("step", work)
        stream.synchronize()
        require(bool((back.array == value).all()), f"run {value} of a recorded step is wrong")
    if not steps.recorded:
        raise Skip("this driver records no graphs (see the line above)")
    plain, launched = (_host_us(stream, run) for run in (work, lambda: steps.run("step", work)))
    figures = {"device": device.name, "parts": parts + 1, "plain_us": plain, "launched_us": launched}
    steps.close()
    device.close()
    return figures


def _host_us(stream: Any, run: Any) -> float:
    """Median of the host's time for a step, the device's left out."""
    times = []
    for _ in range(200):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
        stream.synchronize()
    return round(sorted(times)[len(times) // 2] * 1e6, 1)
