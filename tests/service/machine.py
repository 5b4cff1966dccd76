"""A machine with a real systemd: boots a container in less than a second, and runs commands inside.

systemd-nspawn makes it, without a system bus or a systemd outside. Its root is `rootfs.cached()` with memory
laid over it, so that every machine begins the same and leaves nothing. No network but its own loopback.
"""

from __future__ import annotations

import os
import platform
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tests.service.rootfs import ROOT, Unavailable, cached, packages

CGROUPS = Path("/sys/fs/cgroup")
LIMITED = ("memory", "pids", "cpu", "cpuacct")  # controllers that systemd inside is to use
ENVIRONMENT = {"PATH": "/opt/edged/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8"}
SHARES = 16_384  # of the processor; as a group it would have those of a single program outside, 1024
BOOT_S = 60.0
HALT_S = 20.0


def why_not() -> str:
    """What keeps this computer from booting one, "" if nothing."""
    if os.geteuid() != 0:
        return "needs root"
    missing = [name for name in ("mmdebstrap", "systemd-nspawn", "nsenter") if shutil.which(name) is None]
    if missing:
        return f"not installed: {', '.join(missing)}"
    if platform.machine() != "x86_64":
        return "made for x86-64"
    return ""


def wait_until(condition: Callable[[], object], timeout_s: float, what: str) -> None:
    end = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"{what} not met within {timeout_s} s")
        time.sleep(0.05)


