"""A real PulseAudio server with a null sink, and a recorder on its monitor: what a listener would hear.

`from pulse import pulse, pulse_server` in a test module gives the fixtures; they skip where PulseAudio or
PortAudio is not installed. The server is the test's own, on a socket of its own.
"""

from __future__ import annotations

import contextlib
import ctypes.util
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

RATE = 48_000
STEREO = "front-left,front-right"


def why_not() -> str:
    """What is missing for these tests, "" if nothing."""
    missing = [tool for tool in ("pulseaudio", "pactl", "parec") if shutil.which(tool) is None]
    if ctypes.util.find_library("portaudio") is None:
        missing.append("libportaudio2")
    return f"not installed: {', '.join(missing)}" if missing else ""


def wait_until(condition: Callable[[], object], timeout_s: float = 10.0, what: str = "condition") -> None:
    end = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"{what} not met within {timeout_s} s")
        time.sleep(0.002)


class PulseServer:
    """One server; it can be killed and started again on the same socket."""

    def __init__(self, directory: Path) -> None:
        self.address = f"unix:{directory}/pulse.sock"
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None
        self._awake: dict[str, Recording] = {}

    def start(self) -> None:
        null_sink = f"module-null-sink sink_name=edged rate={RATE} channels=2 format=float32le"
        socket = f"module-native-protocol-unix auth-anonymous=1 socket={self._directory}/pulse.sock"
        options = ["-n", "--daemonize=no", "--exit-idle-time=-1", "--disable-shm=yes", "--use-pid-file=no"]
        log = (self._directory / "log").open("ab")
        # A home of its own: the server must not read or write the developer's settings.
        env = {**os.environ, "HOME": str(self._directory), "XDG_RUNTIME_DIR": str(self._directory)}
        env.pop("PULSE_SERVER", None)
        self._process = subprocess.Popen(
            ["pulseaudio", *options, "-L", socket, "-L", null_sink], stdout=log, stderr=log, env=env
        )
        wait_until(self._answers, what="PulseAudio running")
        # An idle null sink works in blocks of 2 s; a listener makes it a prompt one, as a card is.
        self._listener = Recording(self.address)
        wait_until(lambda: self._listener.seconds > 0.05, what="the sink running")

    def _answers(self) -> bool:
        command = ["pactl", "--server", self.address, "list", "short", "sinks"]
        return b"edged" in subprocess.run(command, capture_output=True, check=False).stdout

    @property
    def running(self) -> bool:
        return self._process is not None

    def quiet(self) -> None:
        """Nobody listens any more: the idle sink works in blocks of 2 s, until the next start."""
        self._listener.stop()

    def suspend(self, on: bool) -> None:
        """The sink takes no audio, as a device that is stuck, though the server answers."""
        command = ["pactl", "--server", self.address, "suspend-sink", "edged", "1" if on else "0"]
        subprocess.run(command, check=True)

    def pactl(self, *command: str) -> str:
        run = ["pactl", "--server", self.address, *command]
        return subprocess.run(run, check=True, capture_output=True, text=True).stdout.strip()

    def load(self, name: str, **options: object) -> str:
        """Another null sink; returns the number of its module, for `unload`. Awake, as a card is."""
        given = [f"{option}={value}" for option, value in options.items()]
        module = self.pactl("load-module", "module-null-sink", f"sink_name={name}", *given)
        self._awake[module] = Recording(self.address, name)
        wait_until(lambda: self._awake[module].seconds > 0.05, what="the sink running")
        return module

    def unload(self, module: str) -> None:
        self._awake.pop(module).stop()
        self.pactl("unload-module", module)

    def signal(self, number: int) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def stop(self) -> None:
        if self._process is not None:
            self._listener.stop()
            for recording in self._awake.values():
                recording.stop()
            self._awake.clear()
            self._process.kill()
            self._process.wait()
            self._process = None
            with contextlib.suppress(FileNotFoundError):
                (self._directory / "pulse.sock").unlink()

    @contextlib.contextmanager
    def record(self, sink: str = "edged", places: str = STEREO, rate: int = RATE) -> Iterator[Recording]:
        recording = Recording(self.address, sink, places, rate)
        try:
            wait_until(lambda: recording.seconds > 0.1, what="the recorder running")
            yield recording
        finally:
            recording.stop()


class Recording:
    """What the sink's monitor gave since the start: frames x channels, at `rate` in Hz."""

    def __init__(self, server: str, sink: str = "edged", places: str = STEREO, rate: int = RATE) -> None:
        self._rate, self._channels = rate, 1 + places.count(",")
        command = ["parec", f"--server={server}", f"--device={sink}.monitor", "--format=float32le", "--raw"]
        command += [f"--rate={rate}", f"--channels={self._channels}", "--latency-msec=20"]
        command += [f"--channel-map={places}"]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE)
        self._data = bytearray()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        while data := self._process.stdout.read1(65536):  # type: ignore[attr-defined]
            self._data += data

    @property
    def seconds(self) -> float:
        return len(self._data) / 4 / self._channels / self._rate

    @property
    def samples(self) -> NDArray[np.float32]:
        data = bytes(self._data)
        size = 4 * self._channels
        return np.frombuffer(data[: len(data) // size * size], dtype=np.float32).reshape(-1, self._channels)

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        self._thread.join(5)


def find(needle: NDArray[np.float32], heard: NDArray[np.float32]) -> int:
    """Where `needle` fits `heard` best (both mono)."""
    size = 1 << (len(needle) + len(heard)).bit_length()
    product = np.fft.rfft(heard, size) * np.conj(np.fft.rfft(needle, size))
    correlation = np.fft.irfft(product, size)[: len(heard)]
    return int(np.argmax(correlation))


def snr_db(expected: NDArray[np.float32], heard: NDArray[np.float32]) -> float:
    noise = float(np.sum((expected.astype(np.float64) - heard) ** 2))
    return 10 * np.log10(float(np.sum(expected.astype(np.float64) ** 2)) / max(noise, 1e-20))


def relist_devices() -> None:
    """PortAudio lists devices only when it starts, and lists "pulse" only if the server answers."""
    sounddevice = sys.modules.get("sounddevice")
    if sounddevice is not None:
        sounddevice._terminate()
        sounddevice._initialize()


def name_sinks(directory: Path, monkeypatch: pytest.MonkeyPatch, *sinks: str) -> None:
    """Makes each of these sinks, there or not, a device of its own; all of the others are left out."""
    devices = [f'pcm.{sink} {{ type pulse device "{sink}" hint {{ show on }} }}' for sink in sinks]
    path = directory / "asound.conf"
    path.write_text("\n".join(["</usr/share/alsa/alsa.conf>", *devices, ""]))
    monkeypatch.setenv("ALSA_CONFIG_PATH", str(path))
    relist_devices()


@pytest.fixture(scope="module")
def pulse_server() -> Iterator[PulseServer]:
    reason = why_not()
    if reason:
        pytest.skip(reason)
    # Not tmp_path: the path of a socket is limited to 107 bytes.
    directory = Path(tempfile.mkdtemp(prefix="edged-pulse-"))
    server = PulseServer(directory)
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def pulse(pulse_server: PulseServer, monkeypatch: pytest.MonkeyPatch) -> PulseServer:
    """A running server; PULSE_SERVER names it. A test may stop it."""
    monkeypatch.setenv("PULSE_SERVER", pulse_server.address)
    if not pulse_server.running:
        pulse_server.start()
        relist_devices()
    return pulse_server
