"""Where things live: the sockets, the bundles, and who may be trusted with their directories.

Functions of the environment and the file system, without state; any thread. The daemon and its client
library ask the same functions, so that they meet at the same socket without being told. Neighbours:
`service`, `endpoints`, `client`, `cli` and `bundle` call it; it knows only `errors`.
"""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

from edged.errors import ConfigError

SOCKET = "edged.sock"
SYSTEM_RUNTIME = Path("/run/edged")  # RuntimeDirectory= of the system service
SYSTEM_STATE = Path("/var/lib/edged")  # StateDirectory= of the system service
UNIT = "edged.service"
UNIT_DIRECTORIES = tuple(
    Path(place) / "systemd/system" for place in ("/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib")
)
USER_RUNTIME = Path("/run/user")
TEMPORARY = Path("/tmp")


# -- sockets ------------------------------------------------------------------------------------


def default_endpoint() -> str:
    """Where a daemon listens that was told nothing."""
    return f"ipc://{_socket_directories()[0] / SOCKET}"


def events_endpoint(endpoint: str) -> str:
    """Where the events of the daemon at `endpoint` are published: beside it, or on the next TCP port."""
    if endpoint.startswith("tcp://"):
        host, _, port = endpoint.rpartition(":")
        return f"{host}:{int(port) + 1}" if port.isdecimal() else endpoint  # "*": any free port
    if endpoint.endswith(".sock"):
        return endpoint.removesuffix(".sock") + "-events.sock"
    return endpoint + "-events"


def client_endpoint(explicit: str | None = None) -> str:
    """Where a client connects: as told, else `$EDGED_ENDPOINT`, else the first daemon that is there.

    One's own daemon comes before the system's. A directory in /tmp that someone else has made is passed
    over, with a socket in it or without one yet: what is spoken is private.
    """
    told = explicit or os.environ.get("EDGED_ENDPOINT")
    if told:
        return told
    for directory in [*_socket_directories(), SYSTEM_RUNTIME]:
        if _has_socket(directory):
            return f"ipc://{directory / SOCKET}"
    own = _socket_directories()[0]
    return f"ipc://{(SYSTEM_RUNTIME if why_unsafe(own) else own) / SOCKET}"


def prepare_directory(endpoint: str) -> None:
    """Makes the directory of an ipc endpoint, mode 0700, or checks the one that is there.

    Raises `ConfigError` when it cannot be made, or when another user could replace the socket in it.
    """
    if not endpoint.startswith("ipc://"):
        return
    directory = Path(endpoint.removeprefix("ipc://")).parent
    try:
        directory.mkdir(mode=0o700, exist_ok=True)
        reason = _why_unsafe(directory)
    except OSError as exc:
        raise ConfigError(
            f"the socket's directory {directory} cannot be made: {exc.strerror}",
            "choose another place with listen.endpoint or --endpoint",
        ) from None
    if reason:
        raise ConfigError(
            f"the socket's directory {directory} {reason}",
            "remove it, or choose another place with listen.endpoint or --endpoint",
        )


def _socket_directories() -> list[Path]:
    """In order of preference; the last one is always possible."""
    found = []
    if runtime := _first_of("RUNTIME_DIRECTORY"):
        found.append(runtime)
    if session := _absolute("XDG_RUNTIME_DIR"):
        found.append(session / "edged")
    login = USER_RUNTIME / str(os.getuid())
    # The session exists, but sudo, cron or ssh dropped XDG_RUNTIME_DIR. Path.is_dir would raise where a
    # hardened unit (ProtectHome=) lets nobody look into /run/user.
    if os.path.isdir(login):
        found.append(login / "edged")
    found.append(TEMPORARY / f"edged-{os.getuid()}")
    return list(dict.fromkeys(found))


def _why_unsafe(directory: Path) -> str:
    """As `why_unsafe`. Raises `OSError`.

    Only directories below one that anybody may write to (as /tmp) are in question: the name there is
    known beforehand, and whoever comes first can take it.
    """
    if not directory.parent.stat().st_mode & stat.S_IWOTH:
        return ""
    found = directory.lstat()
    if not stat.S_ISDIR(found.st_mode):
        return "is not a directory"
    if found.st_uid not in (os.geteuid(), 0):
        return f"belongs to another user (uid {found.st_uid})"
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return "may be written to by other users"
    return ""


def why_unsafe(directory: Path) -> str:
    """Why another user could put a socket of theirs here; empty when they could not, or when it is not there
    or not for us to look at."""
    try:
        return _why_unsafe(directory)
    except OSError:
        return ""


def _has_socket(directory: Path) -> bool:
    try:
        return stat.S_ISSOCK((directory / SOCKET).stat().st_mode) and not _why_unsafe(directory)
    except OSError:  # not there, or not for us
        return False


def state_directory() -> Path | None:
    """Where the system service keeps what outlives its process; None for a daemon that has no such place."""
    return _first_of("STATE_DIRECTORY")


# -- bundles ------------------------------------------------------------------------------------


def bundle_directories(setting: str = "") -> list[Path]:
    """Where bundles are looked for, in this order; they need not exist. `setting`: voices.directory.

    Directories named in $EDGED_BUNDLES take the place of the usual ones.
    """
    found = []
    if setting:
        found.append(Path(os.path.expanduser(setting)))
    if named := [Path(name) for name in os.environ.get("EDGED_BUNDLES", "").split(":") if name]:
        return list(dict.fromkeys([*found, *named]))
    if state := _first_of("STATE_DIRECTORY"):
        found.append(state / "bundles")
    found.append(SYSTEM_STATE / "bundles")
    home = os.path.expanduser("~")  # stays "~" for a uid without an entry in /etc/passwd
    if sys.prefix != sys.base_prefix:  # a virtual environment can bring its own
        found.append(_installation_bundles())
    if data := _absolute("XDG_DATA_HOME"):
        found.append(data / "edged" / "bundles")
    elif home.startswith("/"):
        found.append(Path(home) / ".local" / "share" / "edged" / "bundles")
    return list(dict.fromkeys(found))


def writable_bundle_directory(setting: str = "") -> Path:
    """The first of the bundle directories in which this user may write, or which they may make."""
    candidates = bundle_directories(setting)
    if setting or os.environ.get("EDGED_BUNDLES"):
        candidates = candidates[:1]  # it was named: writing elsewhere would surprise
    else:  # what came with an installation stays as it was installed: the next release takes its place
        candidates = [place for place in candidates if place != _installation_bundles()]
    for directory in candidates:
        there = directory
        while not os.path.lexists(there) and there != there.parent:
            there = there.parent
        if there.is_dir() and os.access(there, os.W_OK | os.X_OK):
            return directory
    raise ConfigError(
        f"bundles cannot be written to {' or '.join(map(str, candidates))}",
        "run the command as the owner of that directory (sudo), or name another with voices.directory "
        "or EDGED_BUNDLES",
    )


def _installation_bundles() -> Path:
    """Of the virtual environment that this program is in."""
    return Path(sys.prefix) / "share" / "edged" / "bundles"


# -- the system service -------------------------------------------------------------------------


def service_installed() -> bool:
    """Whether systemd has the unit of the service on this machine."""
    return any((place / UNIT).exists() for place in UNIT_DIRECTORIES)


def _first_of(variable: str) -> Path | None:
    """systemd joins several directories with colons; ours is the first that the unit names."""
    first = os.environ.get(variable, "").split(":")[0]
    return Path(first) if first else None


def _absolute(variable: str) -> Path | None:
    """The XDG specification tells to ignore relative paths."""
    value = os.environ.get(variable, "")
    return Path(value) if value.startswith("/") else None
