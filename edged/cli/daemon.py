"""`edged serve`, `check-config`, `config` and `keys make`: running and setting up the daemon.

Main thread. Neighbours: `edged.service`, `edged.config`, imported when their command runs.
"""

from __future__ import annotations

import os
import sys
from dataclasses import asdict
from pathlib import Path

import click

from edged.cli.context import Endpoint, State, client_command, json_option, pass_state
from edged.cli.exits import OK, USAGE, complain, document, exit_code, naming, tell, write_json
from edged.cli.render import fields
from edged.errors import EdgedError

LEVELS = ("debug", "info", "warning", "error")


@click.command()
@click.option(
    "--config", "config_path", metavar="FILE", help="Default: $EDGED_CONFIG or /etc/edged/edged.yaml."
)
@click.option("--endpoint", type=Endpoint(), metavar="URL", help="Where clients connect (listen.endpoint).")
@click.option("--bundle", "bundles", multiple=True, metavar="NAME|PATH", help="Voice to load; repeatable.")
@click.option("--log-level", type=click.Choice(LEVELS))
@pass_state
def serve(
    state: State,
    config_path: str | None,
    endpoint: str | None,
    bundles: tuple[str, ...],
    log_level: str | None,
) -> int:
    """Run the daemon in the foreground until SIGTERM or Ctrl-C."""
    from edged import log, service

    named = tuple(_folder_or_name(bundle) for bundle in bundles)
    try:
        return service.run(config_path, endpoint or state.endpoint or None, named, log_level)
    except EdgedError as error:
        if log.is_journal(sys.stderr):  # it is there already, with its code
            return exit_code(error)
        raise


def _folder_or_name(bundle: str) -> str:
    """A bundle in the working directory is named as a path, so that its bare name finds it too, as with the
    other commands; any other name is looked for among the installed ones."""
    there = "/" not in bundle and Path(bundle, "manifest.json").is_file()
    return f"./{bundle}" if there else bundle


@click.command()
@client_command
@pass_state
def reload(state: State) -> None:
    """Make the daemon read its configuration and bundles again; no job is dropped.

    When they cannot be used, it goes on with the old ones, and this command fails.
    """
    with state.client() as client:
        reply = client.reload()

    def text() -> None:
        fields(
            [
                ("changed", ", ".join(reply.changed) or "no setting"),
                ("loaded", ", ".join(reply.loaded) or "no voice anew"),
                ("lexicons", f"read anew, entries: {reply.lexicon}"),
                *((f"bundle {name}", path) for name, path in reply.bundles.items()),
            ]
        )
        if reply.restart:
            complain(f"a restart is needed for: {', '.join(reply.restart)}", "systemctl restart edged")

    state.show(reply, text)


@click.command("check-config")
@click.argument("file", type=click.Path(path_type=Path))
@json_option
@pass_state
def check_config(state: State, file: Path) -> int:
    """Check a configuration FILE; every problem is told on a line of its own.

    Only the file itself is checked: whether bundles, groups, keys, addresses and devices that it names are
    there, is told by `edged doctor`, and by the start.
    """
    from edged import config
    from edged.errors import ConfigError, Problem

    problems: tuple[Problem, ...] = ()
    try:
        config.load(file, pipes=True)
    except ConfigError as error:
        problems = error.problems or (Problem(str(file), 0, "", error.message, hint=error.hint),)
    if state.as_json:
        told = [asdict(problem) for problem in problems]
        write_json(document({"file": str(file), "ok": not problems, "problems": told}))
    else:
        for problem in problems:
            tell(problem)
        if not problems:
            tell(f"{file}: ok")
    return USAGE if problems else OK


@click.command("config")
def show_config() -> None:
    """Print the annotated configuration file, with every default."""
    from edged import config

    tell(config.template(), end="")


@click.group()
def keys() -> None:
    """Keys for daemons that listen on tcp://."""


@keys.command()
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path))
@click.argument("name")
def make(directory: Path, name: str) -> int:
    """Make the key pair NAME.key (to give away) and NAME.key_secret (to keep) in DIRECTORY.

    Only you can read the secret one. For a service that runs as another user:
    chgrp edged FILE; chmod 640 FILE
    """
    from zmq.auth import create_certificates

    if name in ("", ".", "..") or "/" in name or not name.isprintable():
        raise click.UsageError(f"{name!r} is not a usable name for a file")
    public, secret = directory / f"{name}.key", directory / f"{name}.key_secret"
    for path in (public, secret):
        if path.exists():
            complain(f"error [exists]: {path} is there already", "remove it first, or choose another name")
            return USAGE
    directory.mkdir(parents=True, exist_ok=True)
    before = os.umask(0o077)  # the secret file is never readable by others, not even for a moment
    try:
        with naming(str(directory)):
            create_certificates(directory, name)
    finally:
        os.umask(before)
    public.chmod(0o644)
    tell(f"{public}\n{secret}")
    return OK