class Machine:
    """One booted machine. `root` is its file system, as seen from outside; `sound` its /srv/sound.

    installed: with edged from this checkout; otherwise without any, for a package to be tried on.
    """

    def __init__(self, name: str, directory: Path, installed: bool = True) -> None:
        self._name = f"edged-{name}-{os.getpid()}"
        self._cgroups: list[Path] = []
        self._log = log = directory / "log"
        self.sound = directory / "sound"
        self.sound.mkdir()
        self._nspawn: subprocess.Popen[bytes] | None = None
        base = cached()
        command = ["systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--private-network", "--boot"]
        command += [
            f"--directory={base}",
            "--volatile=overlay",
            f"--machine={self._name}",
            "--console=read-only",
        ]
        command += [f"--bind={self.sound}:/srv/sound"]
        try:
            self._make_cgroups()
            with log.open("wb") as out:
                self._nspawn = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=out,
                    start_new_session=True,
                    preexec_fn=self._enter_cgroups,
                )
            self._leader = self._wait_for_systemd()
            self._let_it_limit()
            self.root = Path(f"/proc/{self._leader}/root")
            if installed:
                self._install(packages(base).relative_to(base))
            else:
                self.run("rm", "-rf", "/opt/edged")
        except (PermissionError, subprocess.SubprocessError) as exc:
            self.halt()
            raise Unavailable(f"no control groups: {exc}") from None
        except BaseException:
            self.halt()
            raise

    # -- inside ---------------------------------------------------------------------------------

    def run(
        self, *command: str, user: str = "", check: bool = True, timeout_s: float = 60.0
    ) -> subprocess.CompletedProcess[str]:
        """A command inside, as root or as a user there."""
        result = subprocess.run(
            self.inside(*command, user=user),
            capture_output=True,
            text=True,
            timeout=timeout_s,
            env=ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        if check and result.returncode:
            raise AssertionError(f"{' '.join(command)}: {result.returncode}\n{result.stdout}{result.stderr}")
        return result

    def inside(self, *command: str, user: str = "") -> list[str]:
        """The command as the outside has to run it, with `ENVIRONMENT`."""
        become: list[str] = []
        if user:
            become = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups"]
            become += ["env", f"HOME=/home/{user}", f"USER={user}"]
        # nsenter stops when its child is stopped, and does not go on with it: so that child is a shell.
        between = ["sh", "-c", '"$@"; exit $?', "sh"]
        return ["nsenter", "-t", str(self._leader), "-a", "--", *between, *become, *command]

    @property
    def limits_memory(self) -> bool:
        """Whether systemd inside has a memory controller."""
        groups = self.root / "sys/fs/cgroup"
        unified = groups / "cgroup.controllers"
        return (groups / "memory").is_dir() or (unified.exists() and "memory" in unified.read_text().split())

    def write(self, path: str, text: str) -> None:
        target = self.root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def halt(self) -> None:
        """Ends it, and takes its control groups away."""
        if self._nspawn is not None and self._nspawn.poll() is None:
            # nspawn passes it on as an order to shut down.
            self._nspawn.send_signal(signal.SIGTERM)
            try:
                self._nspawn.wait(HALT_S)
            except subprocess.TimeoutExpired:
                self._nspawn.kill()
                self._nspawn.wait()
        for group in self._cgroups:
            for folder, _, _ in os.walk(group, topdown=False):
                with suppress(OSError):
                    os.rmdir(folder)

    # -- booting --------------------------------------------------------------------------------

    def _make_cgroups(self) -> None:
        """A control group of its own in every hierarchy, below ours."""
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, names, ours = line.split(":", 2)
            if not names:
                hierarchy = CGROUPS if (CGROUPS / "cgroup.procs").exists() else CGROUPS / "unified"
            elif set(names.split(",")) & set(LIMITED) or names == "name=systemd":
                hierarchy = CGROUPS / names.split(",")[0].removeprefix("name=")
            else:
                continue
            parent = hierarchy / ours.lstrip("/")
            if parent.is_dir():
                group = parent / self._name
                group.mkdir()
                self._cgroups.append(group)
                with suppress(OSError):  # only the one of the processor has it
                    (group / "cpu.shares").write_text(str(SHARES))

    def _enter_cgroups(self) -> None:
        for group in self._cgroups:
            (group / "cgroup.procs").write_text("0")

    def _wait_for_systemd(self) -> int:
        assert self._nspawn is not None
        children = Path(f"/proc/{self._nspawn.pid}/task/{self._nspawn.pid}/children")
        end = time.monotonic() + BOOT_S
        while time.monotonic() < end:
            if self._nspawn.poll() is not None:
                raise Unavailable(f"systemd-nspawn: {self._log.read_text(errors='replace').strip()[-300:]}")
            with suppress(OSError, IndexError):
                leader = int(children.read_text().split()[0])
                if Path(f"/proc/{leader}", "root", "run/systemd/private").is_socket():
                    return leader
            time.sleep(0.05)
        raise Unavailable(f"no systemd within {BOOT_S} s: {self._log.read_text(errors='replace')[-300:]}")

    def _let_it_limit(self) -> None:
        """nspawn mounts the controllers of cgroup v1 read-only; systemd looks for them when it starts."""
        for name in LIMITED:
            if (CGROUPS / name).is_dir():
                self.run("mount", "-o", "remount,bind,rw", f"/sys/fs/cgroup/{name}", check=False)
        self.run("systemctl", "daemon-reexec")
        self.run("systemctl", "is-system-running", "--wait", check=False)

    def _install(self, where: Path) -> None:
        """edged from this checkout, and everything of systemd/ in its place."""
        target = self.root / where / "edged"
        shutil.copytree(ROOT / "edged", target, ignore=shutil.ignore_patterns("__pycache__"))
        (target / "data").mkdir(exist_ok=True)
        shutil.copy(ROOT / "config/edged.yaml", target / "data/edged.yaml")
        self.write(
            "opt/edged/bin/edged", "#!/opt/edged/bin/python\nfrom edged.__main__ import main\n\nmain()\n"
        )
        self.run("chmod", "755", "/opt/edged/bin/edged")
        self.run("/opt/edged/bin/python", "-m", "compileall", "-q", f"/{where}/edged")
        shutil.copy(ROOT / "systemd/edged.service", self.root / "etc/systemd/system")
        for name in ("sysusers.d", "tmpfiles.d"):
            (self.root / "etc" / name).mkdir(exist_ok=True)
            shutil.copy(ROOT / "systemd" / name / "edged.conf", self.root / "etc" / name)
        for catalog in (ROOT / "systemd").glob("*.catalog"):
            shutil.copy(catalog, self.root / "usr/lib/systemd/catalog")
        self.run("journalctl", "--update-catalog")
        self.run("systemd-sysusers", "edged.conf")
        self.run("systemd-tmpfiles", "--create", "edged.conf")
        self.run("systemctl", "daemon-reload")
