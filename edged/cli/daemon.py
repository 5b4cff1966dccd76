"""`edged serve`, `check-config`, `config` and `keys make`: running and setting up the daemon.

Main thread. Neighbours: `edged.service`, `edged.config`, imported when their command runs.
"""

from __future__ import annotations

import os
from pathlib import Path

import click

from edged.cli.context import State, pass_state
from edged.cli.exits import OK, USAGE, complain

LEVELS = ("debug", "info", "warning", "error")


@click.command()
@click.option(
    "--config", "config_path", metavar="FILE", help="Default: $EDGED_CONFIG or /etc/edged/edged.yaml."
)
@click.option("--endpoint", metavar="URL", help="Where clients connect (listen.endpoint).")
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
    from edged import service

    return service.run(config_path, endpoint or state.endpoint or None, bundles, log_level)


@click.command("check-config")
@click.argument("file", type=click.Path(path_type=Path))
def check_config(file: Path) -> int:
    """Check a configuration FILE; every problem is told on a line of its own."""
    from edged import config
    from edged.errors import ConfigError

    try:
        config.load(file)
    except ConfigError as error:
        for problem in error.problems or (error,):
            print(problem)
        return USAGE
    print(f"{file}: ok")
    return OK


@click.command("config")
def show_config() -> None:
    """Print the annotated configuration file, with every default."""
    from edged import config

    print(config.template(), end="")


@click.group()
def keys() -> None:
    """Keys for daemons that listen on tcp://."""


@keys.command()
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path))
@click.argument("name")
def make(directory: Path, name: str) -> int:
    """Make the key pair NAME.key (to give away) and NAME.key_secret (to keep) in DIRECTORY."""
    from zmq.auth import create_certificates

    if not name or "/" in name:
        raise click.UsageError(f"{name!r} is not a usable name for a file")
    public, secret = directory / f"{name}.key", directory / f"{name}.key_secret"
    for path in (public, secret):
        if path.exists():
            complain(f"error [exists]: {path} is there already", "remove it first, or choose another name")
            return USAGE
    directory.mkdir(parents=True, exist_ok=True)
    before = os.umask(0o077)  # the secret file is never readable by others, not even for a moment
    try:
        create_certificates(directory, name)
    finally:
        os.umask(before)
    public.chmod(0o644)
    print(f"{public}\n{secret}")
    return OK
