"""The bound sockets: local ones stay plain whatever TCP needs."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq
import zmq.auth

from edged.cli.exits import USAGE, exit_code
from edged.endpoints import Endpoints
from edged.errors import AddressUnavailable
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


@pytest.mark.parametrize("host", ["127.0.0.1", "192.0.2.1", "nosuchcard0"])
def test_an_address_that_cannot_be_had_yet_is_no_fault_of_the_configuration(
    tmp_path: Path, host: str
) -> None:
    """In use, of another machine, of an interface that is not there: all three may pass."""
    (tmp_path / "known").mkdir()
    zmq.auth.create_certificates(tmp_path, "daemon")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = Listen(
            endpoint=f"ipc://{tmp_path}/s",
            tcp=f"tcp://{host}:{taken.getsockname()[1]}",
            curve_secret=str(tmp_path / "daemon.key_secret"),
            curve_clients=str(tmp_path / "known"),
        )
        with pytest.raises(AddressUnavailable, match=f"cannot listen on tcp://{host}") as caught:
            Endpoints(listen, Limits(), listen.endpoint)
    assert "ss -ltnp" in caught.value.hint
    assert exit_code(caught.value) not in (0, USAGE), "with USAGE systemd would not try again"
    assert not (tmp_path / "s").exists()
