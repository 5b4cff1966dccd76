"""edged/systemd.py against real datagram sockets in systemd's place."""

from __future__ import annotations

import os
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from edged.systemd import LONGEST_STATUS, Notifier


class Manager:
    """What systemd is to the service: a datagram socket with a name."""

    def __init__(self, address: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind("\0" + address[1:] if address.startswith("@") else address)
        self.socket.settimeout(5)
        self.environ = {"NOTIFY_SOCKET": address}

    def heard(self) -> list[str]:
        return self.socket.recv(4096).decode().split("\n")

    def silent(self) -> bool:
        try:
            self.socket.recv(4096, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return True
        return False


@pytest.fixture(params=["path", "abstract"])
def manager(request: pytest.FixtureRequest) -> Iterator[Manager]:
    with tempfile.TemporaryDirectory(prefix="edged") as directory:
        name = f"{directory}/notify" if request.param == "path" else f"@{directory}/notify"
        manager = Manager(name)
        yield manager
        manager.socket.close()


def test_messages(manager: Manager) -> None:
    notifier = Notifier(manager.environ)
    assert notifier.enabled
    assert notifier.ready("1 voice, ready in 0.6 s")
    assert manager.heard() == ["READY=1", "STATUS=1 voice, ready in 0.6 s"]
    assert notifier.ready()
    assert manager.heard() == ["READY=1"]
    assert notifier.status("2 jobs")
    assert manager.heard() == ["STATUS=2 jobs"]
    assert notifier.watchdog()
    assert manager.heard() == ["WATCHDOG=1"]
    assert notifier.stopping()
    assert manager.heard() == ["STOPPING=1"]


def test_reloading_carries_the_time(manager: Manager) -> None:
    before = time.monotonic_ns() // 1000
    assert Notifier(manager.environ).reloading()
    word, stamp = manager.heard()
    assert word == "RELOADING=1"
    name, _, value = stamp.partition("=")
    assert name == "MONOTONIC_USEC"
    assert before <= int(value) <= time.monotonic_ns() // 1000


def test_a_status_cannot_smuggle_in_another_message(manager: Manager) -> None:
    notifier = Notifier(manager.environ)
    assert notifier.status("device lost\nREADY=1\r\nMAINPID=1 \udcff" + "x" * 5000)
    (line,) = manager.heard()
    assert line.startswith("STATUS=device lost READY=1 MAINPID=1 ?")
    assert len(line) == len("STATUS=") + LONGEST_STATUS
    assert not notifier.status(" \n ")
    assert manager.silent()


def test_threads_share_one_notifier(manager: Manager) -> None:
    notifier = Notifier(manager.environ)
    threads = [threading.Thread(target=notifier.status, args=(f"thread {i}",)) for i in range(8)]
    for thread in threads:
        thread.start()
    heard = sorted(manager.heard()[0] for _ in threads)
    for thread in threads:
        thread.join()
    assert heard == [f"STATUS=thread {i}" for i in range(8)]


def test_after_close_nothing_is_sent(manager: Manager) -> None:
    notifier = Notifier(manager.environ)
    notifier.close()
    notifier.close()
    assert not notifier.enabled
    assert not notifier.ready()
    assert manager.silent()


@pytest.mark.parametrize(
    "address",
    [
        "",
        "relative/path",
        "vsock:2:1",
        "/nonexistent/notify",
        "@edged-nobody-listens",
        "/zero\0byte",
        "/" + "x" * 200,
    ],
)
def test_without_a_listener_nothing_happens(address: str) -> None:
    notifier = Notifier({"NOTIFY_SOCKET": address})
    sent = [
        notifier.ready("x"),
        notifier.status("x"),
        notifier.reloading(),
        notifier.watchdog(),
        notifier.stopping(),
    ]
    assert sent == [False] * 5
    assert Notifier({}).enabled is False


def test_a_listener_that_comes_back_is_heard_again(tmp_path_factory: pytest.TempPathFactory) -> None:
    """systemd opens its socket again when it is upgraded (daemon-reexec)."""
    with tempfile.TemporaryDirectory(prefix="edged") as directory:
        path = Path(directory) / "notify"
        first = Manager(str(path))
        notifier = Notifier(first.environ)
        assert notifier.watchdog()
        first.socket.close()
        assert not notifier.watchdog()
        path.unlink()
        second = Manager(str(path))
        assert notifier.watchdog()
        assert second.heard() == ["WATCHDOG=1"]
        second.socket.close()


def test_a_stuck_listener_holds_a_message_for_a_moment_only(manager: Manager) -> None:
    notifier = Notifier(manager.environ)
    while_free = 0
    started, busy = time.monotonic(), time.process_time()
    while notifier.watchdog():
        while_free += 1
        assert while_free < 100_000
    assert while_free >= 1
    assert 0.5 < time.monotonic() - started < 10
    assert time.process_time() - busy < 0.5  # waiting, not spinning


@pytest.mark.parametrize(
    ("environ", "timeout"),
    [
        ({}, None),
        ({"WATCHDOG_USEC": "3000000"}, 3.0),
        ({"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": str(os.getpid())}, 3.0),
        ({"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": str(os.getpid() + 1)}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "-5"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
        ({"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": "me"}, None),
    ],
)
def test_watchdog_times(environ: dict[str, str], timeout: float | None) -> None:
    notifier = Notifier(environ)
    assert notifier.watchdog_timeout_s == timeout
    assert notifier.watchdog_interval_s == (None if timeout is None else timeout / 2)


def test_the_environment_is_the_default(manager: Manager, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", manager.environ["NOTIFY_SOCKET"])
    monkeypatch.setenv("WATCHDOG_USEC", "500000")
    monkeypatch.delenv("WATCHDOG_PID", raising=False)
    notifier = Notifier()
    assert notifier.ready()
    assert manager.heard() == ["READY=1"]
    assert notifier.watchdog_interval_s == 0.25
