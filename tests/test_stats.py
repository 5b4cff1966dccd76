"""Percentiles and counters."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from edged.errors import Busy
from edged.stats import WINDOW, Stats, Window, rtf
from tests.test_job import make_job


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=300))
def test_percentiles_are_values_that_occurred_at_the_nearest_rank(values: list[float]) -> None:
    window = Window()
    for value in values:
        window.add(value)
    found = window.percentiles()
    assert found.count == len(values)
    assert found.max == round(max(values), 4)
    for quantile, got in ((50, found.p50), (90, found.p90), (99, found.p99)):
        expected = np.percentile(values, quantile, method="inverted_cdf")
        assert got == round(float(expected), 4)


def test_only_the_last_values_count() -> None:
    window = Window()
    for value in range(3 * WINDOW):
        window.add(float(value))
    assert window.percentiles().count == WINDOW
    assert window.percentiles().max == 3 * WINDOW - 1
    assert Window().percentiles().count == 0


def test_each_ending_is_counted_where_it_belongs() -> None:
    stats = Stats()
    done, cancelled, failed = make_job(), make_job(), make_job()
    done.timeline.audio_s, done.timeline.synthesis_s = 2.0, 0.5
    line = done.timeline
    line.received, line.text_s, line.engine, line.produced, line.first_audio = 1.0, 0.02, 1.05, 1.2, 1.25
    line.finished = 1.2
    done.done()
    cancelled.cancel()
    failed.fail(Busy("full"))
    for job in (done, cancelled, failed):
        stats.record(job)
    assert (stats.done, stats.cancelled, dict(stats.failed)) == (1, 1, {"busy": 1})
    assert rtf(done) == 0.25
    assert stats.rtf.percentiles().p50 == 0.25
    assert stats.first_audio_ms.percentiles().p50 == 250.0
    assert stats.to_engine_ms.percentiles().p50 == 30.0
    assert stats.from_engine_ms.percentiles().p50 == 50.0
    assert stats.overhead_ms.percentiles().p50 == 80.0
    assert rtf(cancelled) == 0.0
    stats.record(done, heard_at_once=False)
    assert (stats.rtf.percentiles().count, stats.first_audio_ms.percentiles().count) == (2, 1)
