"""The support archive: what someone far away needs to know about a silent box, and nothing private.

Main thread. Everything is collected as well as it can be; what cannot be is a line of `notes.txt`.
Neighbours: `redact` takes texts and secrets out, `edged.cli.doctor` calls `write`.
"""

from __future__ import annotations

import io
import json
import os
import platform
import subprocess
import tarfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import msgspec

from edged import __version__
from edged.bundle import installed, read_manifest
from edged.doctor import machine, redact, unit
from edged.doctor.findings import Case, Finding
from edged.errors import EdgedError
from edged.paths import bundle_directories

LINES = 5_000  # of the journal, the latest
JOURNAL_WAIT_S = 30.0
JOURNALS = (["-u", unit.UNIT], ["--user", "-u", unit.UNIT])  # of the system's service, of the user's own
FOLDER = "edged-support"
FILES = ("/etc/os-release", "/proc/meminfo", "/proc/loadavg", "/proc/asound/cards", "/etc/nv_tegra_release")


def write(path: Path, case: Case, findings: Sequence[Finding]) -> list[str]:
    """Writes the archive, readable by its owner only; the names of the files in it."""
    collected = _collect(case, findings)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with (
            open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file,
            tarfile.open(fileobj=file, mode="w:gz") as archive,
        ):
            for name, data in collected.items():
                entry = tarfile.TarInfo(f"{FOLDER}/{name}")
                entry.size, entry.mtime, entry.mode = len(data), int(time.time()), 0o600
                archive.addfile(entry, io.BytesIO(data))
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    return list(collected)


def _collect(case: Case, findings: Sequence[Finding]) -> dict[str, bytes]:
    notes: list[str] = []
    files: dict[str, bytes] = {"doctor.json": _json([asdict(finding) for finding in findings])}

    @contextmanager
    def part(name: str) -> Iterator[Callable[[bytes], None]]:
        try:
            yield lambda data: files.__setitem__(name, data)
        except (EdgedError, OSError, subprocess.SubprocessError, ValueError) as exc:
            notes.append(f"{name}: {type(exc).__name__}: {exc}")

    with part("versions.json") as keep:
        keep(_json(_versions()))
    with part("settings.json") as keep:
        keep(_json(redact.settings(case.settings)))
    with part("bundles.json") as keep:
        keep(_json(_bundles(case)))
    with part("unit.json") as keep:
        keep(_json(unit.properties()))
    with part("devices.json") as keep:
        keep(_json(_devices()))
    for path in filter(os.path.exists, FILES):
        with part(f"system/{path.rpartition('/')[2]}") as keep:
            keep(Path(path).read_bytes())
    if isinstance(case.status, EdgedError):
        notes.append(f"status.json: {case.status.message}")
    else:
        files["status.json"] = msgspec.json.encode(case.status)  # with the memory plan
        with part("stats.json") as keep, case.client() as client:
            keep(msgspec.json.encode(client.stats()))
    with part("journal.jsonl") as keep:
        keep(journal())
    files["notes.txt"] = ("\n".join(["not in this archive:", *notes]) + "\n").encode() if notes else b""
    return files


def _versions() -> dict[str, Any]:
    names = (*machine.PACKAGES, *machine.MORE_PACKAGES, *machine.OPTIONAL)
    uname = platform.uname()
    return {
        "edged": __version__,
        "python": platform.python_version(),
        "packages": machine.installed(names),
        "kernel": f"{uname.system} {uname.release} {uname.machine}",  # the machine's name is not told
        "libc": " ".join(platform.libc_ver()),
    }


def _bundles(case: Case) -> list[dict[str, Any]]:
    told = []
    for path in installed(bundle_directories(case.settings.voices.directory)):
        entry: dict[str, Any] = {"path": str(path)}
        try:
            manifest = read_manifest(path)
        except EdgedError as error:
            told.append(entry | {"code": error.code, "message": error.message})
            continue
        entry |= {name: getattr(manifest, name) for name in ("name", "version", "family", "precision")}
        entry["voices"] = [voice.name for voice in manifest.voices]
        entry["files"] = {file.file: file.bytes for file in (*manifest.engines, *manifest.data)}
        told.append(entry)
    return told


def _devices() -> list[dict[str, Any]]:
    from edged.audio.find import drivers_muted, found

    with drivers_muted():
        return [asdict(device) for device in found()]


def journal() -> bytes:
    """The latest lines of the service that may be shown, one JSON object a line."""
    for which in JOURNALS:
        command = ["journalctl", "-o", "json", "--no-pager", "-q", "-n", str(LINES), *which]
        read = subprocess.run(command, capture_output=True, timeout=JOURNAL_WAIT_S, check=False)
        lines = [line for line in read.stdout.splitlines() if line]
        if lines:
            entries = (redact.entry(json.loads(line)) for line in lines)
            return b"".join(json.dumps(entry).encode() + b"\n" for entry in entries if entry is not None)
    raise OSError("the journal has no lines of the service, or this user may not read it (group adm)")


def _json(value: object) -> bytes:
    return json.dumps(value, indent=1).encode() + b"\n"
