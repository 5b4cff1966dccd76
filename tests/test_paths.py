"""edged/paths.py with real directories and sockets; only the roots of the system are moved."""

from __future__ import annotations

import os
import socket
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from edged import paths
from edged.errors import ConfigError

UID = os.getuid()
Listen = Callable[[Path], str]
VARIABLES = (
    "RUNTIME_DIRECTORY",
    "XDG_RUNTIME_DIR",
    "EDGED_ENDPOINT",
    "EDGED_BUNDLES",
    "STATE_DIRECTORY",
    "XDG_DATA_HOME",
)
OTHER = 54321  # a uid that is not ours


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty machine: none of the variables, none of the directories, no virtual environment."""
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(paths, "SYSTEM_RUNTIME", tmp_path / "run" / "edged")
    monkeypatch.setattr(paths, "SYSTEM_STATE", tmp_path / "var" / "edged")
    monkeypatch.setattr(paths, "UNIT_DIRECTORIES", (tmp_path / "units",))
    monkeypatch.setattr(paths, "USER_RUNTIME", tmp_path / "run" / "user")
    monkeypatch.setattr(paths, "TEMPORARY", tmp_path / "tmp")
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp").chmod(0o1777)
    (tmp_path / "home").mkdir()
    return tmp_path


@pytest.fixture
def listen() -> Iterator[Listen]:
    sockets = []

    def at(directory: Path) -> str:
        directory.mkdir(parents=True, exist_ok=True)
        sock = socket.socket(socket.AF_UNIX)
        sockets.append(sock)
        # A relative name: pytest's directories are longer than a socket's path may be.
        here = os.getcwd()
        os.chdir(directory)
        try:
            sock.bind(paths.SOCKET)
        finally:
            os.chdir(here)
        return f"ipc://{directory / paths.SOCKET}"

    yield at
    for sock in sockets:
        sock.close()


# -- the daemon's endpoint ----------------------------------------------------------------------


def test_default_endpoint_takes_the_best_place_there_is(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert paths.default_endpoint() == f"ipc://{place}/tmp/edged-{UID}/edged.sock"
    (place / "run" / "user" / str(UID)).mkdir(parents=True)
    assert paths.default_endpoint() == f"ipc://{place}/run/user/{UID}/edged/edged.sock"
    monkeypatch.setenv("XDG_RUNTIME_DIR", "relative")
    assert paths.default_endpoint() == f"ipc://{place}/run/user/{UID}/edged/edged.sock"
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/xdg")
    assert paths.default_endpoint() == "ipc:///xdg/edged/edged.sock"
    monkeypatch.setenv("RUNTIME_DIRECTORY", "/run/one:/run/two")
    assert paths.default_endpoint() == "ipc:///run/one/edged.sock"


@pytest.mark.parametrize(
    ("endpoint", "events"),
    [
        ("ipc:///run/edged/edged.sock", "ipc:///run/edged/edged-events.sock"),
        ("ipc:///run/edged/x", "ipc:///run/edged/x-events"),
        ("ipc:///a.sock/b", "ipc:///a.sock/b-events"),
        ("tcp://127.0.0.1:5555", "tcp://127.0.0.1:5556"),
        ("tcp://[::1]:5555", "tcp://[::1]:5556"),
        ("tcp://127.0.0.1:*", "tcp://127.0.0.1:*"),
    ],
)
def test_events_endpoint_is_beside_it(endpoint: str, events: str) -> None:
    assert paths.events_endpoint(endpoint) == events


def test_prepare_directory_makes_it_private(place: Path) -> None:
    old = os.umask(0)
    try:
        paths.prepare_directory(paths.default_endpoint())
    finally:
        os.umask(old)
    made = place / "tmp" / f"edged-{UID}"
    assert stat.S_IMODE(made.stat().st_mode) == 0o700
    paths.prepare_directory(paths.default_endpoint())  # a second start
    paths.prepare_directory("tcp://127.0.0.1:5555")
    assert list((place / "tmp").iterdir()) == [made]


def test_prepare_directory_leaves_an_administrators_directory_alone(place: Path) -> None:
    directory = place / "srv"
    directory.mkdir()
    directory.chmod(0o2775)
    paths.prepare_directory(f"ipc://{directory}/x.sock")
    assert stat.S_IMODE(directory.stat().st_mode) == 0o2775


def test_a_directory_others_may_write_to_is_refused(place: Path) -> None:
    directory = place / "tmp" / f"edged-{UID}"
    directory.mkdir()
    directory.chmod(0o770)
    with pytest.raises(ConfigError, match="may be written to by other users"):
        paths.prepare_directory(paths.default_endpoint())


def test_a_link_in_place_of_the_directory_is_refused(place: Path) -> None:
    (place / "trap").mkdir()
    (place / "tmp" / f"edged-{UID}").symlink_to(place / "trap")
    with pytest.raises(ConfigError, match="is not a directory"):
        paths.prepare_directory(paths.default_endpoint())


def test_a_file_in_place_of_the_directory_is_refused(place: Path) -> None:
    (place / "tmp" / f"edged-{UID}").write_text("")
    with pytest.raises(ConfigError, match="cannot be made"):
        paths.prepare_directory(paths.default_endpoint())


def test_a_directory_of_another_user_is_refused(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = place / "tmp" / f"edged-{UID}"
    directory.mkdir(mode=0o700)
    if UID == 0:
        os.chown(directory, OTHER, OTHER)
    else:  # only root can give a directory away: be someone else instead
        monkeypatch.setattr(os, "geteuid", lambda: OTHER)
    with pytest.raises(ConfigError, match=rf"belongs to another user \(uid {OTHER if UID == 0 else UID}\)"):
        paths.prepare_directory(paths.default_endpoint())


# -- the client's endpoint ----------------------------------------------------------------------


def test_client_takes_what_it_is_told(place: Path, monkeypatch: pytest.MonkeyPatch, listen: Listen) -> None:
    assert paths.client_endpoint() == paths.default_endpoint()
    listen(place / "run" / "edged")
    monkeypatch.setenv("EDGED_ENDPOINT", "tcp://box:5555")
    assert paths.client_endpoint() == "tcp://box:5555"
    assert paths.client_endpoint("ipc:///x") == "ipc:///x"
    monkeypatch.setenv("EDGED_ENDPOINT", "")
    assert paths.client_endpoint() == f"ipc://{place}/run/edged/edged.sock"


def test_client_prefers_the_users_own_daemon(
    place: Path, monkeypatch: pytest.MonkeyPatch, listen: Listen
) -> None:
    for directory in ("run/edged", f"tmp/edged-{UID}", f"run/user/{UID}/edged", "xdg/edged", "unit"):
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(place / "xdg"))
        monkeypatch.setenv("RUNTIME_DIRECTORY", str(place / "unit"))
        endpoint = listen(place / directory)
        (place / directory).chmod(0o755)
        assert paths.client_endpoint() == endpoint


def test_client_passes_over_what_is_no_socket(place: Path, listen: Listen) -> None:
    system = listen(place / "run" / "edged")
    (place / "tmp" / f"edged-{UID}").mkdir(mode=0o700)
    (place / "tmp" / f"edged-{UID}" / "edged.sock").write_text("")
    assert paths.client_endpoint() == system


def test_client_passes_over_a_trap_in_tmp(place: Path, listen: Listen) -> None:
    trap = listen(place / "tmp" / f"edged-{UID}")
    (place / "tmp" / f"edged-{UID}").chmod(0o700)
    assert paths.client_endpoint() == trap
    system = listen(place / "run" / "edged")
    assert paths.client_endpoint() == trap
    (place / "tmp" / f"edged-{UID}").chmod(0o777)
    assert paths.client_endpoint() == system


def test_client_does_not_wait_for_a_socket_in_a_trap(place: Path) -> None:
    trap = place / "tmp" / f"edged-{UID}"
    trap.mkdir(mode=0o700)
    assert paths.client_endpoint() == paths.default_endpoint()
    trap.chmod(0o777)
    assert paths.client_endpoint() == f"ipc://{place}/run/edged/edged.sock"
    trap.rmdir()
    trap.symlink_to(place / "home")
    assert paths.client_endpoint() == f"ipc://{place}/run/edged/edged.sock"


# -- bundles ------------------------------------------------------------------------------------


def test_bundle_directories_in_order(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    system, home = place / "var" / "edged" / "bundles", place / "home"
    assert paths.bundle_directories() == [system, home / ".local/share/edged/bundles"]
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    assert paths.bundle_directories() == [system, home / ".local/share/edged/bundles"]
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    monkeypatch.setenv("STATE_DIRECTORY", "/state/one:/state/two")
    assert paths.bundle_directories("~/mine") == [
        home / "mine",
        Path("/state/one/bundles"),
        system,
        Path("/data/edged/bundles"),
    ]
    monkeypatch.setenv("EDGED_BUNDLES", "/b1::/b2")
    assert paths.bundle_directories("~/mine") == [home / "mine", Path("/b1"), Path("/b2")]
    monkeypatch.delenv("EDGED_BUNDLES")
    monkeypatch.setattr(sys, "prefix", "/venv")
    assert Path("/venv/share/edged/bundles") in paths.bundle_directories()


def test_no_directory_is_named_twice(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATE_DIRECTORY", str(place / "var" / "edged"))
    assert paths.bundle_directories().count(place / "var" / "edged" / "bundles") == 1


def test_bundles_are_written_to_the_first_directory_that_can_be(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / "var").mkdir()
    assert paths.writable_bundle_directory() == place / "var" / "edged" / "bundles"
    (place / "var" / "edged").write_text("a file is in the way")
    assert paths.writable_bundle_directory() == place / "home" / ".local/share/edged/bundles"
    monkeypatch.setenv("EDGED_BUNDLES", str(place / "b"))
    assert paths.writable_bundle_directory() == place / "b"
    assert paths.writable_bundle_directory(str(place / "set")) == place / "set"


def test_bundles_never_go_into_the_installation(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next release takes its place, and the service looks into /var/lib/edged first."""
    release = place / "opt" / "releases" / "1"
    (release / "share/edged/bundles").mkdir(parents=True)
    monkeypatch.setattr(sys, "prefix", str(release))
    (place / "var").write_text("not a folder, as one that may not be written to")
    assert release / "share/edged/bundles" in paths.bundle_directories()
    assert paths.writable_bundle_directory() == place / "home" / ".local/share/edged/bundles"
    monkeypatch.setenv("HOME", str(place / "var"))
    with pytest.raises(ConfigError, match="bundles cannot be written to") as caught:
        paths.writable_bundle_directory()
    assert "releases" not in caught.value.message


