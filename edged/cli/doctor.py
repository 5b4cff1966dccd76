"""`edged doctor`: checks the whole chain, and packs a support archive. Main thread.

Neighbour: `edged.doctor`, imported when the command runs.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from edged.cli.context import State, client_command, pass_state
from edged.cli.exits import FAILED, OK, document, flush_stdout, naming, tell, write_json
from edged.cli.render import on_terminal
from edged.escape import printable

if TYPE_CHECKING:
    from edged.doctor.findings import Case, Check, Finding
    from edged.protocol import StatusReply
    from edged.settings import Settings

COLOURS = {"ok": "green", "warning": "yellow", "failed": "red", "skipped": "bright_black"}


@click.command()
@click.option("--config", "config_path", metavar="FILE", help="Default: as the daemon finds it.")
@click.option(
    "--tone/--no-tone", default=None, help="Play a test tone (default: only when a person looks on)."
)
@click.option(
    "--bundle",
    "archive",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="OUT.tar.gz",
    help="Also collect a support archive, without spoken texts and secrets.",
)
@client_command
@pass_state
def doctor(state: State, config_path: str | None, tone: bool | None, archive: Path | None) -> int:
    """Why is this machine silent? Checks everything from the processor to the loudspeaker.

    Prints ok, warning or failed for each link, with what to do. Exit code 1 when one has failed.
    """
    from edged.doctor import support
    from edged.doctor.findings import run

    watched = on_terminal(sys.stdout) and not state.as_json
    found: list[Finding] = []

    def add(finding: Finding) -> None:
        found.append(finding)
        if not state.as_json:
            _show(finding)
            flush_stdout()

    settings, problems = _settings(config_path)
    for problem in problems:
        add(problem)
    case = _case(state, settings, watched if tone is None else tone)
    for finding in run(case, _checks()):
        add(finding)
    counted: Counter[str] = Counter(finding.state for finding in found)
    files: Sequence[str] = ()
    if archive is not None:
        with naming(str(archive)):
            files = support.write(archive, case, found)
    if state.as_json:
        told = {"ok": not counted["failed"], "counts": dict(counted), "checks": [asdict(f) for f in found]}
        write_json(document(told | ({"archive": str(archive), "files": files} if archive else {})))
    else:
        tell("\n" + ", ".join(f"{counted[name]} {name}" for name in COLOURS if counted[name]))
        if archive is not None:
            tell(f"support archive: {archive} ({', '.join(files)})")
    return FAILED if counted["failed"] else OK


def _settings(config_path: str | None) -> tuple[Settings, list[Finding]]:
    """What the daemon would read. A file that cannot be used is a finding; the checks take the defaults."""
    from edged import config
    from edged.doctor import unit
    from edged.doctor.findings import Finding
    from edged.errors import ConfigError

    path = config.find(config_path)
    told = str(path) if path else "no file, the defaults"
    if path is not None and _forbidden(path):  # only the service may read it
        text = f"{path} may not be read by this user: the defaults are checked"
        return config.load(None), [Finding("configuration", "warning", text, "sudo edged doctor")]
    if path is not None and (user := unit.forbidden(path)):
        text = f"{path} may not be read by {user}, the service's user"
        return config.load(None), [Finding("configuration", "failed", text, f"chmod a+r {path}")]
    try:
        return config.load(path), [Finding("configuration", "ok", told)]
    except ConfigError as error:
        if not error.problems:
            return config.load(None), [Finding.of("configuration", error)]
        return config.load(None), [
            Finding("configuration", "failed", str(problem), "correct it and restart the daemon", error.code)
            for problem in error.problems
        ]


def _forbidden(path: Path) -> bool:
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
    except PermissionError:
        return True
    except OSError:
        return False
    return False


def _case(state: State, settings: Settings, tone: bool) -> Case:
    from edged.doctor import setup
    from edged.doctor.findings import Case
    from edged.errors import EdgedError

    told = state.endpoint or os.environ.get("EDGED_ENDPOINT") or settings.listen.endpoint
    endpoint = setup.endpoint(told)
    state.endpoint = endpoint
    status: StatusReply | EdgedError
    try:
        with state.client() as client:
            status = client.status(memory=True)
    except EdgedError as error:
        status = error
    return Case(settings, endpoint, state.client, status, tone)


def _checks() -> list[tuple[str, Check]]:
    """In the order in which they explain each other."""
    from edged.doctor import daemon, gpu, jetson, machine, setup, sound, unit

    return [
        ("versions", machine.versions),
        ("processor", machine.processor),
        ("GPU", machine.gpu),
        ("Jetson", jetson.jetson),
        ("memory", machine.memory),
        ("disk", machine.disk),
        ("clock", machine.clock),
        ("bundle", setup.bundles),
        ("GPU packages", gpu.packages),
        ("memory plan", setup.plan),
        ("service", unit.service),
        ("socket", setup.socket),
        ("daemon", daemon.answers),
        ("speech", daemon.speech),
        ("speed and pitch", sound.stretching),
        ("loudspeaker", sound.loudspeaker),
        ("remote control", sound.remote),
    ]


def _show(finding: Finding) -> None:
    word = finding.state.ljust(7)
    if on_terminal(sys.stdout):
        word = click.style(word, fg=COLOURS[finding.state], bold=finding.state == "failed")
    code = f" [{finding.code}]" if finding.code else ""
    tell(printable(f"  {finding.name}: {finding.message}{code}"), coloured=word)
    if finding.remedy:
        tell(f"         -> {printable(finding.remedy)}")
