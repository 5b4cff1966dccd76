"""The meter: rates over the last seconds, and reading while the engine thread writes."""

from __future__ import annotations

import threading
from time import monotonic

import pytest

from edged.meter import RECENT_S, RECENT_STEPS, Meter


def test_rates_are_of_the_last_seconds() -> None:
    meter = Meter()
    meter._started -= 100.0
    now = monotonic()
    assert meter.recent(now) == (0.0, 0.0)
    for n in range(40):
        meter.step(now - 5.0 + n * 0.1, now - 5.0 + n * 0.1 + 0.02, 1 + n % 2)
    meter.step(now - 60.0, now - 59.0, 64)  # long ago: counted, but in no rate
    rate, rows = meter.recent(now)
    assert rate == pytest.approx(40 / RECENT_S)
    assert rows == pytest.approx(1.5)
    assert (meter.steps, meter.row_steps) == (41, 124)
    assert meter.step_ms.percentiles().p50 == pytest.approx(20.0)


def test_a_young_daemon_has_the_rate_of_its_own_time() -> None:
    meter = Meter()
    now = meter._started + 2.0
    for n in range(10):
        meter.step(now - 1.0, now - 0.1 * n, 1)
    assert meter.recent(now)[0] == pytest.approx(5.0)


def test_more_steps_than_are_kept_do_not_lower_the_rate() -> None:
    meter = Meter()
    meter._started -= 100.0
    now = monotonic()
    for n in range(2 * RECENT_STEPS):
        end = now - (2 * RECENT_STEPS - n) * 1e-3
        meter.step(end - 1e-3, end, 2)
    assert meter.recent(now)[0] == pytest.approx(1000.0, rel=0.01)


def test_it_can_be_read_while_it_is_written() -> None:
    meter = Meter()
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            meter.step(0.0, monotonic(), 3)
            meter.slot_wait(0.01)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        until = monotonic() + 0.5
        while monotonic() < until:
            rate, rows = meter.recent(monotonic())
            assert rows in (0.0, 3.0)
            assert rate >= 0.0
            assert meter.slot_wait_ms.percentiles().max in (0.0, 10.0)
    finally:
        stop.set()
        thread.join()
