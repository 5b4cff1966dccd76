"""Statistics for Prometheus: read back by its own parser, from the file and from the address."""

from __future__ import annotations

import http.client
import socket
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

from edged import exporter_http
from edged.errors import ShuttingDown
from edged.exporter import Exporter
from edged.metrics import CONTENT_TYPE, text
from edged.protocol import NOTHING, Percentiles, StatsReply
from edged.settings import Stats
from tests.daemon import running

FIGURES = Percentiles(count=3, p50=100.0, p90=200.0, p99=300.0, max=400.0)


def reply(**changes: Any) -> StatsReply:
    numbers = {
        f.name: 7 if f.type is int else 7.5
        for f in msgspec.structs.fields(StatsReply)
        if f.type in (int, float) and f.name != "v"
    }
    percentiles = {f.name: FIGURES for f in msgspec.structs.fields(StatsReply) if f.type is Percentiles}
    return StatsReply(**{**numbers, **percentiles, "failed": {"busy": 2}, "rejected": {}, **changes})


def families(document: str) -> dict[str, Any]:
    return {family.name: family for family in text_string_to_metric_families(document)}


def value(found: dict[str, Any], name: str, **labels: str) -> float:
    (sample,) = [s for s in found[name].samples if s.labels == labels]
    return float(sample.value)


def test_prometheus_reads_every_figure() -> None:
    odd = 'a"b\\c\nd'
    found = families(text(reply(failed={"busy": 2, odd: 3}, rss_mb=120.0), "1.2"))
    assert all(name.startswith("edged_") for name in found)
    assert value(found, "edged_info", version="1.2") == 1
    assert value(found, "edged_resident_memory_bytes") == 120e6
    assert value(found, "edged_steps") == 7
    assert found["edged_steps"].type == "counter"
    assert value(found, "edged_jobs_failed", code="busy") == 2
    assert value(found, "edged_jobs_failed", code=odd) == 3
    assert value(found, "edged_step_seconds", quantile="0.99") == pytest.approx(0.3)
    assert all(family.documentation for family in found.values())


def test_percentiles_of_nothing_are_left_out() -> None:
    assert families(text(reply(step_ms=NOTHING), "1"))["edged_step_seconds"].samples == []


@contextmanager
def exporter(figures: Callable[[], StatsReply] = reply, **settings: Any) -> Iterator[Exporter]:
    made = Exporter(Stats(**settings), figures)
    made.start()
    try:
        yield made
    finally:
        made.stop(10.0)


def wait_until(true: Callable[[], bool], within_s: float = 10.0) -> None:
    until = time.monotonic() + within_s
    while not true():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_nothing_runs_unless_it_is_wanted() -> None:
    before = threading.active_count()
    with exporter() as idle:
        assert threading.active_count() == before
        assert idle.port == 0


def test_the_file_is_always_whole_and_goes_with_the_daemon(tmp_path: Path) -> None:
    file = tmp_path / "edged.prom"
    count = iter(range(1_000_000))
    with exporter(lambda: reply(steps=next(count)), prometheus_file=str(file), prometheus_file_s=0.001):
        wait_until(file.exists)
        seen = set()
        until = time.monotonic() + 0.5
        while time.monotonic() < until:
            document = file.read_text()
            assert document.endswith("\n")
            seen.add(value(families(document), "edged_steps"))
        assert len(seen) > 1
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written_is_told_once_and_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    file = tmp_path / "later" / "edged.prom"
    tries: list[int] = []

    def figures() -> StatsReply:
        tries.append(1)
        return reply()

    with exporter(figures, prometheus_file=str(file), prometheus_file_s=0.01):
        wait_until(lambda: len(tries) > 3)
        file.parent.mkdir()
        wait_until(file.exists)
    told = [r.getMessage() for r in caplog.records if str(file) in r.getMessage()]
    assert len(told) == 2
    assert told[1] == f"statistics are written to {file} again"


