"""The bound sockets: local ones stay plain whatever TCP needs."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq
import zmq.auth

from edged.endpoints import Endpoints
from edged.errors import AlreadyRunning
from edged.settings import Limits, Listen
from tests.daemon import SERVE, Daemon, running


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


def test_lost_files_are_made_again_and_connections_go_on(endpoints: Endpoints) -> None:
    path = Path(endpoints.endpoint.removeprefix("ipc://"))
    with zmq.Context() as context, context.socket(zmq.DEALER) as old:
        old.linger = 0
        old.connect(endpoints.endpoint)
        for _ in range(2):
            old.send(b"old")
            assert endpoints.router.poll(5_000)
            endpoints.router.recv_multipart()
            assert not endpoints.lost()
            path.unlink()
            assert endpoints.lost()
            endpoints.restore()
            with context.socket(zmq.DEALER) as new:
                new.linger = 0
                new.connect(endpoints.endpoint)
                new.send(b"new")
                assert endpoints.router.poll(5_000)
                endpoints.router.recv_multipart()
        endpoints.reset()
        assert not endpoints.lost()


def test_a_place_that_another_daemon_has_taken_is_left_to_it(tmp_path: Path) -> None:
    listen = Listen(endpoint=f"ipc://{tmp_path}/edged/s")
    first = Endpoints(listen, Limits(), listen.endpoint)
    try:
        shutil.rmtree(tmp_path / "edged")
        second = Endpoints(listen, Limits(), listen.endpoint)
        try:
            assert first.lost()
            with pytest.raises(AlreadyRunning):
                first.restore()
            assert not second.lost()
        finally:
            second.close()
        first.restore()  # it has ended
        assert not first.lost()
        with pytest.raises(AlreadyRunning):
            Endpoints(listen, Limits(), listen.endpoint)
    finally:
        first.close()


def test_a_daemon_is_found_again_after_its_files_were_removed(tone_bundle: Path) -> None:
    with running(tone_bundle) as daemon:
        (daemon.directory / "edged.sock").unlink()
        _wait_and_ping(daemon)
        moved = Path(f"{daemon.directory}-moved")
        daemon.directory.rename(moved)
        daemon.log_path = moved / "log"
        try:
            _wait_and_ping(daemon)
            second = subprocess.run(
                [*SERVE, "--endpoint", daemon.endpoint], capture_output=True, text=True, check=False
            )
            assert "[already_running]" in second.stderr
            assert daemon.log.count("code=socket_lost") == 2
            assert daemon.stop() == 0
        finally:
            shutil.rmtree(moved)
        assert not list(daemon.directory.glob("*.sock"))


def _wait_and_ping(daemon: Daemon) -> None:
    time.sleep(3)
    assert daemon.request({"op": "ping"}, timeout_s=2.0)["event"] == "pong"
