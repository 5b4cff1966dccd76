"""A real PipeWire with a null sink, reached as its clients reach it: by the protocol of PulseAudio."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.pulse import RATE, PulseServer, Recording, relist_devices, wait_until
from tests.pulse import why_not as no_pulse

SERVERS = "pipewire & sleep 0.3; wireplumber & exec pipewire-pulse"


def why_not() -> str:
    """What is missing for these tests, "" if nothing."""
    tools = ("pipewire", "pipewire-pulse", "wireplumber", "dbus-run-session")
    missing = [tool for tool in tools if shutil.which(tool) is None]
    return f"not installed: {', '.join(missing)}" if missing else no_pulse()


class PipeWireServer(PulseServer):
    """One set of servers with a session bus and a runtime directory of their own."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.address = f"unix:{directory}/pulse/native"

    def start(self) -> None:
        env = {**os.environ, "HOME": str(self._directory), "XDG_RUNTIME_DIR": str(self._directory)}
        for name in ("PULSE_SERVER", "PULSE_SINK", "DBUS_SESSION_BUS_ADDRESS"):
            env.pop(name, None)
        log = (self._directory / "log").open("ab")
        self._process = subprocess.Popen(
            ["dbus-run-session", "--", "sh", "-c", SERVERS],
            stdout=log,
            stderr=log,
            env=env,
            start_new_session=True,
        )
        wait_until(lambda: self._asked("info"), what="PipeWire running")
        options = ("sink_name=edged", f"rate={RATE}", "channels=2", "format=float32le")
        self.pactl("load-module", "module-null-sink", *options)
        wait_until(self._answers, what="the sink there")
        wait_until(lambda: self._asked("set-default-sink", "edged"), what="WirePlumber running")
        self._listener = Recording(self.address)
        wait_until(lambda: self._listener.seconds > 0.05, what="the sink running")

    def _asked(self, *command: str) -> bool:
        run = ["pactl", "--server", self.address, *command]
        return subprocess.run(run, capture_output=True, check=False).returncode == 0

    def stop(self) -> None:
        if self._process is None:
            return
        self._listener.stop()
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._process = None
        for socket in (self._directory / "pulse" / "native", self._directory / "pipewire-0"):
            socket.unlink(missing_ok=True)


@pytest.fixture(scope="module")
def pipewire_server() -> Iterator[PipeWireServer]:
    reason = why_not()
    if reason:
        pytest.skip(reason)
    directory = Path(tempfile.mkdtemp(prefix="edged-pipewire-"))
    server = PipeWireServer(directory)
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def pipewire(pipewire_server: PipeWireServer, monkeypatch: pytest.MonkeyPatch) -> PipeWireServer:
    """A running server; PULSE_SERVER names it. A test may stop it."""
    monkeypatch.setenv("PULSE_SERVER", pipewire_server.address)
    if not pipewire_server.running:
        pipewire_server.start()
        relist_devices()
    return pipewire_server
