"""The service under clients that do nothing but harm: floods of bad requests, and of connections."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path

import pytest
import zmq

from tests.service.edged import Edged

pytestmark = [pytest.mark.systemd, pytest.mark.timeout(600)]

STORM_S = 4.0
LINES_PER_S = 10  # of the line "request refused"
CONNECTIONS_PER_S = 200
GROWTH_MB = 4.0  # of pages that the first connections have not touched yet
BURST = 100  # bad requests in flight: their answers are read, or the daemon would drop them


def _refusals(edged: Edged) -> list[dict[str, str]]:
    edged.machine.run("journalctl", "--sync")
    lines = edged.machine.run(
        "journalctl", "_SYSTEMD_UNIT=edged.service", f"_PID={edged.pid}", "--output=json", "--no-pager"
    ).stdout.splitlines()
    entries = [json.loads(line) for line in lines]
    return [entry for entry in entries if entry["MESSAGE"].startswith("request refused")]


def _bad_requests(edged: Edged, for_s: float) -> int:
    """How many were sent, and refused."""
    with zmq.Context() as context, context.socket(zmq.DEALER) as client:
        client.linger = 0
        client.connect(edged.endpoint)
        count, end = 0, time.monotonic() + for_s
        while time.monotonic() < end:
            for _ in range(BURST):
                client.send(b"{this is no request")
            for _ in range(BURST):
                assert client.poll(20_000), "an answer"
                assert json.loads(client.recv())["code"] == "bad_json"
            count += BURST
        return count


def test_a_flood_of_bad_requests_is_counted_and_does_not_flood_the_journal(edged: Edged) -> None:
    edged.start()
    begin = time.monotonic()
    sent = _bad_requests(edged, STORM_S / 2)
    assert edged.speaks()
    sent += _bad_requests(edged, STORM_S / 2)
    took_s = time.monotonic() - begin
    time.sleep(1.1)  # the next line tells how many were left out before it
    sent += _bad_requests(edged, 0.001)
    lines = _refusals(edged)
    print(f"{sent} bad requests, {sent / took_s:.0f} a second: {len(lines)} lines")
    assert sent > 500
    # The last burst has lines of its own, and leaves some untold.
    assert len(lines) <= LINES_PER_S * (took_s + 3)
    told = len(lines) + sum(int(line.get("EDGED_UNSAID", 0)) for line in lines)
    assert sent - BURST < told <= sent
    assert edged.speaks()
    assert edged.show("NRestarts") == "0"


def _descriptors(edged: Edged) -> int:
    return len(list((edged.machine.root / f"proc/{edged.pid}/fd").iterdir()))


def _resident_mb(edged: Edged) -> float:
    status = (edged.machine.root / f"proc/{edged.pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) * 1024 / 1e6


def _connections(edged: Edged, count: int) -> float:
    """So many clients one after the other, at the rate; every fourth says nothing. The rate it came to."""
    path = str(Path(edged.endpoint.removeprefix("ipc://")))
    begin = time.monotonic()
    with zmq.Context() as context:
        for number in range(count):
            time.sleep(max(0.0, begin + number / CONNECTIONS_PER_S - time.monotonic()))
            if number % 4 == 3:
                with socket.socket(socket.AF_UNIX) as mute:
                    mute.connect(path)
                continue
            with context.socket(zmq.DEALER) as client:
                client.linger = 0
                client.connect(edged.endpoint)
                client.send(b'{"op": "ping"}')
                if number % 2:
                    assert client.poll(20_000), "an answer"
    return count / (time.monotonic() - begin)


def test_two_hundred_clients_a_second_come_and_go(edged: Edged) -> None:
    edged.start()
    assert edged.speaks()
    _connections(edged, CONNECTIONS_PER_S)
    time.sleep(1.0)
    descriptors, resident_mb = _descriptors(edged), _resident_mb(edged)
    rate = _connections(edged, 5 * CONNECTIONS_PER_S)
    assert edged.speaks()
    time.sleep(1.0)
    grown_mb = _resident_mb(edged) - resident_mb
    after = _descriptors(edged)
    print(f"{rate:.0f} connections a second; descriptors {descriptors} -> {after}, {grown_mb:+.1f} MB")
    assert abs(after - descriptors) <= 2
    assert grown_mb <= GROWTH_MB
    assert edged.show("NRestarts") == "0"
    assert "too many connections" not in edged.log
