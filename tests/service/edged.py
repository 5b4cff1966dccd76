"""edged.service inside a machine: what an administrator and a user do with it."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

from edged.client import Client
from tests.service.machine import ENVIRONMENT, Machine, wait_until

UNIT = "edged.service"
CONFIG = "/etc/edged/edged.yaml"
DROP_INS = "/etc/systemd/system/edged.service.d"
SENTENCE = "Pump four has stopped."
LONG = " ".join(f"Line number {n} is running again." for n in range(120))


class Edged:
    """The unit, its configuration and its log since `reset`."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine

    # -- the administrator ----------------------------------------------------------------------

    def reset(self) -> None:
        """Stopped, not failed, without drop-ins, with the voice tone."""
        run = self.machine.run
        run("systemctl", "stop", UNIT, check=False)
        run("rm", "-rf", DROP_INS, CONFIG)
        run("systemctl", "daemon-reload")
        run("systemctl", "reset-failed", UNIT, check=False)
        self.configure("voices: {bundles: [tone]}\naudio: {enabled: false}\n")
        self._since = f"@{time.time():.6f}"

    def configure(self, text: str) -> None:
        self.machine.run("rm", "-f", CONFIG)
        self.machine.write(CONFIG, text)

    def drop_in(self, name: str, text: str) -> None:
        self.machine.write(f"{DROP_INS}/{name}", text)
        self.machine.run("systemctl", "daemon-reload")

    def start(self) -> None:
        """Returns when it is READY."""
        try:
            self.machine.run("systemctl", "start", UNIT, timeout_s=200)
        except AssertionError as exc:
            raise AssertionError(f"{exc}\n{self.log}") from None

    def try_to_start(self) -> bool:
        return self.machine.run("systemctl", "start", UNIT, check=False, timeout_s=200).returncode == 0

    def signal(self, name: str) -> None:
        """To its main process."""
        self.machine.run("systemctl", "kill", f"--signal={name}", "--kill-who=main", UNIT)

    def show(self, name: str) -> str:
        """A property of the unit."""
        return self.machine.run("systemctl", "show", UNIT, f"--property={name}", "--value").stdout.strip()

    def wait_for(self, name: str, value: str, timeout_s: float = 60.0) -> None:
        wait_until(lambda: self.show(name) == value, timeout_s, f"{name}={value} (log: {self.log[-1500:]})")

    def wait_to_settle(self, timeout_s: float = 60.0) -> None:
        """Until it is up, or down for good."""
        settled = ("active", "failed", "inactive")
        wait_until(lambda: self.show("ActiveState") in settled, timeout_s, "up or down")

    @property
    def endpoint(self) -> str:
        """Its socket, as seen from outside."""
        return f"ipc://{self.machine.root}/run/edged/edged.sock"

    @property
    def pid(self) -> int:
        return int(self.show("MainPID"))

    @property
    def log(self) -> str:
        """What the journal has of it, systemd's own lines included."""
        self.machine.run("journalctl", "--sync")
        show = ["journalctl", "--unit", UNIT, "--since", self._since, "--output=cat", "--no-pager"]
        return self.machine.run(*show).stdout

    # -- the user -------------------------------------------------------------------------------

    def say(
        self, text: str = SENTENCE, *options: str, user: str = "alice", timeout_s: float = 60.0
    ) -> subprocess.CompletedProcess[str]:
        """As a file, since the machine has no loudspeaker of its own."""
        command = ["edged", "--timeout", f"{timeout_s}", "say", "--out", f"/tmp/{user}.wav", *options, text]
        return self.machine.run(*command, user=user, check=False)

    def speaks(self, user: str = "alice") -> bool:
        """A sentence, at the first try."""
        wav = self.machine.root / "tmp" / f"{user}.wav"
        wav.unlink(missing_ok=True)
        return self.say(user=user).returncode == 0 and wav.read_bytes()[:4] == b"RIFF"


@contextmanager
def saying(edged: Edged, text: str, *options: str) -> Iterator[subprocess.Popen[str]]:
    """A job of alice's that the service has begun; its audio goes to /tmp/long.wav."""
    say = edged.machine.inside("edged", "say", "--out", "/tmp/long.wav", *options, text, user="alice")
    with subprocess.Popen(say, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True) as job:
        try:
            with Client(edged.endpoint, timeout_s=60.0) as client:
                while not client.status().jobs:
                    assert job.poll() is None, "the job was over too soon"
                    time.sleep(0.002)
            yield job
        finally:
            if job.poll() is None:
                job.kill()
