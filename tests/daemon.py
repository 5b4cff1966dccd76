"""The real daemon for tests: `python -m edged serve` on a temporary ipc path, with real sockets."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
import zmq

READY_WITHIN_S = 30.0
SERVE = [sys.executable, "-m", "edged", "serve"]


class Daemon:
    """A started daemon; `request` talks to it as a plain REQ client would."""

    def __init__(
        self,
        directory: Path,
        settings: dict[str, Any],
        env: dict[str, str],
        prefix: list[str],
        pass_fds: tuple[int, ...],
    ) -> None:
        self.directory = directory
        self.endpoint = f"ipc://{directory}/edged.sock"
        self.events = f"ipc://{directory}/edged-events.sock"
        self.config = directory / "edged.yaml"
        settings.setdefault("listen", {}).setdefault("endpoint", self.endpoint)
        self.config.write_text(yaml.safe_dump(settings))
        self.log_path = directory / "log"
        self._env = {**os.environ, **env}
        self._prefix, self._pass_fds = prefix, pass_fds
        self._env.pop("NOTIFY_SOCKET", None)
        self.context = zmq.Context()
        self.start()

    def configure(self, **groups: dict[str, Any]) -> None:
        """Changes the configuration file, for the next start or reload."""
        data = yaml.safe_load(self.config.read_text())
        for group, values in groups.items():
            data.setdefault(group, {}).update(values)
        self.config.write_text(yaml.safe_dump(data))

    def start(self) -> None:
        with self.log_path.open("a") as log:
            self.process = subprocess.Popen(
                [*self._prefix, *SERVE, "--config", str(self.config), "--log-level", "debug"],
                stdout=log,
                stderr=log,
                env=self._env,
                pass_fds=self._pass_fds,
            )
        try:
            self.wait_ready()
        except BaseException:  # nobody else knows the process yet
            self.process.kill()
            self.process.wait()
            raise

    def wait_ready(self) -> None:
        until = time.monotonic() + READY_WITHIN_S
        while time.monotonic() < until:
            if self.process.poll() is not None:
                raise AssertionError(f"the daemon ended with {self.process.returncode}:\n{self.log}")
            try:
                if self.request({"op": "status"}, timeout_s=0.5)["state"] == "ready":
                    return
                time.sleep(0.02)
            except TimeoutError:
                continue
        raise AssertionError(f"the daemon was not ready in time:\n{self.log}")

    @property
    def log(self) -> str:
        return self.log_path.read_text()

    def socket(self, kind: int = zmq.DEALER) -> zmq.Socket[bytes]:
        socket = self.context.socket(kind)
        socket.linger = 0
        socket.connect(self.endpoint)
        return socket

    def subscriber(self) -> zmq.Socket[bytes]:
        socket = self.context.socket(zmq.SUB)
        socket.linger = 0
        socket.subscribe(b"")
        socket.connect(self.events)
        return socket

    def request(self, header: dict[str, Any] | bytes, timeout_s: float = 20.0) -> dict[str, Any]:
        """One REQ round trip; the audio frame, when there is one, is under the key "audio_bytes"."""
        with self.socket(zmq.REQ) as socket:
            socket.send(header if isinstance(header, bytes) else json.dumps(header).encode())
            return receive(socket, timeout_s)

    def stop(self, number: int = signal.SIGTERM, timeout_s: float = 20.0) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(timeout_s)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.context.destroy(linger=0)


def send(socket: zmq.Socket[bytes], **header: Any) -> None:
    socket.send(json.dumps(header).encode())


def receive(socket: zmq.Socket[bytes], timeout_s: float = 20.0) -> dict[str, Any]:
    """The next event; its audio frame is added as "audio_bytes". Raises TimeoutError."""
    if not socket.poll(int(timeout_s * 1000)):
        raise TimeoutError("no reply")
    frames = socket.recv_multipart()
    event: dict[str, Any] = json.loads(frames[0])
    if len(frames) > 1:
        event["audio_bytes"] = frames[1]
    return event


def receive_until(socket: zmq.Socket[bytes], *endings: str, timeout_s: float = 20.0) -> list[dict[str, Any]]:
    """Events up to and including one of the named kinds."""
    events = []
    while not events or events[-1]["event"] not in endings:
        events.append(receive(socket, timeout_s))
    return events


ENDINGS = ("done", "cancelled", "failed")


@contextmanager
def running(
    *bundles: Path | str,
    env: dict[str, str] | None = None,
    prefix: list[str] | None = None,
    pass_fds: tuple[int, ...] = (),
    **settings: Any,
) -> Iterator[Daemon]:
    """A daemon with these bundles; settings are the groups of the configuration file.

    prefix: a command that runs the daemon's.
    """
    settings.setdefault("audio", {}).setdefault("enabled", False)
    settings.setdefault("voices", {})["bundles"] = [str(b) for b in bundles]
    with tempfile.TemporaryDirectory(prefix="edged-") as directory:
        daemon = Daemon(Path(directory), settings, env or {}, prefix or [], pass_fds)
        try:
            yield daemon
        finally:
            daemon.close()
