"""tools/load: it loads a real daemon, and it notices what it is there for."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import zmq
from hypothesis import given
from hypothesis import strategies as st

from edged import protocol
from tests import bundles

TOOLS = Path(__file__).parents[1] / "tools"
sys.path.insert(0, str(TOOLS))
from load_clients import Wish, drive  # noqa: E402
from load_report import Call, Course, percentiles  # noqa: E402


def load(*arguments: object) -> tuple[int, dict[str, Any]]:
    command = [sys.executable, str(TOOLS / "load"), "--json", *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert result.stdout, result.stderr
    return result.returncode, json.loads(result.stdout)


def test_many_clients_lose_nothing_and_memory_stays_flat() -> None:
    code, report = load(
        *("--bundle", bundles.tone(work=20), "--clients", 30, "--ramp", 1, "--duration", 4, "--drain", 30),
        *("--stream", "--cancel", 0.2, "--set", "limits.jobs=24", "--allow", "busy", "--max-growth-mb", 10),
    )
    assert (code, report["faults"]) == (0, [])
    assert report["lost"] == report["twice"] == 0
    assert set(report["outcomes"]) <= {"done", "cancelled", "busy"}
    assert report["outcomes"]["done"] > 10
    assert report["outcomes"]["busy"] > 0  # 30 clients and room for 24 jobs
    assert report["streams"]["count"] == report["outcomes"]["done"]
    assert report["audio_s_per_s"] > 0
    assert 20 < report["rss_mb"]["first"] < 1_000


def test_an_error_that_is_not_allowed_fails_the_run() -> None:
    arguments = (
        "--bundle",
        bundles.tone(work=20),
        "--clients",
        6,
        "--ramp",
        0,
        "--duration",
        1,
        "--drain",
        30,
    )
    code, report = load(*arguments, "--socket", "req", "--set", "limits.jobs=2")
    assert code == 1
    assert set(report["outcomes"]) == {"done", "busy"}
    assert report["faults"] == [f"{report['outcomes']['busy']} jobs ended with busy"]


def test_without_a_daemon_it_says_so(tmp_path: Path) -> None:
    command = [sys.executable, str(TOOLS / "load"), "--endpoint", f"ipc://{tmp_path}/nobody.sock"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 1
    assert "no daemon at" in result.stderr


@contextmanager
def answering(endpoint: str, answers: int, delimited: bool) -> Iterator[None]:
    """A daemon that ends every job so many times."""
    stopping = threading.Event()
    context = zmq.Context()
    socket = context.socket(zmq.ROUTER)
    socket.linger = 0
    socket.bind(endpoint)

    def serve() -> None:
        while not stopping.is_set():
            if not socket.poll(20):
                continue
            *envelope, header = socket.recv_multipart()
            request = json.loads(header)
            if request["op"] != "synthesize":
                continue
            assert len(envelope) == 1 + delimited
            for _ in range(answers):
                done = protocol.Done(
                    id=request["id"], audio_s=1.0, synthesis_s=0.1, rtf=0.1, first_audio_ms=1.0
                )
                socket.send_multipart([*envelope, protocol.encode(done)])

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()
        context.destroy(linger=0)


@pytest.mark.parametrize("delimited", [False, True])
@pytest.mark.parametrize("answers", [0, 1, 2])
def test_it_counts_the_endings_of_every_job(tmp_path: Path, answers: int, delimited: bool) -> None:
    endpoint = f"ipc://{tmp_path}/d.sock"
    wish = Wish({"op": "synthesize"}, ["Hello."], delimited=delimited)
    with answering(endpoint, answers, delimited):
        course = run(endpoint, wish)
    assert len(course.calls) >= 3
    assert {call.endings for call in course.calls} == {answers}
    assert len(course.stray) == max(0, answers - 1) * len(course.calls)


def run(endpoint: str, wish: Wish) -> Course:
    times = {"ramp_s": 0.0, "duration_s": 0.3, "drain_s": 0.7}
    return drive(endpoint, wish, clients=3, **times, alive=lambda: True, say=lambda _: None)


@given(st.lists(st.tuples(st.integers(0, 200), st.integers(1, 200)), min_size=1, max_size=20))
def test_a_stream_runs_dry_when_a_listener_would_hear_a_gap(pieces: list[tuple[int, int]]) -> None:
    """In 64ths of a second, which add up without rounding."""
    call, now, heard_until, gaps = Call("x", 0.0), 64, 0, 0
    for number, (wait, length) in enumerate(pieces):
        now += wait
        call.hear(now / 64, length / 64)
        gaps += number > 0 and now > heard_until
        heard_until = max(heard_until, now) + length
    assert call.first_audio == (64 + pieces[0][0]) / 64
    assert call.audio_s == sum(length for _, length in pieces) / 64
    assert call.underruns == gaps
    assert (call.margin < 0) == (gaps > 0)


@given(st.lists(st.floats(0, 1e3), min_size=1))
def test_percentiles_are_values_in_order(values: list[float]) -> None:
    found = percentiles(values)
    assert found is not None
    assert found["count"] == len(values)
    ordered = [found[k] for k in ("p50", "p90", "p99", "max")]
    assert ordered == sorted(ordered)
    assert set(ordered) <= {round(v, 4) for v in values}
    assert sum(v <= found["p50"] + 1e-4 for v in values) >= len(values) / 2
