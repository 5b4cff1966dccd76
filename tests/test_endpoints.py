"""The bound sockets: local ones stay plain whatever TCP needs."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq
import zmq.auth

from edged.endpoints import Endpoints
from edged.settings import Limits, Listen


@pytest.fixture
def endpoints(tmp_path: Path) -> Iterator[Endpoints]:
    """On a local path, and on TCP with keys."""
    known = tmp_path / "known"
    known.mkdir()
    zmq.auth.create_certificates(tmp_path, "daemon")
    zmq.auth.create_certificates(known, "app")
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    listen = Listen(
        endpoint=f"ipc://{tmp_path}/s",
        tcp=f"tcp://127.0.0.1:{port}",
        curve_secret=str(tmp_path / "daemon.key_secret"),
        curve_clients=str(known),
    )
    found = Endpoints(listen, Limits(), listen.endpoint)
    yield found
    found.close()


def test_local_clients_are_served_before_and_after_a_reset(endpoints: Endpoints) -> None:
    with zmq.Context() as context:
        for _ in range(2):
            with context.socket(zmq.DEALER) as client:
                client.linger = 0
                client.connect(endpoints.endpoint)
                client.send(b"x")
                assert endpoints.router.poll(5_000)
                endpoints.router.recv_multipart()
            endpoints.reset()
