"""The bound sockets: local ones stay plain whatever TCP needs."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq
import zmq.auth

from edged.cli.exits import USAGE, exit_code
from edged.endpoints import Endpoints
from edged.errors import AddressUnavailable, AlreadyRunning
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


AS_NOBODY = """
import grp, os, sys, zmq.auth.thread  # while it may read the modules
from edged.endpoints import Endpoints
from edged.errors import ConfigError
from edged.settings import Limits, Listen
os.setgroups([]); os.setgid(65534); os.setuid(65534)
listen = Listen(**eval(sys.argv[1]))
try:
    Endpoints(listen, Limits(), listen.endpoint)
except ConfigError as error:
    print(error.message, "|", error.hint)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become the service's user")
def test_what_the_services_user_may_not_do_comes_with_the_command() -> None:
    """A key that root made, a folder of keys that only root may open, a group of others."""
    with tempfile.TemporaryDirectory(prefix="edged-") as folder:
        place = Path(folder)
        os.chown(place, 65534, 65534)
        zmq.auth.create_certificates(place, "daemon")
        secret = place / "daemon.key_secret"
        (place / "locked" / "known").mkdir(parents=True)
        (place / "locked").chmod(0o700)

        def told(**settings: str) -> str:
            listen = {"endpoint": f"ipc://{place}/s", "curve_secret": str(secret), **settings}
            command = [sys.executable, "-c", AS_NOBODY, repr(listen)]
            return subprocess.run(command, capture_output=True, text=True, check=True).stdout

        tcp = "tcp://127.0.0.1:0"
        secret.chmod(0o600)
        assert f"chgrp edged {secret}; chmod 640 {secret}" in told(tcp=tcp, curve_clients=folder)
        secret.chmod(0o644)
        assert "may look into it" in told(tcp=tcp, curve_clients=f"{place}/locked/known")
        assert "usermod -aG audio edged" in told(group="audio")


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
