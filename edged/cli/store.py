"""`edged bundle install | activate | rollback | prune`: versions of a bundle on this machine.

Main thread. A version is tried in a process of its own before it is used; a daemon that runs is told to take
it, and when it refuses, the link goes back to the version it has. Neighbours: `edged.store`,
`edged.store_install`, `edged.voices.trial`, imported when their command runs; `bundles` has the group.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from edged.cli.context import State, client_command, json_option, pass_state
from edged.cli.exits import complain, document, flush_stdout, tell, write_json

if TYPE_CHECKING:
    from edged.settings import Settings
    from edged.store import Store


def _opened() -> tuple[Store, Settings]:
    """The store that this user may write to, and the settings of the daemon."""
    from edged import config
    from edged.errors import ConfigError
    from edged.paths import writable_bundle_directory
    from edged.settings import Settings
    from edged.store import Store

    try:
        settings = config.load(config.find())
    except ConfigError as error:
        complain(f"warning: the configuration is left aside: {error.message}", error.hint)
        settings = Settings()
    directory = writable_bundle_directory(settings.voices.directory)
    if not (settings.voices.directory or os.environ.get("EDGED_BUNDLES")):
        _not_past_the_service(directory)
    return Store(directory), settings


def _not_past_the_service(directory: Path) -> None:
    """What a user puts into a folder of their own is never seen by the service of this machine."""
    from edged.bundle import installed
    from edged.errors import ConfigError
    from edged.paths import SYSTEM_STATE, service_installed, state_directory

    services = SYSTEM_STATE / "bundles"
    if directory == services or state_directory() is not None:
        return
    if service_installed() or any(installed([services])):
        raise ConfigError(
            f"the service reads {services}, and this user may not write there",
            "sudo edged bundle ...; for a daemon of your own name the folder that it reads: "
            f"EDGED_BUNDLES={directory} edged bundle ...",
        )


@click.command()
@click.argument("source", metavar="ARCHIVE_OR_DIR", type=click.Path(path_type=Path))
@json_option
@pass_state
def install(state: State, source: Path) -> None:
    """Put a bundle beside the others; it is used after `edged bundle activate`."""
    store, _ = _opened()
    path = put_in(store, source, quiet=state.as_json)
    if state.as_json:
        write_json(document({"installed": path.name, "path": str(path)}))


def put_in(store: Store, source: Path, quiet: bool = False) -> Path:
    """Puts a bundle into the store, and tells how to use it."""
    from edged.store_install import install as put

    path = put(store, source)
    if not quiet:
        tell(f"installed {path}\nuse it with: edged bundle activate {path.name}")
    return path


@click.command()
@click.argument("version", metavar="NAME[-VERSION-HASH]")
@click.option("--no-reload", is_flag=True, help="Do not tell the daemon; it takes the bundle when it starts.")
@click.option("--no-trial", is_flag=True, help="Check the files only, do not load the bundle.")
@client_command
@pass_state
def activate(state: State, version: str, no_reload: bool, no_trial: bool) -> None:
    """Use an installed version of a bundle: check it, try it, switch to it.

    Every file is compared with its hash, and the bundle is loaded and heard in a process of its own, within
    service.memory_mb. One for TensorRT must have been measured, and near enough to its checkpoint, when it
    was built. The version in use so far is kept, see `edged bundle rollback`. A running daemon takes
    the new one without losing a job; if it cannot, the old one stays in use.
    """
    from edged.bundle import Bundle, read_manifest
    from edged.precision import check_precision
    from edged.voices import trial

    store, settings = _opened()
    chosen = store.choose(version)
    check_precision(read_manifest(chosen.path))
    report = None
    if no_trial:
        Bundle.load(chosen.path)
    else:
        report = trial.run(chosen.path, settings)
    with store.locked():
        used = _use(state, store, chosen.name, chosen.path, reload=not no_reload)
    _show(state, used)
    if report is not None and not state.as_json:
        heard = ", ".join(report.voices)
        tell(f"tried in {report.seconds:g} s with {report.peak_mb:.0f} MB at most, heard: {heard}")
    flush_stdout()


@click.command()
@click.argument("name")
@click.option("--no-reload", is_flag=True, help="Do not tell the daemon; it takes the bundle when it starts.")
@client_command
@pass_state
def rollback(state: State, name: str, no_reload: bool) -> None:
    """Use the version of bundle NAME again that was in use before; again: forth."""
    from edged.bundle import Bundle
    from edged.errors import BundleMissing
    from edged.paths import bundle_directories

    store, settings = _opened()
    with store.locked():
        before = store.before(name, bundle_directories(settings.voices.directory))
        if before is None:
            raise BundleMissing(
                f"{name}: there is no version before the one in use",
                "edged bundle list shows what is installed",
            )
        Bundle.load(before, verify=False)  # it was in use: its hashes were checked then
        used = _use(state, store, name, before, reload=not no_reload)
    _show(state, used)
    flush_stdout()


@click.command()
@click.argument("name", required=False, default="")
@click.option("--keep", type=click.IntRange(min=0), default=0, metavar="N", help="Keep the newest N of them.")
@json_option
@pass_state
def prune(state: State, name: str, keep: int) -> None:
    """Delete the versions (of NAME) that are neither in use nor the ones before."""
    store, _ = _opened()
    gone = store.prune(keep, name)
    if state.as_json:
        write_json(document({"deleted": gone}))
    else:
        tell("\n".join(f"deleted {folder}" for folder in gone) or "nothing to delete")


class _Used(NamedTuple):
    """A switch that was made. current, before: versions, or a path outside of the store; before may be
    empty, or the same. daemon: what it made of it."""

    name: str
    current: str
    before: str
    daemon: str


def _use(state: State, store: Store, name: str, path: Path, reload: bool) -> _Used:
    """Switches, tells the daemon, and switches back when it does not come to speak with it. The store is
    locked all the time: the version that the daemon was asked to take is the one that it finds. Nothing is
    told on stdout meanwhile: whether it is read decides about nothing."""
    from edged.errors import EdgedError, RestartNeeded

    former = store.previous(name)
    inside = path.parent == store.directory  # not one that came with an installation
    folder = path.name if inside else str(path)
    before = store.switch(name, folder) if inside else store.withdraw(name)
    daemon = "not told"
    if reload:
        try:
            daemon = _reload(state, path)
        except RestartNeeded as error:
            daemon = "needs a restart"
            complain(f"warning: {error.message}", error.hint)
        except EdgedError:
            if before != folder:
                store.undo(name, before, former)
                complain(
                    f"the daemon did not take {folder}: {before or 'what was there before'} is in use again"
                )
            raise
    return _Used(name, folder, before, daemon)


def _show(state: State, used: _Used) -> None:
    name, current, before, daemon = used
    if state.as_json:
        write_json(document({"name": name, "current": current, "previous": before, "daemon": daemon}))
        return
    if before == current:
        tell(f"{name}: {current} was in use already")
    else:
        tell(f"{name}: {current} is in use, {f'{before} before' if before else 'nothing before'}")
    tell(f"daemon: {daemon}")


def _reload(state: State, path: Path) -> str:
    """Tells the daemon, if there is one; what it made of it. Raises what kept it from taking the bundle."""
    from edged.errors import BundleTrialFailed, NoDaemon

    with state.client() as client:
        try:
            client.ping()
        except NoDaemon as error:
            return f"not told, {error.message}; it takes the bundle when it starts"
        try:
            reply = client.reload()
        except NoDaemon:
            raise BundleTrialFailed(
                f"{path.name}: the daemon ended while it loaded the bundle",
                "the bundle in use was kept; read why: journalctl -u edged -x -e",
            ) from None
    if str(path.resolve()) not in reply.bundles.values():
        return "runs, but does not load this bundle (voices.bundles, voices.directory)"
    return "speaks with it now"