@pytest.mark.parametrize("odd", ["file/edged.prom", ".", "long" * 100, "zero\0"])
def test_a_path_that_can_be_no_file_is_told_once_and_tried_on(
    odd: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("in the way")
    tries: list[int] = []

    def figures() -> StatsReply:
        tries.append(1)
        return reply()

    with exporter(figures, prometheus_file=str(tmp_path / odd), prometheus_file_s=0.01):
        wait_until(lambda: len(tries) > 3)
    told = [r for r in caplog.records if r.name == "edged.metrics"]
    assert len(told) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_file_is_written_as_soon_as_nothing_is_in_the_way(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    obstacle = tmp_path / "later"
    obstacle.write_text("in the way")
    file = obstacle / "edged.prom"
    with exporter(prometheus_file=str(file), prometheus_file_s=0.01):
        wait_until(lambda: "cannot be written" in caplog.text)
        obstacle.unlink()
        obstacle.mkdir()
        wait_until(lambda: "again" in caplog.text)
        assert file.read_text().endswith("\n")


def drip(port: int, stop: threading.Event) -> float:
    """Sends a request that never ends, a byte at a time; how long the other side put up with it."""
    begin = time.monotonic()
    with socket.create_connection(("127.0.0.1", port)) as slow:
        slow.sendall(b"GET /metrics HTTP/1.1\r\n")
        while not stop.wait(0.02):
            try:
                slow.sendall(b"X")
            except OSError:
                break
    return time.monotonic() - begin


def scrape(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20) as answer:
        return str(answer.read().decode())


def test_a_slow_client_keeps_neither_the_others_nor_the_stop_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporter_http, "REQUEST_S", 3600.0)
    made = Exporter(Stats(prometheus="127.0.0.1:0"), reply)
    made.start()
    stop = threading.Event()
    with ThreadPoolExecutor(20) as pool:
        slow = [pool.submit(drip, made.port, stop) for _ in range(exporter_http.MOST - 1)]
        time.sleep(0.3)
        assert "edged_info" in scrape(made.port)
        assert not any(client.done() for client in slow)
        slow += [pool.submit(drip, made.port, stop) for _ in range(3)]  # now the oldest ones have to go
        wait_until(lambda: any(client.done() for client in slow))
        assert "edged_info" in scrape(made.port)
        assert not all(client.done() for client in slow)
        made.stop(60.0)
        wait_until(lambda: all(client.done() for client in slow))
        stop.set()


def test_a_request_has_one_deadline_however_it_comes_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporter_http, "REQUEST_S", 0.3)
    with exporter(prometheus="127.0.0.1:0") as made:
        assert 0.3 <= drip(made.port, threading.Event()) < 20.0  # without one it would not end at all


def test_the_address_answers_also_beside_a_silent_reader() -> None:
    with exporter(prometheus="127.0.0.1:0") as made, socket.create_connection(("127.0.0.1", made.port)):
        with urllib.request.urlopen(f"http://127.0.0.1:{made.port}/metrics", timeout=10) as answer:
            assert answer.headers["Content-Type"] == CONTENT_TYPE
            assert "edged_info" in families(answer.read().decode())
        connection = http.client.HTTPConnection("127.0.0.1", made.port, timeout=10)
        connection.request("GET", "/etc/passwd")
        assert connection.getresponse().status == 404
        connection.close()


def test_without_an_answer_of_the_server_thread_it_says_so() -> None:
    def silent() -> StatsReply:
        raise ShuttingDown("the socket thread does not answer")

    with exporter(silent, prometheus="[::1]:0") as made:
        connection = http.client.HTTPConnection("::1", made.port, timeout=10)
        connection.request("GET", "/metrics")
        assert connection.getresponse().status == 503
        connection.close()


def test_an_address_in_use_costs_the_statistics_not_the_speech(caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with exporter(prometheus=address) as made:
            assert made.port == 0
    assert f"cannot listen at {address}" in caplog.text


def test_a_daemon_leaves_its_figures(tone_bundle: Path, tmp_path: Path) -> None:
    file = tmp_path / "edged.prom"
    with running(tone_bundle, stats={"prometheus_file": str(file), "prometheus_file_s": 1.0}) as daemon:
        assert daemon.request({"op": "synthesize", "text": "Pump four."})["event"] == "done"
        wait_until(lambda: file.exists() and value(families(file.read_text()), "edged_jobs_done") == 1)
        found = families(file.read_text())
        assert value(found, "edged_row_steps") >= 1
        assert 0 < value(found, "edged_engine_cpu_seconds") < value(found, "edged_cpu_seconds")
        daemon.stop()
        assert not file.exists()