def test_a_named_bundle_directory_is_not_replaced_by_another(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / "file").write_text("")
    with pytest.raises(ConfigError, match=f"bundles cannot be written to {place}/file/b "):
        paths.writable_bundle_directory(str(place / "file" / "b"))
    monkeypatch.setenv("EDGED_BUNDLES", str(place / "file" / "c"))
    with pytest.raises(ConfigError, match=f"bundles cannot be written to {place}/file/c "):
        paths.writable_bundle_directory()


def test_no_writable_directory_at_all(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "var").write_text("")
    monkeypatch.setenv("HOME", str(place / "var"))
    with pytest.raises(ConfigError, match=f"{place}/var/edged/bundles or {place}/var/.local"):
        paths.writable_bundle_directory()


def test_permissions_decide_not_existence(place: Path) -> None:
    (place / "var").mkdir()
    (place / "home").chmod(0o777)
    for parent in place.parents:  # the other user must be able to come here at all
        if parent.stat().st_uid == UID and parent not in (Path("/"), Path("/tmp")):
            parent.chmod(parent.stat().st_mode | 0o011)
    place.chmod(0o755)
    (place / "var").chmod(0o555)
    if UID != 0:
        assert paths.writable_bundle_directory() == place / "home" / ".local/share/edged/bundles"
        return
    child = os.fork()  # root may write anywhere; os.access asks for the real uid
    if child == 0:
        os.setuid(OTHER)
        right = paths.writable_bundle_directory() == place / "home" / ".local/share/edged/bundles"
        os._exit(0 if right else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
