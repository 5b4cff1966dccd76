"""A daemon of its own for tools/soak: store, configuration, process and the commands that change them.

One thread uses a `Rig`, the one that makes the changes; those of the load read its `outages` only. The
process is started again as systemd would do it: RESTART_S after its end. Neighbours: `exchanges`, `kills`.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import msgspec
import yaml
import zmq

from edged import protocol
from edged.bundle import Bundle
from edged.bundle_write import write_manifest
from edged.compiler import build
from edged.manifest import read_manifest
from edged.store import Store
from edged.store_install import install

RESTART_S = 1.0  # RestartSec of systemd/edged.service
WATCHDOG_S = 30  # WatchdogSec of it
READY_WITHIN_S = 120.0
COMMAND_WITHIN_S = 300.0
VERSIONS = ("1", "2", "3")
BAD = "bad"  # a version that the trial refuses


@dataclass
class Outage:
    """No daemon from `begin` to `end`, in monotonic seconds; end is infinite while it lasts."""

    begin: float
    end: float = field(default=float("inf"))


def within(outages: Sequence[Outage], begin: float, end: float, beside_s: float = 0.0) -> bool:
    """Whether one of them was at some time from begin to end, or so many seconds before or after."""
    return any(o.begin <= end + beside_s and o.end + beside_s >= begin for o in list(outages))


@dataclass(frozen=True)
class Outcome:
    """What a command ended with; told: its JSON, {} where it printed none."""

    code: int
    seconds: float
    told: dict[str, Any]
    complaint: str


class Rig:
    """A daemon with three versions of a voice in its store, the first in use."""

    def __init__(self, directory: Path, voice: str) -> None:
        self.directory = directory
        self.endpoint = f"ipc://{directory}/edged.sock"
        self.config = directory / "edged.yaml"
        self.log = directory / "log"
        self.outages: list[Outage] = []
        self.standstills: list[Outage] = []  # nobody ran, on a machine that was stopped or far too busy
        self.process: subprocess.Popen[bytes] | None = None
        self.store = Store(directory / "bundles")
        self.sources = self._versions(voice)
        self.name = read_manifest(self.sources["1"]).name
        for version in VERSIONS:
            install(self.store, self.sources[version])
        self.store.switch(self.name, self.folder("1"))
        self.configure()
        self._ready = threading.Event()
        self._notices = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._notices.bind(str(directory / "notify"))
        threading.Thread(target=self._listen, daemon=True).start()

    def _versions(self, voice: str) -> dict[str, Path]:
        place = self.directory / "sources"
        first = Path(voice)
        if not first.is_dir():
            first = build(voice, place / "built")
        made = {}
        for version in (*VERSIONS, BAD):
            path = made[version] = place / version
            shutil.copytree(first, path)
            manifest = msgspec.structs.replace(read_manifest(path), version=version)
            if version == BAD and manifest.golden is not None:
                manifest = msgspec.structs.replace(
                    manifest, golden=msgspec.structs.replace(manifest.golden, samples=1)
                )
            write_manifest(path, manifest)
        return made

    # -- the store ------------------------------------------------------------------------------

    def folder(self, version: str) -> str:
        """Of an installed version; "" when it is not installed."""
        return next((v.path.name for v in self.store.versions(self.name) if v.version == version), "")

    def unsound(self) -> str:
        """What is wrong with the store, "" when a daemon could start from it: every file is hashed."""
        current = self.store.current(self.name)
        if not current:
            return f"{self.name} leads nowhere"
        try:
            Bundle.load(self.store.directory / current)
        except Exception as error:
            return f"{current}: {error}"
        return ""

    # -- the configuration ----------------------------------------------------------------------

    def configure(self, **groups: dict[str, Any]) -> None:
        """Writes the configuration: the rig's own settings and these."""
        settings: dict[str, Any] = {
            "listen": {"endpoint": self.endpoint},
            "voices": {"bundles": [self.name]},
            "audio": {"enabled": False},
        }
        for group, values in groups.items():
            settings.setdefault(group, {}).update(values)
        fresh = self.config.with_suffix(".new")
        fresh.write_text(yaml.safe_dump(settings))
        fresh.replace(self.config)

    # -- the process ----------------------------------------------------------------------------

    @property
    def pid(self) -> int:
        return self.process.pid if self.process else 0

    @property
    def died(self) -> bool:
        """Whether it ended without being told to."""
        return self.process is not None and self.process.poll() is not None

    def start(self) -> None:
        self._ready.clear()
        notify = {"NOTIFY_SOCKET": str(self.directory / "notify"), "WATCHDOG_USEC": str(WATCHDOG_S * 10**6)}
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "edged", "serve"],
                env={**self.environment(), **notify},
                stdout=log,
                stderr=log,
            )
        until = monotonic() + READY_WITHIN_S
        while not self._ready.wait(0.05):
            if self.process.poll() is not None or monotonic() > until:
                last = "".join(self.log.read_text().splitlines(keepends=True)[-5:])
                raise RuntimeError(f"the daemon did not start:\n{last}")

    @contextmanager
    def outage(self, number: signal.Signals, settle_s: float = 60.0) -> Iterator[Outage]:
        """Ends the daemon by a signal, and starts it again after the block. Yields when it has ended."""
        assert self.process
        outage = Outage(monotonic())
        self.outages.append(outage)
        self.process.send_signal(number)
        self.process.wait(settle_s)
        try:
            yield outage
        finally:
            sleep(RESTART_S)
            self.start()
            outage.end = monotonic()

    def first_audio(self) -> float:
        """When (monotonic) a client hears something: it asks again and again for a stream until it does."""
        with zmq.Context() as context, context.socket(zmq.DEALER) as asking:
            asking.linger = 0
            asking.connect(self.endpoint)
            request = {"op": "synthesize", "text": "One, two.", "reply": "events", "stream": True}
            until = monotonic() + READY_WITHIN_S
            while monotonic() < until:
                asking.send(json.dumps(request).encode())
                while asking.poll(5000):
                    event = protocol.decode_event(asking.recv_multipart()[0])
                    if isinstance(event, protocol.Audio):
                        return monotonic()
                    if isinstance(event, protocol.TERMINAL):
                        sleep(0.01)
                        break
        return float("inf")

    def close(self) -> None:
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self._notices.close()

    def _listen(self) -> None:
        """Reads what systemd would: a full socket would hold the daemon up."""
        with suppress(OSError):
            while True:
                if b"READY=1" in self._notices.recv(4096):
                    self._ready.set()

    # -- commands -------------------------------------------------------------------------------

    def environment(self) -> dict[str, str]:
        return {
            **{k: v for k, v in os.environ.items() if k not in ("NOTIFY_SOCKET", "WATCHDOG_USEC")},
            "EDGED_BUNDLES": str(self.store.directory),
            "EDGED_CONFIG": str(self.config),
            "EDGED_ENDPOINT": self.endpoint,
        }

    def begin(self, *arguments: str) -> subprocess.Popen[bytes]:
        """An `edged` command under way, in a process group of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "edged", *arguments],
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def finish(self, command: subprocess.Popen[bytes], since: float) -> Outcome:
        out, complaint = command.communicate(timeout=COMMAND_WITHIN_S)
        told: dict[str, Any] = {}
        with suppress(ValueError):
            told = json.loads(out)
        return Outcome(
            command.returncode, monotonic() - since, told, complaint.decode(errors="replace").strip()
        )

    def run(self, *arguments: str) -> Outcome:
        since = monotonic()
        return self.finish(self.begin(*arguments), since)
